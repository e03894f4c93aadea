import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { CLUSTER_MODE, type ClusterModeStatus, clusterModes } from '../../../../src/api/cluster-mode.ts';
import { foreignClusters } from '../../../../src/api/foreign-cluster.ts';
import { configMaps, leases, namespaces, secrets } from '../../../../src/api/resources.ts';
import { tetherCommand } from '../../../../src/cli/peering/tether.ts';
import { untetherCommand } from '../../../../src/cli/peering/untether.ts';
import { CliWorld } from '../support/cli-world.ts';

const MILAN = 'milan'.padEnd(26, 'a');
const HOME = 'home'.padEnd(26, 'c');
const MODES = 'clustermodes.tributary.dev';
const CLUSTERS = 'foreignclusters.tributary.dev';
const LEASES = 'leases.coordination.k8s.io';
const SECRET = 'tributary-peer-token-mine';
const token = (of: string): string => `${of}.laptop.${'s'.repeat(43)}`;

let world: CliWorld;
beforeEach(() => {
  world = CliWorld.start();
  world.seedOwn(HOME, configMaps);
  world.seed(clusterModes, { metadata: { name: CLUSTER_MODE }, spec: {} });
  world.seed(foreignClusters, { metadata: { name: 'mine' }, spec: { clusterID: MILAN } });
});
afterEach(async () => world.stop());

const wanted = (): unknown => world.api.storage.get(MODES, CLUSTER_MODE)?.spec?.['tether'];

/** The part of the cluster role: what it says once a tether is wanted. */
function answers(phase: ClusterModeStatus['phase'], message = ''): void {
  const { storage } = world.api;
  storage.subscribe(({ resource, current }) => {
    if (resource !== MODES || current === undefined) return;
    queueMicrotask(() => {
      const isWanted = current.spec?.['tether'] !== undefined;
      const status = {
        observedGeneration: current.metadata.generation,
        phase: isWanted ? phase : 'Autonomous',
        conditions: [{ type: 'Tethered', message }],
      };
      storage.update(MODES, { ...current, status });
    });
  });
}

test('a refusal takes back the wish, the token and the reference to it', async () => {
  answers('Refused', 'mine does not take this cluster');
  world.piped = token(MILAN);
  const { code, out, err } = await world.run(tetherCommand, 'mine --token -');
  expect([code, out]).toEqual([1, '  Refused: mine does not take this cluster\n']);
  expect(err).toMatch(/stays autonomous, and nothing was left behind/);
  expect(wanted()).toBeUndefined();
  expect(world.secret(SECRET)).toBeUndefined();
  expect(world.cluster('mine')?.spec).toEqual({ clusterID: MILAN });
});

test('a token of before is there again after a refusal', async () => {
  const data = { token: Buffer.from('former').toString('base64') };
  world.seed(secrets, { metadata: { namespace: 'tributary-system', name: SECRET }, data });
  answers('Refused');
  expect((await world.run(tetherCommand, ['mine', '--token', token(MILAN)])).code).toBe(1);
  expect(world.secret(SECRET)?.['data']).toEqual(data);
});

test('what it is tethered with stays', async () => {
  answers('Tethered');
  const { code, out } = await world.run(tetherCommand, [
    'mine',
    '--token',
    token(MILAN),
    '--lost-after',
    '1h',
  ]);
  expect([code, out]).toEqual([0, expect.stringMatching(/Tethered in .*mine decides/)]);
  expect(wanted()).toEqual({ cluster: 'mine', lostAfterSeconds: 3600 });
  expect(world.secret(SECRET)).toBeDefined();
  expect((await world.run(untetherCommand, '')).out).toMatch(/decides again[^]*Ended/);
});

test('a token that is refused is not kept, also where the tether was asked for before', async () => {
  answers('Refused');
  tethered();
  const { code, err } = await world.run(tetherCommand, ['mine', '--token', token(MILAN)]);
  expect([code, err]).toEqual([
    1,
    expect.stringContaining('mine has refused. This cluster goes on asking. To end that: tributary untether'),
  ]);
  expect(wanted()).toEqual({ cluster: 'mine' });
  expect(world.secret(SECRET)).toBeUndefined();
  expect(world.cluster('mine')?.spec?.joinTokenSecretRef).toBeUndefined();
});

test('who is refused with a token of before is told which', async () => {
  const joinTokenSecretRef = { name: SECRET, key: 'token' };
  changeCluster({ joinTokenSecretRef });
  answers('Refused');
  const { err } = await world.run(tetherCommand, 'mine');
  expect(err).toMatch(
    /given the join token of Secret tributary-system\/tributary-peer-token-mine\. .*--token -/,
  );
});

test('a note not to peer is lifted with its force, and is there again after a refusal', async () => {
  const note = { clusterID: MILAN, outgoing: 'Disabled', incoming: 'Disabled' };
  changeCluster(note, { 'tributary.dev/force': 'true' });
  const seen: unknown[] = [];
  world.api.storage.subscribe(({ resource, current }) => {
    if (resource === MODES && current?.spec?.['tether'] !== undefined) seen.push(world.cluster('mine')?.spec);
  });
  answers('Refused');
  const { code, out } = await world.run(tetherCommand, 'mine');
  expect([code, out]).toEqual([1, expect.stringContaining('said not to peer. It no longer does.')]);
  expect(seen[0]).toEqual({ clusterID: MILAN });
  expect(world.cluster('mine')?.spec).toEqual(note);
  expect(world.cluster('mine')?.metadata.annotations ?? {}).toEqual({});
});

function changeCluster(spec: object, annotations: Record<string, string> = {}): void {
  const mine = world.api.storage.get(CLUSTERS, 'mine');
  if (mine === undefined) throw new Error('no ForeignCluster');
  const metadata = { ...mine.metadata, annotations };
  world.api.storage.update(CLUSTERS, { ...mine, metadata, spec: { ...mine.spec, ...spec } });
}

/** Renews the Lease of the cluster role with each look at the mode. */
function roleLease(isRenewed: boolean, more: object = {}): void {
  const metadata = { namespace: 'tributary-system', name: 'tributary-cluster' };
  world.seed(leases, {
    metadata,
    spec: { holderIdentity: 'a', renewTime: '2026-01-01T00:00:00.000000Z', ...more },
  });
  if (!isRenewed) return;
  world.api.storage.subscribe(({ resource }) => {
    if (resource !== MODES) return;
    const lease = world.api.storage.get(LEASES, 'tributary-system/tributary-cluster');
    if (lease === undefined) return;
    const spec = { ...lease.spec, renewTime: '2026-01-01T00:00:02.000000Z' };
    world.api.storage.update(LEASES, { ...lease, spec });
  });
}

test.each([
  [false, /has not renewed its Lease tributary-system\/tributary-cluster for .* is it running\?/],
  [true, /^(?!.*is it running)/s],
])('who is not heard in time is told whether the cluster role runs (renews: %s)', async (renews, words) => {
  roleLease(renews);
  const { code, err } = await world.run(tetherCommand, 'mine --timeout 8s');
  expect(code).toBe(1);
  expect(err).toMatch(words);
});

test.each([
  ['8s', false],
  ['40s', true],
])('a leader for whom nobody waits may be heard seldom: silent after %s (%s)', async (timeout, isSilent) => {
  roleLease(false, { leaseDurationSeconds: 30 });
  const { err } = await world.run(tetherCommand, `mine --timeout ${timeout}`);
  expect(err.includes('is it running?')).toBe(isSilent);
});

test('terms become fields', async () => {
  answers('Tethered');
  const options = '--lost-after 1m --after-loss Autonomous --when-lost RunLocally --keep-for 0s --evict';
  expect((await world.run(tetherCommand, `mine ${options}`)).code).toBe(0);
  expect(wanted()).toEqual({
    cluster: 'mine',
    lostAfterSeconds: 60,
    afterLoss: 'Autonomous',
    whenLost: 'RunLocally',
    keepForSeconds: 0,
    evict: true,
  });
});

/** A namespace of the other cluster here, and the part that says until when it is kept after the end. */
function guests(isRunning: boolean): void {
  const labels = { 'tributary.dev/peer': MILAN, 'tributary.dev/tenancy': 'contract' };
  world.seed(namespaces, { metadata: { name: 'field-x', labels } });
  world.seed(namespaces, {
    metadata: { name: 'field-y', labels: { ...labels, 'tributary.dev/peer': HOME } },
  });
  const { storage } = world.api;
  storage.subscribe(({ resource, current }) => {
    if (resource !== MODES || !isRunning || current?.spec?.['tether'] !== undefined) return;
    queueMicrotask(() => {
      for (const name of ['field-x', 'field-y']) {
        const namespace = storage.get('namespaces', name);
        if (namespace?.metadata.annotations !== undefined || namespace === undefined) continue;
        const annotations = { 'tributary.dev/keep-until': '2026-01-02T00:00:00Z' };
        storage.update('namespaces', { ...namespace, metadata: { ...namespace.metadata, annotations } });
      }
    });
  });
}

function tethered(): void {
  const mode = world.api.storage.get(MODES, CLUSTER_MODE);
  if (mode === undefined) throw new Error('no mode');
  const status = { tether: { clusterID: MILAN } };
  world.api.storage.update(MODES, { ...mode, spec: { tether: { cluster: 'mine' } }, status });
}

test('with --delete-guests nothing of the other cluster is kept, and what is of others stays', async () => {
  tethered();
  guests(true);
  answers('Tethered');
  const { code, out } = await world.run(untetherCommand, '--delete-guests');
  expect([code, out]).toEqual([
    0,
    expect.stringMatching(/decides again[^]*deleted: namespace field-x[^]*Ended/),
  ]);
  expect(world.api.storage.get('namespaces', 'field-x')).toBeUndefined();
  expect(world.api.storage.get('namespaces', 'field-y')).toBeDefined();
  const again = await world.run(untetherCommand, '--delete-guests');
  expect([again.code, again.err]).toEqual([1, expect.stringMatching(/kubectl delete namespaces field-y\n/)]);
  expect((await world.run(untetherCommand, '')).code).toBe(0);
});

test('guests are not deleted before their rights have ended; it says what to do then', async () => {
  tethered();
  guests(false);
  answers('Tethered');
  const { code, err } = await world.run(untetherCommand, '--delete-guests --timeout 2s');
  expect([code, err]).toEqual([
    1,
    'Pods of the other cluster still run here. As soon as it has no rights in these namespaces any more, delete them: kubectl delete namespaces field-x\n',
  ]);
  expect(world.api.storage.get('namespaces', 'field-x')).toBeDefined();
  expect(wanted()).toBeUndefined();
});

test('guests of a tether that nobody knows any more are named', async () => {
  guests(true);
  const mode = world.api.storage.get(MODES, CLUSTER_MODE);
  if (mode !== undefined) world.api.storage.update(MODES, { ...mode, spec: { tether: { cluster: 'gone' } } });
  answers('Refused');
  const { code, err } = await world.run(untetherCommand, '--delete-guests');
  expect([code, err]).toEqual([1, expect.stringMatching(/kubectl delete namespaces field-x field-y\n/)]);
});

test('what is left of a refused tether is told', async () => {
  const { storage } = world.api;
  storage.subscribe(({ resource, current }) => {
    if (resource !== MODES || current === undefined) return;
    const phase = current.spec?.['tether'] === undefined ? 'Ending' : 'Refused';
    const status = { observedGeneration: current.metadata.generation, phase };
    queueMicrotask(() => void storage.update(MODES, { ...current, status }));
  });
  const { code, err } = await world.run(tetherCommand, 'mine');
  expect([code, err]).toEqual([1, expect.stringMatching(/is still being removed: kubectl get clustermodes/)]);
});

test('who interrupts it is told that it goes on, and how to end that', async () => {
  const match = ({ method }: { method: string }): boolean => {
    if (method === 'GET' && wanted() !== undefined) world.abort.abort();
    return false;
  };
  world.api.fault({ match, times: Infinity });
  const { code, err } = await world.run(tetherCommand, 'mine');
  expect(code).toBe(1);
  expect(err).toMatch(
    /^The role cluster goes on trying\. To see how far it is: kubectl get clustermodes\. To give it up: tributary untether\n/,
  );
  expect(wanted()).toEqual({ cluster: 'mine' });
});

test.each([
  ['mine --lost-after -1s', /"-1s" is not a duration from 10s to 7d/],
  ['mine --lost-after=-1s', /"-1s" is not a duration from 10s to 7d/],
  ['mine --keep-for --evict', /^--keep-for needs a value; "--evict" follows it\nsee: /],
  ['mine --keep-for', /^--keep-for needs a value\nsee: /],
  ['mine --evict=yes', /^--evict takes no value\nsee: /],
  ['mine --late', /^unknown option "--late"\nsee: /],
])('"tether %s" says what to do', async (line, words) => {
  const { code, err } = await world.run(tetherCommand, line);
  expect([code, err]).toEqual([2, expect.stringMatching(words)]);
  expect(world.opened).toEqual([]);
});

test.each([
  ['mine --token secret', /not of the form/],
  [`mine --token ${token(HOME)}`, /Nothing was changed: the token is of cluster home/],
  ['mine --lost-after 5s', /^--lost-after: "5s" is not a duration from 10s to 7d/],
  ['mine --after-loss Wait', /--after-loss must be one of Retether, Autonomous, not "Wait"/],
  ['mine --when-lost Run', /--when-lost must be one of Stay, RunLocally, not "Run"/],
  ['mine --keep-for 400d', /^--keep-for: "400d" is not a duration from 0s to 365d/],
  ['other', /no ForeignCluster has the name or ClusterID "other"/],
  ['mine --token -', /reads the token from standard input, which is empty/],
])('"tether %s" is refused before anything is written', async (line, words) => {
  const { code, err } = await world.run(tetherCommand, line);
  expect(code).not.toBe(0);
  expect(err).toMatch(words);
  expect(wanted()).toBeUndefined();
  expect(world.api.count(/^(POST|PUT|PATCH|DELETE)/)).toBe(0);
});
