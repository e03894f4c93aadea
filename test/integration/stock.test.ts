import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { stringify } from 'yaml';
import { forgeGrant, rulesOf } from '../../src/api/rbac.ts';
import { Caches } from '../../src/kube/caches.ts';
import { createClient, type HttpClient } from '../../src/kube/http-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/log.ts';
import { STOCK_RIGHTS } from '../../src/peering/offer/rights.ts';
import { computeOffer } from '../../src/peering/offer/compute.ts';
import { StockWatcher } from '../../src/peering/offer/stock-watcher.ts';
import { eventually } from '../support/eventually.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';
import { lendingPolicy } from '../unit/peering/support/stock.ts';

/** What is free on a real API server, read with exactly the rights of the table. */

const PEER = 'c'.repeat(26);
const GPU = 'example.com/gpu';

let lab: RightsCluster;
let client: HttpClient;
let watcher: StockWatcher;

beforeAll(async () => {
  lab = await RightsCluster.up();
  const account = { namespace: 'default', name: 'stock' };
  const objects = [
    ...['shop', 'tenant'].map((name) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, ...(name === 'tenant' && { labels: { 'tributary.dev/peer': PEER } }) },
    })),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account },
    ...['shop', 'tenant'].map((namespace) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace, name: 'default' },
    })),
    ...forgeGrant({ name: 'stock', labels: {}, account, rules: rulesOf(STOCK_RIGHTS) }),
  ];
  await lab.apply(objects.map((object) => stringify(object)).join('---\n'));
  const { token } = await lab.tokenOf(account);
  const { server, pki } = lab.cluster;
  client = createClient({
    server: new URL(server),
    ca: pki.authority.cert,
    token: async () => Promise.resolve(token),
  });
  const caches = new Caches({ client, clock: systemClock, log: silentLogger });
  watcher = new StockWatcher({ caches, clock: systemClock });
  await watcher.start(new AbortController().signal);
});

afterAll(async () => {
  await watcher?.stop();
  await client?.close();
  await lab?.down();
});

async function call(method: string, path: string, body: object, type?: string): Promise<void> {
  const { status, body: answer } = await lab.cluster.api.call(method, path, body, type);
  if (status >= 300) throw new Error(`${status} ${answer}`);
}

const freeMilli = (): number =>
  watcher.stock().nodes.reduce((sum, { allocatable, own }) => {
    return sum + Number(allocatable.get('cpu') ?? 0n) - Number(own.get('cpu') ?? 0n);
  }, 0);

const createPod = async (namespace: string, node: string, cpu: string): Promise<void> =>
  call('POST', `/api/v1/namespaces/${namespace}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a' },
    spec: {
      nodeName: node,
      automountServiceAccountToken: false,
      containers: [{ name: 'main', image: 'example/none:1', resources: { requests: { cpu } } }],
    },
  });

test('pods, tenants and devices are seen as they come and go', async () => {
  await eventually('a node lends', () => watcher.stock().nodes.some(({ lends }) => lends));
  const node = watcher.stock().nodes.find(({ lends }) => lends);
  const before = freeMilli();
  expect(before).toBeGreaterThan(0);

  await createPod('shop', node?.name ?? '', '700m');
  await eventually('our pod', () => freeMilli() === before - 700);
  await createPod('tenant', node?.name ?? '', '300m');
  await eventually('the pod of the peer', () => watcher.usage(PEER)['cpu'] === '300m');
  expect(freeMilli()).toBe(before - 700);

  const status = { status: { capacity: { [GPU]: '2' }, allocatable: { [GPU]: '2' } } };
  const path = `/api/v1/nodes/${node?.name}/status`;
  await call('PATCH', path, status, 'application/merge-patch+json');
  const offered = (): string | undefined =>
    computeOffer(watcher.stock(), lendingPolicy(), { consumer: PEER, promised: new Map() }).resources[GPU];
  await eventually('the device', () => offered() === '2');

  const ended = { status: { phase: 'Succeeded' } };
  await call('PATCH', '/api/v1/namespaces/tenant/pods/a/status', ended, 'application/merge-patch+json');
  await eventually('the end of the pod', () => watcher.usage(PEER)['pods'] === '0');
  await call('DELETE', '/api/v1/namespaces/shop/pods/a?gracePeriodSeconds=0', {});
  await eventually('the room of the other', () => freeMilli() === before);

  const spec = { spec: { unschedulable: true } };
  await call('PATCH', `/api/v1/nodes/${node?.name}`, spec, 'application/merge-patch+json');
  await eventually('the cordon', () => offered() === undefined);
});
