import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { configMaps, namespaced, leases, namespaces } from '../../src/api/resources.ts';
import type { ConfigMap, KubeObject } from '../../src/api/wire.ts';
import { type HttpClient, createClient } from '../../src/kube/http-client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { LeaseKeeper } from '../../src/kube/lease-keeper.ts';
import { ClientEventRecorder } from '../../src/kube/events.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/log.ts';
import type { Cluster } from '../../lab/cluster.ts';
import { describeKubeClient } from '../contract/kube-client.ts';
import { eventually } from '../support/eventually.ts';
import { RightsCluster } from '../support/labs/rights-cluster.ts';

/** The client, the informer and what uses them, against a real API server. */

const NAMESPACE = 'contract';
const serviceAccounts = namespaced<KubeObject>('/v1', 'ServiceAccount');

let lab: RightsCluster;
let cluster: Cluster;
let client: HttpClient;

beforeAll(async () => {
  lab = await RightsCluster.up();
  ({ cluster } = lab);
  client = createClient(await parseKubeconfig(readFileSync(cluster.kubeconfig, 'utf8')));
  await client.create(namespaces, { metadata: { name: NAMESPACE } });
  await eventually('the default service account', () =>
    client.get(serviceAccounts, { namespace: NAMESPACE, name: 'default' }).then(
      () => true,
      () => false,
    ),
  );
});

afterAll(async () => {
  await client?.close();
  cluster?.api.close();
  await lab?.down();
});

describe('the contract', () => {
  describeKubeClient({ client: () => client, namespace: () => NAMESPACE });
});

const informers: Informer<ConfigMap>[] = [];

afterEach(async () => {
  await Promise.all(informers.splice(0).map((informer) => informer.stop()));
});

async function informer(): Promise<Informer<ConfigMap>> {
  const informer = new Informer<ConfigMap>({
    client,
    type: configMaps,
    list: { namespace: NAMESPACE, labelSelector: 'informed=yes' },
    clock: systemClock,
    log: silentLogger,
  });
  informers.push(informer);
  await informer.start(new AbortController().signal);
  return informer;
}

const make = (name: string): Promise<ConfigMap> =>
  client.create(configMaps, {
    metadata: { name, namespace: NAMESPACE, labels: { informed: 'yes' } },
    data: { step: '0' },
  });

test('an informer sees a burst of creations and deletions, and each once', async () => {
  const cache = await informer();
  const seen = { added: 0, deleted: 0 };
  cache.onChange((_key, current, previous) => {
    if (previous === undefined) seen.added++;
    if (current === undefined) seen.deleted++;
  });
  const names = Array.from({ length: 300 }, (_, index) => `burst-${index}`);
  await Promise.all(names.map(make));
  await Promise.all(names.map((name) => client.delete(configMaps, { name, namespace: NAMESPACE })));
  await eventually('all seen', () => seen.deleted === 300);
  expect(seen.added).toBe(300);
  expect(cache.size).toBe(0);
});

test('an informer outlives the killing of its API server and misses nothing', async () => {
  const cache = await informer();
  await make('before');
  await eventually('before', () => cache.get(`${NAMESPACE}/before`) !== undefined);
  const server = cluster.daemon('kube-apiserver');
  await server.kill();
  await eventually('lost contact', () => cache.contact.failingSince !== undefined);
  expect(cache.get(`${NAMESPACE}/before`)).toBeDefined();
  await server.restart();
  await eventually('the API server', () =>
    make('after').then(
      () => true,
      () => false,
    ),
  );
  await eventually('after', () => cache.get(`${NAMESPACE}/after`) !== undefined);
  expect(cache.contact.failingSince).toBeUndefined();
});

test('an API server that hangs is noticed before its connections break, and resumed from when it runs again', async () => {
  const cache = await informer();
  const server = cluster.daemon('kube-apiserver');
  server.stop();
  // Nothing else would detect it: the kernel keeps such a connection for hours.
  await eventually('lost contact', () => cache.contact.failingSince !== undefined);
  server.cont();
  await make('resumed');
  await eventually('resumed', () => cache.get(`${NAMESPACE}/resumed`) !== undefined);
});

test('a lease is renewed, and an event recorded', async () => {
  const options = { client, clock: systemClock, log: silentLogger };
  const keeper = new LeaseKeeper({
    ...options,
    namespace: NAMESPACE,
    name: 'kept',
    identity: 'test',
    durationMs: 40_000,
    intervalMs: 50,
  });
  keeper.start(new AbortController().signal);
  const ref = { namespace: NAMESPACE, name: 'kept' };
  await eventually('the lease', () => keeper.renewedAt > 0);
  const first = await client.get(leases, ref);
  expect(first.spec).toMatchObject({ holderIdentity: 'test', leaseDurationSeconds: 40, leaseTransitions: 0 });
  await eventually('a renewal', async () => {
    const { spec } = await client.get(leases, ref);
    return spec?.renewTime !== first.spec?.renewTime;
  });
  await keeper.stop();

  const recorder = new ClientEventRecorder({ ...options, component: 'test' });
  const subject = await client.get(namespaces, { name: NAMESPACE });
  recorder.event(
    { ...subject, metadata: { ...subject.metadata, namespace: NAMESPACE } },
    'Normal',
    'Tested',
    'it works',
  );
  await recorder.stop();
  const events = namespaced<KubeObject & { count?: number }>('/v1', 'Event');
  const { items } = await client.list(events, { namespace: NAMESPACE, fieldSelector: 'reason=Tested' });
  expect(items).toMatchObject([{ count: 1, message: 'it works' }]);
});
