import { afterEach, beforeEach, expect, test } from '@jest/globals';

import type { CountedPod } from '../../../../src/api/pod-requests.ts';
import { ingressClasses, namespaces, nodes, pods, storageClasses } from '../../../../src/api/resources.ts';
import { slimNode } from '../../../../src/api/slim-node.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { computeOffer } from '../../../../src/peering/offer/compute.ts';
import { freeOf } from '../../../../src/peering/offer/free.ts';
import { hasChanged, keepPod, StockWatcher } from '../../../../src/peering/offer/stock-watcher.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import type { AnyObject } from '../../../support/fake-api/storage.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { aNode, aPod, lendingPolicy } from '../support/stock.ts';

const PEER = 'c'.repeat(26);
let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let watcher: StockWatcher;

const draft = (object: object): never => {
  const { metadata, ...rest } = object as { metadata: Record<string, unknown> };
  const { uid: _uid, resourceVersion: _version, creationTimestamp: _created, ...meta } = metadata;
  return { ...rest, metadata: meta } as never;
};

const seedPod = (key: string, cpu: string): AnyObject => server.seed(pods, draft(aPod(key, 'n', { cpu })));
const seedTenant = (name: string): AnyObject =>
  server.seed(namespaces, { metadata: { name, labels: { 'tributary.dev/peer': PEER } } });

function change(resource: string, key: string, by: (object: AnyObject) => AnyObject): void {
  const current = server.storage.get(resource, key);
  if (current === undefined) throw new Error(`no ${resource} ${key}`);
  server.storage.update(resource, by(current));
}

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
  const caches = new Caches({ client, clock, log: silentLogger, random: () => 0.001 });
  watcher = new StockWatcher({ caches, clock });
  server.seed(nodes, draft(aNode('n')));
});

afterEach(async () => {
  await watcher.stop();
  await client.close();
  await server.stop();
});

const start = (): Promise<void> => watcher.start(new AbortController().signal);
const freeCpu = (): string | undefined => freeOf(watcher.stock(), lendingPolicy(), new Map())['cpu'];

test('it knows nodes, classes, what our pods take and what a peer uses', async () => {
  server.seed(storageClasses, {
    metadata: { name: 'fast', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'x.csi.com',
    volumeBindingMode: 'Immediate',
  });
  server.seed(ingressClasses, { metadata: { name: 'nginx' } });
  seedTenant('tenant-a');
  seedTenant('tenant-b');
  seedPod('shop/a', '1');
  seedPod('tenant-a/a', '500m');
  seedPod('tenant-b/a', '250m');
  await start();
  expect(watcher.usage(PEER)).toEqual({ cpu: '750m', pods: '2' });
  expect(watcher.usage('d'.repeat(26))).toEqual({ pods: '0' });
  expect(freeCpu()).toBe('2250m');
  const policy = lendingPolicy({ storageClasses: ['fast'], ingressClasses: ['nginx'] });
  expect(computeOffer(watcher.stock(), policy, { consumer: PEER, promised: new Map() })).toMatchObject({
    resources: { cpu: '3', pods: '99' },
    classes: {
      storage: [{ name: 'fast', provisioner: 'x.csi.com', isDefault: true, volumeBindingMode: 'Immediate' }],
      ingress: ['nginx'],
    },
  });
});

test('it follows pods that come, grow, end and go, and namespaces that become tenants', async () => {
  await start();
  let told = 0;
  watcher.onChange(() => told++);
  expect(freeCpu()).toBe('4');
  seedPod('shop/a', '1');
  await clock.until('a pod', () => freeCpu() === '3');
  change('pods', 'shop/a', (pod) => ({
    ...pod,
    spec: { ...pod.spec, containers: [{ name: 'main', resources: { requests: { cpu: '2' } } }] },
  }));
  await clock.until('its growth', () => freeCpu() === '2');
  seedTenant('shop');
  await clock.until('its namespace', () => watcher.usage(PEER)['cpu'] === '2');
  change('pods', 'shop/a', (pod) => ({ ...pod, status: { phase: 'Succeeded' } }));
  await clock.until('its end', () => watcher.usage(PEER)['pods'] === '0');
  change('nodes', 'n', (node) => ({ ...node, spec: { unschedulable: true } }));
  await clock.until('the cordon', () => freeCpu() === '0');
  await clock.until('news of it', () => told > 0);
});

test('a burst is told in few calls', async () => {
  await start();
  const first = watcher.stock();
  expect(watcher.stock()).toBe(first);
  let told = 0;
  watcher.onChange(() => told++);
  for (let index = 0; index < 50; index++) seedPod(`shop/p${index}`, '10m');
  await clock.until('all pods', () => freeCpu() === '3500m');
  await clock.until('news', () => told > 0);
  expect(told).toBeLessThan(10);
  expect(watcher.stock()).not.toBe(first);
});

test('what comes and goes without moving what is free is no change', () => {
  const node = aNode('n');
  const conditions = (node.status?.conditions ?? []).map((one) => ({ ...one, lastHeartbeatTime: 'now' }));
  const beaten = {
    ...node,
    metadata: { ...node.metadata, resourceVersion: '2' },
    status: { ...node.status, conditions },
  };
  const pod = aPod('shop/a', 'n', { cpu: '1' });
  const moved = { ...pod, status: { ...pod.status, message: 'well', podIP: '10.0.0.1' } };
  const resized = aPod('shop/a', 'n', { cpu: '2' });
  const keep = (object: object): CountedPod | undefined => keepPod(object as CountedPod);
  expect(hasChanged(slimNode(beaten), slimNode(node))).toBe(false);
  expect(hasChanged(slimNode(aNode('n', { taint: 'NoExecute' })), slimNode(node))).toBe(true);
  expect(hasChanged(keep(moved), keep(pod))).toBe(false);
  expect(hasChanged(keep(resized), keep(pod))).toBe(true);
  expect(hasChanged(undefined, keep(pod))).toBe(true);
});

test('classes that we may not read are none, and nothing waits for them', async () => {
  server.fault({ match: ({ path }) => path.endsWith('/storageclasses'), status: 403, times: Infinity });
  await start();
  expect(watcher.stock().storageClasses).toEqual([]);
  expect(freeCpu()).toBe('4');
});
