import 'reflect-metadata';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Registry } from 'prom-client';
import { OffloadingParts } from '../../src/agent/offloading.ts';
import { controllerMetrics } from '../../src/agent/parts.ts';
import {
  ANNOTATION_PREFERRED,
  ANNOTATION_TOO_LARGE,
  LABEL_OFFLOAD,
  LABEL_PROVIDER,
} from '../../src/api/names.ts';
import { namespaceOffloadings, type NamespaceOffloading } from '../../src/api/namespace-offloading.ts';
import { events as eventType, namespaces, pods } from '../../src/api/resources.ts';
import { virtualNodes } from '../../src/api/virtual-node.ts';
import { manifestsCommand } from '../../src/cli/manifests.ts';
import { parseConfig } from '../../src/config.ts';
import { Caches } from '../../src/kube/caches.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { ClientEventRecorder } from '../../src/kube/events.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { hasCode, ignoring } from '../../src/lib/errors.ts';
import { Lifecycle } from '../../src/lib/lifecycle.ts';
import { createLogger } from '../../src/lib/log.ts';
import { eventually } from '../support/eventually.ts';
import { RightsCluster, printed } from '../support/labs/rights-cluster.ts';
import { Market } from './support/market.ts';

/** Controller, release and webhook on a real API server, with exactly the rights of the `cluster` role. */

const STOP_DEADLINE_MS = 10_000;
const SYSTEM = 'tributary-system';
const SHOP = { name: 'shop' };
const REF = { namespace: 'shop', name: 'offloading' };

let lab: RightsCluster;
let admin: KubeClient;
let client: KubeClient;
let offloadingParts: OffloadingParts;
let lifecycle: Lifecycle;
const complaints: string[] = [];

beforeAll(async () => {
  lab = await RightsCluster.up();
  await lab.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
  admin = await lab.admin();
  client = await lab.clientOf({ namespace: SYSTEM, name: 'tributary-cluster' });
  const log = createLogger({
    level: 'warn',
    now: () => systemClock.now(),
    write: (line) => complaints.push(line),
  });
  const common = { client, clock: systemClock, log };
  const events = new ClientEventRecorder({ ...common, component: 'tributary' });
  const registry = new Registry();
  const config = parseConfig({ options: {}, env: {}, hostname: 'test' });
  offloadingParts = new OffloadingParts({
    parts: { config, clock: systemClock, log },
    home: client,
    caches: new Caches(common),
    events,
    metrics: controllerMetrics(registry),
    registry,
    inPod: false,
    peerNamespaces: {
      isNamed: () => false,
      stateOf: () => ({ state: 'Mapped', tenantNamespace: 'shop-there' }),
      onChange: () => () => undefined,
    },
  });
  const components = [events, ...offloadingParts.caches(), ...offloadingParts.actors()];
  lifecycle = new Lifecycle(components, { clock: systemClock, log, stopDeadlineMs: STOP_DEADLINE_MS });
  await lifecycle.start(new AbortController().signal);
});

afterAll(async () => {
  await lifecycle?.stop();
  await client?.close();
  await admin?.close();
  await lab?.down();
});

const merge = (body: object): { type: 'merge'; body: object } => ({ type: 'merge', body });
const offloading = async (): Promise<NamespaceOffloading | undefined> =>
  admin.get(namespaceOffloadings, REF).catch(ignoring('NotFound'));
const isReason = async (reason: string): Promise<boolean> =>
  (await offloading())?.status?.conditions?.[0]?.reason === reason;

/** As peering does. */
async function map(): Promise<void> {
  const mapped = offloadingParts.offloading.of('milan');
  const mappings = mapped.map(({ homeNamespace }) => ({ homeNamespace, tenantNamespace: 'shop-there' }));
  await admin.patch(virtualNodes, { name: 'milan' }, merge({ spec: { namespaces: mappings } }));
}

test('a label stretches a namespace; taken away, all that was made goes', async () => {
  await admin.create(namespaces, { metadata: SHOP });
  await admin.create(virtualNodes, {
    metadata: { name: 'milan', labels: { [LABEL_PROVIDER]: 'milan' } },
    spec: {
      kubeconfigSecretRef: { namespace: SYSTEM, name: 'milan' },
      resources: { cpu: '1', memory: '1Gi', pods: '10' },
    },
  });
  const now = '2026-01-01T00:00:00Z';
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'AsExpected',
    message: '',
    lastTransitionTime: now,
  };
  const status = { conditions: [ready] };
  await admin.patch(virtualNodes, { name: 'milan' }, merge({ status }), { subresource: 'status' });

  await admin.patch(namespaces, SHOP, merge({ metadata: { labels: { [LABEL_OFFLOAD]: 'LocalAndRemote' } } }));
  await eventually('asked for', async () => isReason('InProgress'));
  await map();
  await eventually('ready', async () => isReason('AsExpected'));
  expect(await offloading()).toMatchObject({
    metadata: {
      finalizers: ['tributary.dev/offloading'],
      labels: { 'tributary.dev/offloading-origin': 'label' },
    },
    status: { clusters: [{ cluster: 'milan', phase: 'Ready', remoteNamespace: 'shop-there' }] },
  });

  // Deleting what would be made again is refused, with the command that takes it back; and nothing begins to end.
  const tried = '/apis/tributary.dev/v1alpha1/namespaces/shop/namespaceoffloadings/offloading?dryRun=All';
  await eventually(
    'the policy is in force',
    async () => (await lab.cluster.api.call('DELETE', tried)).status === 403,
  );
  await expect(admin.delete(namespaceOffloadings, REF)).rejects.toThrow(
    /made again; to take it back: kubectl label namespace shop tributary\.dev\/offload-$/u,
  );
  expect(await isReason('AsExpected')).toBe(true);

  const bare = { metadata: { name: 'bare', namespace: 'shop', finalizers: ['tributary.dev/test'] } };
  const spec = { containers: [{ name: 'app', image: 'app' }], nodeName: 'milan' };
  const { metadata } = await admin.create(pods, { ...bare, spec });
  await admin.patch(namespaces, SHOP, merge({ metadata: { labels: { [LABEL_OFFLOAD]: null } } }));
  await eventually('the pod ends', async () => {
    const pod = await admin.get(pods, metadata);
    return pod.metadata.deletionTimestamp !== undefined;
  });
  expect(offloadingParts.offloading.of('milan')).toMatchObject([{ homeNamespace: 'shop' }]);
  // As the agent does.
  await admin.patch(pods, metadata, merge({ metadata: { finalizers: null } }));
  await admin.delete(pods, metadata, { gracePeriodSeconds: 0 }).catch(ignoring('NotFound'));
  await eventually('the mapping may go', () => offloadingParts.offloading.of('milan').length === 0);
  await map();
  await eventually('it is gone', async () => (await offloading()) === undefined);
  await eventually('the pod is made anew', async () => {
    const pod = await admin.get(pods, metadata).catch(ignoring('NotFound'));
    return pod !== undefined && pod.metadata.uid !== metadata.uid;
  });
  expect(complaints.filter((line) => /forbidden/iu.test(line))).toEqual([]);
});

test('what somebody wrote, or took over, is deleted as any object; so is what goes with its namespace', async () => {
  const made = async (name: string): Promise<{ namespace: string; name: string }> => {
    await admin.create(namespaces, { metadata: { name, labels: { [LABEL_OFFLOAD]: 'true' } } });
    const ref = { namespace: name, name: 'offloading' };
    await eventually(
      'it is made',
      async () => (await admin.get(namespaceOffloadings, ref).catch(ignoring('NotFound'))) !== undefined,
    );
    return ref;
  };
  const taken = await made('taken-over');
  const mine = merge({ metadata: { labels: { 'tributary.dev/offloading-origin': null } } });
  await admin.patch(namespaceOffloadings, taken, mine);
  await admin.delete(namespaceOffloadings, taken);
  const leaving = await made('leaving');
  await admin.delete(namespaces, { name: 'leaving' });
  // No controller of namespaces runs here: this is its request.
  await eventually('the object of a namespace that ends may be deleted', async () =>
    admin.delete(namespaceOffloadings, leaving).then(
      () => true,
      (error: unknown) => hasCode(error, 'NotFound'),
    ),
  );
});

test('of three providers the cheapest is used first; another price counts for new pods, and a pod too large for each node waits', async () => {
  const market = new Market(admin, lab.cluster.api);
  const several = async (...names: string[]): Promise<string[]> => {
    for (const name of names) await market.make(name, { cpu: '1', memory: '1Gi' });
    return Promise.all(names.map(async (name) => market.placeOf(name)));
  };
  await market.open({ bern: '0.05', turin: '0.02', rome: '0.03' }, { cpu: '2', memory: '8Gi', pods: '50' });
  expect(await several('a-1', 'a-2')).toEqual(['turin', 'turin']);
  expect((await market.pod('a-1'))?.metadata.annotations?.[ANNOTATION_PREFERRED]).toBe(
    'turin: 0.02 EUR/h; rome: 0.03 EUR/h; bern: 0.05 EUR/h',
  );
  // Every provider has four cores, and no node with more than two.
  await market.make('large', { cpu: '3', memory: '1Gi' });
  await eventually('the scheduler has looked for a place', async () => {
    const { conditions = [] } = (await market.pod('large'))?.status ?? {};
    return conditions.some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable');
  });

  await eventually('an event says for which providers it is too large', async () => {
    const all = await admin.list(eventType, {
      namespace: 'market',
      fieldSelector: 'reason=TooLargeForNodes',
    });
    return all.items.some(
      ({ involvedObject, message = '' }) =>
        involvedObject.name === 'large' && message.includes('turin: cpu 3, one node lends 2'),
    );
  });

  const from = performance.now();
  await market.change('rome', { prices: { cpu: { amount: '0.01', currency: 'EUR' } } });
  await eventually('pods are let in by the new price', async () => {
    const { metadata } = await market.asked({ cpu: '1' });
    return metadata.annotations?.[ANNOTATION_PREFERRED]?.startsWith('rome: 0.01') === true;
  });
  expect(await several('b-1', 'b-2')).toEqual(['rome', 'rome']);
  process.stdout.write(
    `two pods ran at the cheaper one ${Math.round(performance.now() - from)} ms after its price\n`,
  );
  expect(await several('c-1', 'c-2')).toEqual(['rome', 'rome']);
  // It is full by now, and the next price counts.
  expect(await several('d-1', 'd-2', 'd-3')).toEqual(['turin', 'turin', 'bern']);
  expect(await Promise.all(['a-1', 'a-2'].map(async (name) => market.placeOf(name)))).toEqual([
    'turin',
    'turin',
  ]);

  const large = await market.pod('large');
  expect(large?.spec?.nodeName).toBeUndefined();
  expect(large?.metadata.annotations?.[ANNOTATION_TOO_LARGE]).toBe(
    ['bern', 'rome', 'turin'].map((name) => `${name}: cpu 3, one node lends 2`).join('; '),
  );
  await market.change('bern', { nodeSizes: [{ cpu: '3', memory: '8Gi', pods: '50' }] });
  expect(await market.placeOf('large')).toBe('bern');
  expect((await market.pod('large'))?.metadata.uid).not.toBe(large?.metadata.uid);
  expect(complaints.filter((line) => /forbidden/iu.test(line))).toEqual([]);
});
