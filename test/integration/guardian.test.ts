import 'reflect-metadata';
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { ANNOTATION_RECREATED, ANNOTATION_RESULT, HOME_LEASE, LABEL_HOME_UID } from '../../src/api/names.ts';
import { peeringRequests } from '../../src/api/peering-request.ts';
import { leases, namespaces, nodes, pods, secrets } from '../../src/api/resources.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { Caches } from '../../src/kube/caches.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { evict } from '../../src/kube/evict.ts';
import { createClient } from '../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { Lifecycle } from '../../src/lib/lifecycle.ts';
import { createLogger } from '../../src/lib/log.ts';
import { Guardian } from '../../src/hosting/guardian/guardian.ts';
import { eventually } from '../support/eventually.ts';
import { fastClock } from '../support/fast-clock.ts';
import { mortal } from '../support/mortal.ts';
import { AbsentHome, DONE } from './support/absent-home.ts';
import { RightsCluster, printed } from '../support/labs/rights-cluster.ts';

/**
 * The guardian on a real API server, under the account, rights and fences that people apply. There is no kubelet: the test
 * binds pods and says how they are; and it is the home.
 */

/** The shortest Lease, 10 s, lapses in half a second. */
const CLOCK = fastClock(20);

let lab: RightsCluster;
let admin: KubeClient;
let client: KubeClient;
const warnings: string[] = [];
const lines: string[] = [];
const told: string[] = [];
const stopping: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
  const kubeconfig = await parseKubeconfig(await readFile(lab.cluster.kubeconfig, 'utf8'));
  admin = createClient(kubeconfig);
  await admin.create(nodes, { metadata: { name: 'real' } });
  // No kubelet, and no scheduler either: pods are where the test puts them.
  for (const { metadata } of (await admin.list(nodes)).items) {
    await admin.patch(nodes, metadata, { type: 'merge', body: { spec: { unschedulable: true } } });
  }
  const { token } = await lab.tokenOf({ namespace: 'tributary-system', name: 'tributary-cluster' });
  const { server, ca } = kubeconfig;
  client = createClient({ server, ...(ca !== undefined && { ca }), token: async () => token });
});

afterEach(async () => {
  for (const stop of stopping.splice(0).toReversed()) await stop();
});

afterAll(async () => {
  await Promise.all([client?.close(), admin?.close()]);
  await lab?.down();
});

async function guard(using: KubeClient = client): Promise<() => Promise<void>> {
  const write = (line: string): number => (line.includes('"level":"info"') ? lines : warnings).push(line);
  const log = createLogger({ level: 'info', now: () => 0, write });
  const common = { client: using, clock: CLOCK, log };
  const guardian = new Guardian({
    ...common,
    caches: new Caches(common),
    events: { event: ({ kind, metadata }, _type, reason) => told.push(`${reason} ${kind}/${metadata.name}`) },
  });
  const lifecycle = new Lifecycle(guardian.components(), { ...common, stopDeadlineMs: 200_000 });
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => (stopped ??= lifecycle.stop());
  stopping.push(stop);
  await lifecycle.start(new AbortController().signal);
  return stop;
}

const homeOf = async (name: string): Promise<AbsentHome> =>
  new AbsentHome(name, { lab, admin, stopping }).up();

async function expectResult(home: AbsentHome): Promise<void> {
  const job = await home.get('job');
  expect(job?.metadata.annotations?.[ANNOTATION_RESULT]).toBe('true');
  expect(job?.metadata.labels?.[LABEL_HOME_UID]).toBe('home-job');
  expect(job?.spec?.schedulingGates).toEqual([{ name: 'tributary.dev/result' }]);
  expect(job?.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
    exitCode: 0,
    message: '42',
  });
}

test('pods of a home that is away are made anew, results are kept, and all of that ends when it is back', async () => {
  const home = await homeOf('rome');
  const { peer } = home;
  await admin.create(peeringRequests, {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'PeeringRequest',
    metadata: { name: peer },
    spec: { clusterID: peer, namespaces: ['shop'] },
  });
  const condition = async (): Promise<string> => {
    const { status } = await admin.get(peeringRequests, { name: peer });
    const {
      status: is,
      reason,
      message,
    } = status?.conditions?.find(({ type }) => type === 'HomePresent') ?? {};
    return `${is} ${reason} ${message}`;
  };
  await guard();
  await eventually('a Lease', async () => home.hasLease());
  // Five seconds: half a second passes on a busy machine before a renewal is heard.
  home.come(100);
  const web = await home.pod('web', 'Replace');
  await home.pod('job', 'WhenFenced', 'Never');
  await home.pod('quorum', 'Leave');
  await home.pod('evicted', 'WhenFenced');
  await eventually('the home is seen', async () => (await condition()).startsWith('True AsExpected'));
  expect(await home.journals()).toEqual([]);

  await home.leave();
  await home.isJournalled();
  await eventually('it is said', async () => (await condition()).startsWith('False HomeAway'));
  const [journal] = await home.journals();
  expect(journal).toMatchObject({
    type: 'tributary.dev/journal',
    metadata: { ownerReferences: [{ kind: 'Namespace', name: home.namespace }] },
  });

  // There is no kubelet that has logs; but the guardian may ask for them, there and nowhere else.
  const logOf = async (namespace: string): Promise<number> =>
    (await client.raw({ method: 'GET', path: `/api/v1/namespaces/${namespace}/pods/job/log` })).status;
  expect(await logOf('default')).toBe(403);
  expect(await logOf(home.namespace)).not.toBe(403);

  await home.say('job', DONE);
  await home.say('evicted', { phase: 'Failed', reason: 'Evicted' });
  for (const name of ['web', 'quorum']) await home.remove(name);
  const recreated = async (name: string): Promise<string | undefined> =>
    (await home.get(name))?.metadata.annotations?.[ANNOTATION_RECREATED];
  await eventually('web is there again', async () => (await recreated('web')) !== undefined);
  const again = await home.get('web');
  expect(again?.metadata.uid).not.toBe(web.metadata.uid);
  expect(again?.metadata.labels).toEqual(web.metadata.labels);
  expect(again?.spec?.nodeName).toBeUndefined();
  expect(await recreated('web')).toBe('{"count":1,"restarts":{"app":2}}');
  await eventually('the evicted one is there again', async () => (await recreated('evicted')) !== undefined);
  await eventually(
    'the lost one has failed',
    async () => (await home.get('quorum'))?.status?.phase === 'Failed',
  );
  expect((await home.get('quorum'))?.status).toMatchObject({ reason: 'RemotePodLost' });

  await home.remove('job');
  await eventually('the result is back', async () => (await home.get('job'))?.status?.phase === 'Succeeded');
  await expectResult(home);
  await eventually('it is counted', async () => (await condition()).includes('made anew: 2'));

  home.come(100);
  await eventually('no journal', async () => (await home.journals()).length === 0);
  await eventually('it is said', async () => (await condition()).startsWith('True AsExpected'));
  await home.remove('web');
  // Another home goes away and is looked after meanwhile; this one is left alone.
  const other = await homeOf('milan');
  await eventually('a Lease', async () => other.hasLease());
  await other.pod('web', 'Replace');
  other.come();
  await other.leave();
  await other.isJournalled();
  await other.remove('web');
  await eventually('the other is there again', async () => (await other.get('web')) !== undefined);
  expect(await home.get('web')).toBeUndefined();
  expect(told).toContain(`HomeAway Namespace/${other.namespace}`);
  expect(told).toContain(`HomeAway PeeringRequest/${peer}`);
  // There is no kubelet that would have the log of a container.
  expect(warnings.filter((line) => !line.includes('could not be read'))).toEqual([]);
});

test('what a node or a drain takes while the home is late is made anew once it is away', async () => {
  const home = await homeOf('lodi');
  await guard();
  await eventually('a Lease', async () => home.hasLease());
  // All that is done while it is late must be done in the half of this, 7.5 s.
  home.come(300);
  const drained = await home.pod('drained', 'WhenFenced');
  await home.pod('deleted', 'WhenFenced');
  await home.pod('job', 'WhenFenced', 'Never');
  await home.leave();
  await eventually('it is late', () =>
    lines.some((line) => line.includes('is silent') && line.includes(home.namespace)),
  );
  expect(await home.journals()).toEqual([]);
  await evict(admin, drained, { signal: AbortSignal.timeout(180_000) });
  await home.say('job', DONE);
  for (const name of ['drained', 'deleted', 'job']) await home.remove(name);
  expect(await home.journals()).toEqual([]);
  await eventually('one is there again', async () => (await home.get('drained')) !== undefined);
  await eventually('a result', async () => (await home.get('job'))?.status?.phase === 'Succeeded');
  await expectResult(home);
  // Its home may have deleted it.
  expect(await home.get('deleted')).toBeUndefined();
});

test('a pod on a node that does not answer is given up only where its home permits it', async () => {
  const home = await homeOf('bari');
  await guard();
  await eventually('a Lease', async () => home.hasLease());
  await home.pod('replace', 'Replace');
  await home.pod('fenced', 'WhenFenced');
  home.come();
  await home.leave();
  await home.isJournalled();
  const uids = await Promise.all(
    ['replace', 'fenced'].map(async (name) => (await home.get(name))?.metadata.uid),
  );
  const condition = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: '' };
  const body = { status: { conditions: [condition] } };
  await admin.patch(nodes, { name: 'real' }, { type: 'strategic', body }, { subresource: 'status' });
  for (const name of ['replace', 'fenced']) {
    await admin.delete(pods, { namespace: home.namespace, name }, { gracePeriodSeconds: 1 });
  }
  const isAnew = async (at: number, name: string): Promise<boolean> => {
    const uid = (await home.get(name))?.metadata.uid;
    return uid !== undefined && uid !== uids[at];
  };
  await eventually('one is replaced', async () => isAnew(0, 'replace'));
  expect((await home.get('fenced'))?.metadata.uid).toBe(uids[1]);
  const taint = { key: 'node.kubernetes.io/out-of-service', value: 'shutdown', effect: 'NoExecute' };
  await admin.patch(nodes, { name: 'real' }, { type: 'merge', body: { spec: { taints: [taint] } } });
  await eventually('the other one, too', async () => isAnew(1, 'fenced'));
  await admin.patch(nodes, { name: 'real' }, { type: 'merge', body: { spec: { taints: null } } });
});

test('killed before any of its writes, and started again: always the same end', async () => {
  const home = await homeOf('pisa');
  // Its Lease is made by the first that lives.
  await (
    await guard()
  )();
  await eventually('a Lease', async () => home.hasLease());
  let isKilled = true;
  for (let writes = 0; isKilled; writes++) {
    expect(writes).toBeLessThan(20);
    await home.pod(`web-${writes}`, 'Replace');
    await home.pod(`job-${writes}`, 'Replace', 'Never');
    const { client: dying, died } = mortal(client, writes);
    const stop = await guard(dying);
    home.come();
    await home.leave();
    const isThere = async (): Promise<boolean> => (await home.journals()).length > 0;
    await eventually('a journal or dead', async () => died() || (await isThere()));
    // Whoever dies before there is a journal knows nothing of what goes now.
    if (await isThere()) {
      await home.say(`job-${writes}`, DONE);
      await home.remove(`web-${writes}`);
      await eventually(
        'again, or dead',
        async () => died() || (await home.get(`web-${writes}`)) !== undefined,
      );
      if (!died()) await home.remove(`job-${writes}`);
    }
    const isDone = async (): Promise<boolean> => {
      const [web, job] = await Promise.all([home.get(`web-${writes}`), home.get(`job-${writes}`)]);
      return web !== undefined && (job?.status?.phase === 'Succeeded' || job?.status?.phase === 'Running');
    };
    await eventually('done or dead', async () => died() || (await isDone()));
    isKilled = died();
    await stop();
    const stopNext = await guard();
    await eventually('done by its successor', isDone);
    await stopNext();
    await home.remove(`web-${writes}`);
    await home.remove(`job-${writes}`);
    for (const { metadata } of await home.journals()) await admin.delete(secrets, metadata);
  }
});

test('a home that stays away for too long loses its pods', async () => {
  const home = await homeOf('como');
  await guard();
  await eventually('a Lease', async () => home.hasLease());
  const annotations = { 'tributary.dev/keep-for': '60' };
  const patch = { type: 'merge', body: { metadata: { annotations } } } as const;
  await admin.patch(namespaces, { name: home.namespace }, patch);
  await home.pod('web', 'Replace');
  home.come();
  await home.leave();
  await home.isJournalled();
  await eventually(
    'it is deleted',
    async () => (await home.get('web'))?.metadata.deletionTimestamp !== undefined,
  );
  await home.remove('web');
  await eventually('no journal', async () => (await home.journals()).length === 0);
  await eventually('it is said', () => told.includes(`HomeGone Namespace/${home.namespace}`));
  expect(await home.get('web')).toBeUndefined();
});

test('the fence: in tenants nothing but lost pods and their results can be made or told', async () => {
  const home = await homeOf('asti');
  const make = async (metadata: object, spec: object = {}): Promise<unknown> =>
    client.create(pods, {
      metadata: { namespace: home.namespace, name: 'x', ...metadata },
      spec: { containers: [{ name: 'app', image: 'app:1' }], ...spec },
    });
  const labels = { [LABEL_HOME_UID]: 'x' };
  await expect(make({ labels })).rejects.toThrow(/must say so/);
  await expect(make({ labels, annotations: { [ANNOTATION_RESULT]: 'true' } })).rejects.toThrow(/must say so/);
  await expect(make({ annotations: { [ANNOTATION_RECREATED]: '{}' } })).rejects.toThrow(
    /home-uid|must say so/,
  );
  await home.pod('runs', 'Replace');
  const patch = { type: 'merge', body: { status: { phase: 'Failed' } } } as const;
  const ref = { namespace: home.namespace, name: 'runs' };
  await expect(client.patch(pods, ref, patch, { subresource: 'status' })).rejects.toThrow(/never run/);
  const stranger = { namespace: home.namespace, name: 'other' };
  await expect(client.create(leases, { metadata: stranger, spec: {} })).rejects.toThrow(/Lease/);
  await expect(
    client.create(leases, { metadata: { namespace: 'kube-system', name: HOME_LEASE }, spec: {} }),
  ).rejects.toThrow(/Lease/);
});
