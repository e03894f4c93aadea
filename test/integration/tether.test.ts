import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CLUSTER_MODE, type ClusterMode } from '../../src/api/cluster-mode.ts';
import { foreignClusters } from '../../src/api/foreign-cluster.ts';
import { LABEL_DEVICE, LABEL_PEER, TAINT_DEVICE, TAINT_VIRTUAL_NODE } from '../../src/api/names.ts';
import { namespaceOffloadings } from '../../src/api/namespace-offloading.ts';
import { namespaces, nodes, pods, secrets } from '../../src/api/resources.ts';
import { sharingPolicies } from '../../src/api/sharing-policy.ts';
import type { Pod } from '../../src/api/wire.ts';
import { hasCode, ignoring } from '../../src/lib/errors.ts';
import { type City, PeeringLab, peeringLabProblem, until } from '../support/labs/peering-lab.ts';
import { TetherPair } from './support/tether-pair.ts';

const breaksOut = ['--as=admin', '--as-group=system:masters', '--as-group=tributary:break-out'];

/** A device that hands itself over to a company, as whole processes over real API servers. */

const VERSION = 'tributary.dev/v1alpha1';

const problem = peeringLabProblem();
if (problem !== undefined) process.stderr.write(`tethers are not tested: ${problem}\n`);
const describeInLab = problem === undefined ? describe : describe.skip;

describeInLab('a tether', () => {
  let lab: PeeringLab;
  let pair: TetherPair;
  /** The device. */
  let rome: City;
  /** The company. */
  let milan: City;
  const folder = mkdtempSync(join(tmpdir(), 'tributary-tether-'));

  beforeAll(async () => {
    lab = await PeeringLab.pair();
    [rome, milan] = lab.cities as [City, City];
    pair = await TetherPair.of(rome, milan);
    await pair.run();
    await pair.allow({ tethering: 'Forbid' });
    for (const city of [rome, milan]) await city.client.create(namespaces, { metadata: { name: 'shop' } });
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    pair?.down();
    await lab?.down();
  });

  const at = async (city: City, ...args: string[]): Promise<string> => pair.at(city, ...args);
  /** Applies one object that only a manifest can say. */
  const apply = async (city: City, manifest: object): Promise<string> => {
    const file = join(folder, 'one.json');
    writeFileSync(file, JSON.stringify(manifest));
    return at(city, 'apply', '-f', file);
  };
  const messageOf = ({ status }: ClusterMode): string => status?.conditions?.[0]?.message ?? '';
  test('a cluster is autonomous, and says so', async () => {
    const { status } = await pair.inPhase('Autonomous');
    expect(status?.mode).toBe('Autonomous');
    expect(await at(rome, 'get', 'clustermodes')).toMatch(/cluster\s+Autonomous\s+Autonomous/);
  });

  test('it cannot be tethered to a cluster that nobody knows, or to itself', async () => {
    await pair.want({ cluster: 'nowhere' });
    expect(messageOf(await pair.inPhase('Refused'))).toMatch(/no ForeignCluster nowhere/);
    await pair.want(null);
    await pair.inPhase('Autonomous');
  });

  test('without the consent of the company it stays autonomous', async () => {
    const token =
      (await milan.tributary(['token', 'create', '--name', 'laptop'])).trim().split('\n').at(-1) ?? '';
    await rome.client.create(secrets, {
      metadata: { namespace: 'tributary-system', name: 'company-token' },
      stringData: { token },
    });
    await rome.client.create(foreignClusters, {
      apiVersion: VERSION,
      kind: 'ForeignCluster',
      metadata: { name: 'company' },
      spec: {
        clusterID: milan.id,
        endpoint: milan.process.endpoint,
        joinTokenSecretRef: { name: 'company-token' },
      },
    });
    await pair.want({ cluster: 'company' });
    const refused = await pair.inPhase('Refused');
    expect(refused.status?.mode).toBe('Autonomous');
    await until('the words of the company', async () =>
      /does not allow it to be tethered/.test(messageOf(await pair.mode())),
    );
    expect(await at(rome, '-n', 'shop', 'run', 'free', '--image=example/none:1')).toMatch(/created/);
    await pair.runningOn(rome, 'shop', await pair.realNodeOf(rome), 'free');
    await at(rome, '-n', 'shop', 'delete', 'pod', 'free', '--wait=false');
  });

  test('with its consent the company decides what runs on the nodes of the device', async () => {
    await pair.allow({ tethering: 'Allow', sharePercent: 50 });
    const { status } = await pair.inPhase('Tethered');
    expect(status).toMatchObject({ mode: 'Tethered', nodes: ['milan'] });
    const node = await until('the device is a node of the company', async () =>
      milan.client.get(nodes, { name: 'rome' }).catch(() => undefined),
    );
    expect(node.metadata.labels?.[LABEL_DEVICE]).toBe('true');
    expect(node.spec?.taints).toContainEqual({ key: TAINT_DEVICE, effect: 'NoSchedule' });
  });

  test('another one is refused while it is tethered', async () => {
    const other = ['--type=merge', '-p', '{"spec":{"tether":{"cluster":"other"}}}'];
    const said = await at(rome, 'patch', 'clustermode', CLUSTER_MODE, ...other);
    expect(said).toMatch(/end that first with: tributary untether/);
  });

  test('what users make there is forwarded, and they are told what they may not do', async () => {
    await until('the namespace goes to the company', async () =>
      rome.client.get(namespaceOffloadings, { namespace: 'shop', name: 'offloading' }).catch(() => undefined),
    );
    await at(rome, '-n', 'shop', 'create', 'deployment', 'web', '--image=example/none:1', '--replicas=2');
    await pair.runningOn(rome, 'shop', 'milan', 'web');
    const real = await pair.realNodeOf(rome);
    const bound = JSON.stringify({
      spec: { nodeName: real, containers: [{ name: 'm', image: 'example/none:1' }] },
    });
    await until('the guards hold', async () =>
      /tethered to company/.test(
        await at(rome, '-n', 'shop', 'run', 'pinned', '--image=example/none:1', `--overrides=${bound}`),
      ),
    );
    expect(await at(rome, 'label', 'node', real, 'mine=yes')).toMatch(
      /is forbidden: .*tethered to company.*tributary untether/s,
    );
    for (const change of [['delete'], ['label', 'tributary.dev/offloading-origin-']]) {
      const [verb = '', ...how] = change;
      expect(await at(rome, '-n', 'shop', verb, 'namespaceoffloading', 'offloading', ...how)).toMatch(
        /this object would be made again/,
      );
    }
    expect(await at(rome, '-n', 'shop', 'scale', 'deployment', 'web', '--replicas=1')).toMatch(/scaled/);
  });

  test('a DaemonSet, a binding by hand and what the company runs are out of reach, but not for who breaks out', async () => {
    const real = await pair.realNodeOf(rome);
    const words = /tethered to company, which decides what runs on its nodes: .*tributary untether/s;
    const template = {
      metadata: { labels: { app: 'd' } },
      spec: { containers: [{ name: 'm', image: 'example/none:1' }] },
    };
    const daemon = {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'daemon', namespace: 'shop' },
      spec: { selector: { matchLabels: { app: 'd' } }, template },
    };
    expect(await apply(rome, daemon)).toMatch(words);
    const pinned = { ...daemon, kind: 'Deployment', spec: { ...daemon.spec } };
    const selector = { 'kubernetes.io/hostname': real };
    const there = { ...template, spec: { ...template.spec, nodeSelector: selector } };
    expect(await apply(rome, { ...pinned, spec: { ...daemon.spec, template: there } })).toMatch(words);
    await at(rome, 'create', 'namespace', 'yard');
    const waits = { schedulingGates: [{ name: 'example.com/wait' }], containers: template.spec.containers };
    const metadata = { name: 'gated', namespace: 'yard' };
    await apply(rome, { apiVersion: 'v1', kind: 'Pod', metadata, spec: waits });
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata,
      target: { apiVersion: 'v1', kind: 'Node', name: real },
    };
    const file = join(folder, 'binding.json');
    writeFileSync(file, JSON.stringify(binding));
    const bind = ['create', '--raw', '/api/v1/namespaces/yard/pods/gated/binding', '-f', file];
    expect(await at(rome, ...bind)).toMatch(words);
    expect(await at(rome, ...breaksOut, 'label', 'node', real, 'mine=yes')).toMatch(/labeled/);
    expect(await at(rome, ...breaksOut, 'label', 'node', real, 'mine-')).toMatch(/unlabeled/);
    expect(await at(rome, 'get', 'pods', '-A')).toMatch(/gated/);
    expect(await at(rome, 'delete', 'namespace', 'yard', '--wait=false')).toMatch(/deleted/);
  });

  /** Pods that run on the device outside of the namespaces of its users. */
  const bodies = async (name: string): Promise<Pod[]> => {
    const device = await pair.realNodeOf(rome);
    return (await rome.client.list(pods)).items.filter(
      ({ metadata, spec }) =>
        metadata.namespace !== 'shop' && metadata.name.startsWith(name) && spec?.nodeName === device,
    );
  };
  const back = async (name: string): Promise<Pod> =>
    until(`${name} is back on the device`, async () =>
      (await bodies(name)).find(({ status }) => status?.phase !== 'Pending'),
    );

  test('what is forwarded may come back to the device, and goes no further', async () => {
    const company = await pair.realNodeOf(milan);
    await at(milan, 'cordon', company);
    await at(rome, '-n', 'shop', 'scale', 'deployment', 'web', '--replicas=2');
    await at(rome, '-n', 'shop', 'create', 'job', 'sum', '--image=example/none:1');
    const [web, sum] = [await back('web'), await back('sum')];
    for (const { metadata } of [web, sum]) {
      const home = await rome.client.get(pods, { namespace: 'shop', name: metadata.name });
      expect(home.spec?.nodeName).toBe('milan');
      const hops = (await rome.client.list(pods)).items.filter(
        ({ metadata: { name } }) => name === metadata.name,
      );
      expect(hops.length).toBe(2);
      const space = await rome.client.get(namespaces, { name: metadata.namespace ?? '' });
      expect(space.metadata.labels?.[LABEL_PEER]).toBe(milan.id);
    }
    expect(await at(rome, '-n', web.metadata.namespace ?? '', 'delete', 'pod', web.metadata.name)).toMatch(
      /what it runs here cannot be changed/,
    );
    // Nothing ends by itself on a pretended node.
    const succeeded = ['--subresource=status', '--type=merge', '-p', '{"status":{"phase":"Succeeded"}}'];
    const where = ['-n', sum.metadata.namespace ?? '', 'patch', 'pod', sum.metadata.name];
    expect(await at(rome, ...breaksOut, ...where, ...succeeded)).toMatch(/patched/);
    await until('the job is done for its user', async () =>
      (await pair.podsOf(rome, 'shop')).some(
        ({ metadata, status }) => metadata.name.startsWith('sum') && status?.phase === 'Succeeded',
      ),
    );
    expect(await at(rome, '-n', 'shop', 'delete', 'job', 'sum')).toMatch(/deleted/);
    await at(milan, 'uncordon', company);
    await at(rome, '-n', 'shop', 'scale', 'deployment', 'web', '--replicas=1');
  });

  test('pods of the company run on the device', async () => {
    await milan.client.create(namespaceOffloadings, {
      apiVersion: VERSION,
      kind: 'NamespaceOffloading',
      metadata: { name: 'offloading', namespace: 'shop' },
      spec: { podStrategy: 'Remote' },
    });
    await until('it is mapped', async () => {
      const { status } = await milan.client.get(namespaceOffloadings, {
        namespace: 'shop',
        name: 'offloading',
      });
      return status?.clusters?.[0]?.phase === 'Ready';
    });
    await milan.client.create(pods, {
      metadata: { namespace: 'shop', name: 'companys' },
      spec: {
        tolerations: [TAINT_DEVICE, TAINT_VIRTUAL_NODE].map((key) => ({ key, operator: 'Exists' })),
        containers: [{ name: 'main', image: 'example/none:1' }],
      },
    });
    await pair.runningOn(milan, 'shop', 'rome', 'companys');
    const containers = [{ name: 'main', image: 'example/none:1' }];
    await milan.client.create(pods, {
      metadata: { namespace: 'shop', name: 'named' },
      spec: { nodeName: 'rome', containers },
    });
    await pair.runningOn(milan, 'shop', 'rome', 'named');
    const tolerations = [{ operator: 'Exists' }];
    const labels = { app: 'watch' };
    await apply(milan, {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'watch', namespace: 'shop' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { tolerations, containers } },
      },
    });
    await until('the pod of the DaemonSet is not sent', async () =>
      (await pair.podsOf(milan, 'shop')).some(
        ({ metadata, spec, status }) =>
          metadata.name.startsWith('watch') &&
          spec?.nodeName === 'rome' &&
          status?.reason === 'DaemonSetNotOffloaded',
      ),
    );
    // Whatever made them, what the company runs on the device is on its own nodes, and none was sent on.
    const theirs = new Set(
      (await rome.client.list(namespaces)).items
        .filter(({ metadata }) => metadata.labels?.[LABEL_PEER] !== undefined)
        .map(({ metadata }) => metadata.name),
    );
    const guests = (await rome.client.list(pods)).items.filter(({ metadata }) =>
      theirs.has(metadata.namespace ?? ''),
    );
    expect(guests.length).toBeGreaterThanOrEqual(2);
    for (const { spec } of guests) expect(spec?.nodeName ?? '').not.toBe('milan');
    const [tenant = ''] = theirs;
    expect(await at(rome, 'delete', 'namespace', tenant)).toMatch(/what it runs here cannot be changed/);
    await at(milan, '-n', 'shop', 'delete', 'daemonset/watch', 'pod/named', '--wait=false');
  });

  test('without contact the device decides again, and with it the company', async () => {
    await pair.want({ cluster: 'company', lostAfterSeconds: 10 });
    await milan.kill();
    const lost = await pair.inPhase('Lost');
    expect(lost.status?.mode).toBe('Autonomous');
    await until('a pod runs on a node of the device', async () => {
      const said = await at(rome, '-n', 'shop', 'run', 'alone', '--image=example/none:1');
      if (!/created|already exists/.test(said)) return false;
      const found = (await pair.podsOf(rome, 'shop')).find(({ metadata }) => metadata.name === 'alone');
      return found?.status?.phase === 'Running' && found.spec?.nodeName !== 'milan';
    });
    // What was forwarded stays where it is: it may still run there.
    expect((await pair.podsOf(rome, 'shop')).some(({ spec }) => spec?.nodeName === 'milan')).toBe(true);
    await milan.run();
    expect((await pair.inPhase('Tethered')).status?.mode).toBe('Tethered');
  });

  test('untether gives the device back, and leaves nothing', async () => {
    expect(await rome.tributary(['tether', 'company', '--lost-after', '20s'])).toMatch(/Tethered in/);
    // From now on it needs no token to come again.
    await pair.allow({ approval: 'Automatic', tethering: 'Allow', sharePercent: 50 });
    const company = await pair.realNodeOf(milan);
    await at(milan, 'cordon', company);
    await at(rome, '-n', 'shop', 'scale', 'deployment', 'web', '--replicas=2');
    await back('web');
    expect(await rome.tributary(['untether'])).toMatch(/decides again what runs on its nodes[^]*Ended/);
    expect(await rome.tributary(['untether'])).toMatch(/not tethered/);
    await until('it is autonomous at once', async () => (await pair.mode()).status?.mode === 'Autonomous');
    await pair.inPhase('Autonomous');
    await until('what was forwarded is home', async () => {
      const own = await pair.podsOf(rome, 'shop');
      return (
        own.some(({ metadata }) => metadata.name.startsWith('web')) &&
        own.every(({ spec }) => spec?.nodeName !== 'milan')
      );
    });
    expect((await rome.client.list(sharingPolicies)).items.map(({ metadata }) => metadata.name)).toEqual([]);
    await until('what came back has ended', async () => (await bodies('web')).length === 0);
    await at(milan, 'uncordon', company);
    await until('the node is gone at the company', async () =>
      milan.client.get(nodes, { name: 'rome' }).then(
        () => false,
        (error: unknown) => hasCode(error, 'NotFound'),
      ),
    );
  });

  test('what runs on the device leaves if it is asked to, as its budgets permit', async () => {
    const own = await pair.realNodeOf(rome);
    const nodesOfWeb = async (): Promise<(string | undefined)[]> =>
      (await pair.podsOf(rome, 'shop'))
        .filter(({ metadata }) => metadata.name.startsWith('web'))
        .map(({ spec }) => spec?.nodeName);
    const budget = ['-n', 'shop', 'create', 'pdb', 'web', '--selector=app=web', '--max-unavailable=0'];
    expect(await at(rome, ...budget)).toMatch(/created/);
    expect(await rome.tributary(['tether', 'company', '--evict'])).toMatch(/Tethered in/);
    const held = async (): Promise<string> => {
      const ref = { namespace: 'shop', name: 'offloading' };
      // It is made after the mode has changed.
      const found = await rome.client.get(namespaceOffloadings, ref).catch(ignoring('NotFound'));
      return JSON.stringify(found?.status?.conditions ?? []);
    };
    await until('it is said what holds them', async () => /PodDisruptionBudget shop\/web/.test(await held()));
    expect(await nodesOfWeb()).toEqual([own, own]);
    await at(rome, '-n', 'shop', 'delete', 'pdb', 'web');
    await until('all have moved', async () => (await nodesOfWeb()).join() === 'milan,milan');
    // It uses the company with or without a tether: that goes on.
    const outgoing = async (wish: 'Enabled' | 'Auto'): Promise<unknown> =>
      rome.client.patch(
        foreignClusters,
        { name: 'company' },
        { type: 'merge', body: { spec: { outgoing: wish } } },
      );
    await outgoing('Enabled');
    expect(await rome.tributary(['untether'])).toMatch(/Ended/);
    await until('all are home', async () => (await nodesOfWeb()).join() === [own, own].join());
    expect((await rome.client.list(sharingPolicies)).items).toEqual([]);
    expect(await rome.nodeReady(milan.id)).toBe(true);
    await outgoing('Auto');
  });

  test('the company ends it, and the device has what came back at home', async () => {
    expect(await rome.tributary(['tether', 'company', '--keep-for', '1h'])).toMatch(/Tethered in/);
    const company = await pair.realNodeOf(milan);
    await pair.runningOn(rome, 'shop', await pair.realNodeOf(rome), 'web');
    await at(milan, 'cordon', company);
    // What ran on the device before stays there.
    await at(rome, '-n', 'shop', 'scale', 'deployment', 'web', '--replicas=4');
    await back('web');
    const said = await milan.tributary(['unpeer', 'rome', '--timeout', '100s']);
    expect(said).toMatch(/Ended/);
    expect(messageOf(await pair.inPhase('Refused'))).toMatch(/company/);
    expect((await pair.mode()).status?.mode).toBe('Autonomous');
    await until('all of it runs at home', async () => {
      const web = (await pair.podsOf(rome, 'shop')).filter(({ metadata }) => metadata.name.startsWith('web'));
      return (
        web.length === 4 &&
        web.every(({ spec, status }) => spec?.nodeName !== 'milan' && status?.phase === 'Running')
      );
    });
    await until('nothing of it is there twice', async () => (await bodies('web')).length === 0);
    expect(await rome.tributary(['untether', '--delete-guests'])).toMatch(/Ended/);
    await at(milan, 'uncordon', company);
  });
});
