import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { endpointSlices, namespaces, pods } from '../../../../src/api/resources.ts';
import type { EndpointSlice } from '../../../../src/api/wire.ts';
import {
  NativeEndpoints,
  TELL_AFTER_MS,
  WITHDRAWN_WITHIN_MS,
} from '../../../../src/hosting/tenants/native-endpoints.ts';
import type { ByteRate } from '../../../../src/hosting/peer-writes.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const PEER = 'a'.repeat(26);
const OTHER = 'b'.repeat(26);
const SLICES = 'endpointslices.discovery.k8s.io';
const NATIVE = 'tributary.dev/native-endpoints';

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let parts: NativeEndpoints | undefined;
beforeEach(() => {
  clock = new FakeClock();
  server = new FakeApi({ clock });
  client = server.client();
  seedTenant('shop', PEER);
  seedTenant('depot', PEER);
  seedTenant('bank', OTHER);
  // A person's, for the same peer: not lending's to write to.
  server.seed(namespaces, { metadata: { name: 'by-hand', labels: { 'tributary.dev/peer': PEER } } });
  server.seed(namespaces, { metadata: { name: 'default' } });
});
afterEach(async () => {
  await parts?.stop();
  parts = undefined;
  await client.close();
  await server.stop();
});

function seedTenant(name: string, peer: string): void {
  const labels = { 'tributary.dev/peer': peer, 'tributary.dev/tenancy': 'contract' };
  server.seed(namespaces, { metadata: { name, labels } });
}
function start(more: { mostBytes?: number; rate?: ByteRate } = {}): void {
  const common = { client, clock, log: silentLogger };
  parts = new NativeEndpoints({ ...common, ...more, caches: new Caches(common) });
  parts.start(new AbortController().signal);
}
function seedPod(
  key: string,
  ip: string,
  more: { spec?: object; status?: object; labels?: object } = {},
): void {
  const [namespace = '', name = ''] = key.split('/');
  server.seed(pods, {
    metadata: { namespace, name, labels: more.labels ?? { 'tributary.dev/home-uid': `uid-${name}` } },
    spec: { nodeName: 'node-1', containers: [], ...more.spec },
    status: { phase: 'Running', podIP: ip, podIPs: [{ ip }], ...more.status },
  });
}
const ask = (...addresses: string[]): string => JSON.stringify(addresses.map((address) => ({ address })));
function seedSlice(annotation: string, namespace = 'shop', name = 'tributary-web'): void {
  server.seed(endpointSlices, {
    metadata: {
      namespace,
      name,
      labels: {
        'kubernetes.io/service-name': 'web',
        'endpointslice.kubernetes.io/managed-by': 'tributary.dev',
      },
      annotations: { [NATIVE]: annotation },
    },
    addressType: 'IPv4',
    endpoints: [],
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  });
}
const source = (): EndpointSlice =>
  server.storage.get(SLICES, 'shop/tributary-web') as unknown as EndpointSlice;
const change = (parts: Partial<EndpointSlice>): unknown =>
  server.storage.update(SLICES, { ...source(), ...parts } as never);
const reask = (annotation: string | undefined): unknown =>
  change({
    metadata: { ...source().metadata, annotations: annotation === undefined ? {} : { [NATIVE]: annotation } },
  });
const made = (namespace?: string): EndpointSlice[] =>
  ([...server.storage.list(SLICES)] as unknown as EndpointSlice[]).filter(
    ({ metadata }) =>
      metadata.labels?.['endpointslice.kubernetes.io/managed-by'] === 'native.tributary.dev' &&
      (namespace === undefined || metadata.namespace === namespace),
  );
const shown = (namespace = 'shop'): string =>
  made(namespace)
    .flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses))
    .join(' ');
const writes = (): string[] => server.log.filter((line) => !line.startsWith('GET '));

test('pods of the peer become endpoints in a slice of ours, owned by that of the peer', async () => {
  seedPod('shop/web-0', '10.0.0.7');
  seedSlice('[{"address":"10.0.0.7","hostname":"web-0","conditions":{"ready":true,"serving":true}}]');
  start();
  await clock.until('there', () => shown() === '10.0.0.7');
  const pod = server.storage.get('pods', 'shop/web-0');
  const { name, uid } = source().metadata;
  expect(made()[0]).toMatchObject({
    metadata: {
      name: `tributary-native-${uid}`,
      labels: {
        'kubernetes.io/service-name': 'web',
        'endpointslice.kubernetes.io/managed-by': 'native.tributary.dev',
      },
      ownerReferences: [{ kind: 'EndpointSlice', name, uid }],
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [
      {
        addresses: ['10.0.0.7'],
        hostname: 'web-0',
        conditions: { ready: true, serving: true },
        nodeName: 'node-1',
        targetRef: { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: pod?.metadata.uid },
      },
    ],
  });
  // The copy is the peer's, who would put it right again.
  expect(made()[0]?.metadata.labels).not.toHaveProperty(['tributary.dev/managed-by']);
  await clock.advance(60_000);
  expect(writes()).toHaveLength(1);
});

test('it follows what the peer asks for, and goes with its slice', async () => {
  seedPod('shop/web-0', '10.0.0.7');
  seedPod('shop/web-1', '10.0.0.8');
  seedSlice(ask('10.0.0.7'));
  start();
  await clock.until('one', () => shown() === '10.0.0.7');
  reask(ask('10.0.0.7', '10.0.0.8'));
  await clock.until('two', () => shown() === '10.0.0.7 10.0.0.8');
  change({ ports: [{ name: 'http', port: 8081, protocol: 'TCP' }] });
  await clock.until('the port', () => made()[0]?.ports?.[0]?.port === 8081);
  reask(undefined);
  await clock.until('none', () => made().length === 0);
  reask(ask('10.0.0.8'));
  await clock.until('again', () => shown() === '10.0.0.8');
  server.storage.remove(SLICES, 'shop/tributary-web');
  await clock.until('gone with it', () => made().length === 0);
});

test('one that was made while nobody looked is put right, and one without a source goes', async () => {
  seedPod('shop/web-0', '10.0.0.7');
  seedSlice(ask('10.0.0.7'));
  start();
  await clock.until('there', () => shown() === '10.0.0.7');
  await parts?.stop();
  const [slice] = made();
  server.storage.update(SLICES, { ...slice, endpoints: [{ addresses: ['10.0.0.99'] }] } as never);
  server.seed(endpointSlices, {
    ...slice,
    metadata: {
      ...slice?.metadata,
      name: 'tributary-native-old',
      uid: 'old',
      ownerReferences: [{ apiVersion: 'v1', kind: 'EndpointSlice', name: 'tributary-old', uid: 'x' }],
    },
  });
  start();
  await clock.until('right again', () => shown() === '10.0.0.7');
});

test('with its pod the endpoint goes, whoever has the address then; and comes with the next pod', async () => {
  seedSlice(ask('10.0.0.7'));
  start();
  await clock.advance(1_000);
  expect(made()).toEqual([]);
  seedPod('shop/web-0', '10.0.0.7');
  await clock.until('there', () => shown() === '10.0.0.7');
  server.storage.remove('pods', 'shop/web-0');
  seedPod('default/ours', '10.0.0.7', { labels: {} });
  await clock.until('gone', () => made().length === 0);
  server.storage.remove('pods', 'default/ours');
  seedPod('shop/web-1', '10.0.0.7');
  await clock.until('again', () => shown() === '10.0.0.7');
  const pod = server.storage.get('pods', 'shop/web-1');
  server.storage.update('pods', { ...pod, status: { ...(pod?.status as object), phase: 'Failed' } } as never);
  await clock.until('it has ended', () => made().length === 0);
});

describe('a peer cannot draw traffic', () => {
  test.each<[string, () => void]>([
    ['to a pod of ours', () => seedPod('default/ours', '10.0.0.7', { labels: {} })],
    ['to one of ours that bears its label', () => seedPod('default/ours', '10.0.0.7')],
    ['to a pod of another peer', () => seedPod('bank/safe', '10.0.0.7')],
    ['to what has no pod: a node, the API server', () => undefined],
    [
      'to a node by a pod on its network',
      () => seedPod('shop/web-0', '10.0.0.7', { spec: { hostNetwork: true } }),
    ],
    [
      'to a pod that has ended, whose address may be given away',
      () => seedPod('shop/web-0', '10.0.0.7', { status: { phase: 'Succeeded' } }),
    ],
    ['to a pod that claims it at home only', () => seedPod('shop/web-0', '', { status: { podIPs: [{}] } })],
  ])('%s', async (_what, seed) => {
    seedPod('shop/mine', '10.0.0.8');
    seed();
    seedSlice(ask('10.0.0.7', '10.0.0.8'));
    start();
    await clock.until('the other', () => shown() === '10.0.0.8');
    expect(made()).toHaveLength(1);
  });

  test.each([
    ['no list', '{"address":"10.0.0.7"}'],
    ['too many', JSON.stringify(Array.from({ length: 1001 }, () => ({ address: '10.0.0.7' })))],
    ['another family', '[{"address":"fd00::7"}]'],
  ])('what it asks for is nothing: %s', async (_what, annotation) => {
    seedPod('shop/web-0', '10.0.0.7');
    seedPod('shop/web-1', 'fd00::7');
    seedSlice(annotation);
    seedSlice(ask('10.0.0.7'), 'depot');
    start();
    await clock.until('the good one', () => shown('depot') === '10.0.0.7');
    await clock.advance(1_000);
    expect(made('shop')).toEqual([]);
  });

  test('in a namespace that is no tenant of a contract nothing is made', async () => {
    seedPod('shop/web-0', '10.0.0.7');
    for (const namespace of ['by-hand', 'default', 'depot']) seedSlice(ask('10.0.0.7'), namespace);
    start();
    await clock.until('in the tenant', () => shown('depot') === '10.0.0.7');
    await clock.advance(1_000);
    expect(made()).toHaveLength(1);
  });

  test('pods times ports are bounded as for other slices, and a pod counts once', async () => {
    const addresses = Array.from({ length: 300 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
    for (const [at, address] of addresses.entries()) seedPod(`shop/web-${at}`, address);
    seedSlice(ask(...addresses, ...addresses));
    const ports = Array.from({ length: 250 }, (_, at) => ({ name: `p${at}`, port: at + 1, protocol: 'TCP' }));
    change({ ports });
    start();
    await clock.until('made', () => made().length === 1);
    expect(made()[0]?.endpoints).toHaveLength(100);
    change({ ports: ports.slice(0, 1) });
    await clock.until('all', () => made()[0]?.endpoints?.length === 300);
  });
});

test('the peer is told of addresses without a pod, after a while; and no more when it has one', async () => {
  const told = (): string | undefined => source().metadata.annotations?.['tributary.dev/no-pod-at'];
  seedPod('shop/web-0', '10.0.0.7');
  seedSlice(ask('10.0.0.7', '10.0.0.9'));
  start();
  const began = clock.now();
  await clock.until('told', () => told() === '10.0.0.9', 4 * TELL_AFTER_MS);
  expect(clock.now() - began).toBeGreaterThanOrEqual(TELL_AFTER_MS);
  seedPod('shop/web-1', '10.0.0.9');
  await clock.until('there', () => shown() === '10.0.0.7 10.0.0.9');
  await clock.until('taken back', () => told() === undefined);
  // A pod that is replaced is nothing to tell of.
  server.storage.remove('pods', 'shop/web-0');
  await clock.advance(TELL_AFTER_MS / 2);
  seedPod('shop/web-2', '10.0.0.7');
  await clock.advance(2 * TELL_AFTER_MS);
  expect(told()).toBeUndefined();
});

test('a namespace that is made anew begins anew: nothing is remembered of the one before', async () => {
  const told = (): string | undefined => source().metadata.annotations?.['tributary.dev/no-pod-at'];
  seedSlice(ask('10.0.0.9'));
  start();
  await clock.until('told', () => told() === '10.0.0.9', 4 * TELL_AFTER_MS);
  const namespace = server.storage.get('namespaces', 'shop');
  if (namespace === undefined) throw new Error('no namespace');
  const deletionTimestamp = new Date(clock.now()).toISOString();
  server.storage.update('namespaces', {
    ...namespace,
    metadata: { ...namespace.metadata, deletionTimestamp },
  });
  await clock.advance(1_000);
  server.storage.remove(SLICES, 'shop/tributary-web');
  await clock.advance(1_000);
  server.storage.remove('namespaces', 'shop');
  await clock.advance(1_000);
  seedTenant('shop', PEER);
  seedSlice(ask('10.0.0.9'));
  const began = clock.now();
  await clock.until('told', () => told() === '10.0.0.9', 4 * TELL_AFTER_MS);
  expect(clock.now() - began).toBeGreaterThanOrEqual(TELL_AFTER_MS);
});

test('pods are watched only where a slice asks for one', async () => {
  seedSlice('[]');
  start();
  await clock.advance(5_000);
  const asked = (): number => server.count(/\/pods\?/u);
  expect(asked()).toBe(0);
  reask(ask('10.0.0.7'));
  await clock.until('now they are', () => asked() > 0);
});

describe('a pod that is in many large slices', () => {
  /** A tenth of all: addresses, and what may be written. */
  const RATE = { burstMiB: 3.2, mibPerMinute: 0.8 } as const;
  const ADDRESSES = Array.from({ length: 100 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
  const COUNT = 40;
  const MIB = 1024 * 1024;
  let state = true;
  const flap = (): void => {
    state = !state;
    const pod = server.storage.get('pods', 'shop/web-0');
    const status = { ...(pod?.status as object), phase: state ? 'Running' : 'Failed' };
    server.storage.update('pods', { ...pod, status } as never);
  };
  const naming = (): number =>
    made().filter(({ endpoints }) => endpoints?.some(({ addresses }) => addresses[0] === ADDRESSES[0]))
      .length;
  const stored = (): number =>
    server.log.filter((line) => /^(?:PUT|POST) .*endpointslices/u.test(line)).length;
  const most = (sinceMs: number): number =>
    (RATE.burstMiB + ((clock.now() - sinceMs) / 60_000) * RATE.mibPerMinute) * MIB;

  test('and comes and goes without end makes us write no more than a budget of bytes; where it has gone, it is in none soon', async () => {
    state = true;
    for (const [at, address] of ADDRESSES.entries()) seedPod(`shop/web-${at}`, address);
    for (let at = 0; at < COUNT; at++) seedSlice(ask(...ADDRESSES), 'shop', `tributary-${at}`);
    const began = clock.now();
    start({ rate: RATE });
    await clock.until('all are there', () => naming() === COUNT);
    const size = JSON.stringify(made()[0]).length;
    for (let time = 0; time < 14; time++) {
      flap();
      await clock.advance(500);
    }
    expect(stored() * size).toBeLessThan(most(began) + size);
    flap();
    expect(state).toBe(false);
    await clock.advance(WITHDRAWN_WITHIN_MS + 1_000);
    expect(naming()).toBe(0);
    flap();
    await clock.until('all are as they should be', () => naming() === COUNT, 5 * 60_000);
    expect(stored() * size).toBeLessThan(most(began) + size);
  });

  test('takes no more room in all than there is for one peer', async () => {
    for (const [at, address] of ADDRESSES.entries()) seedPod(`shop/web-${at}`, address);
    seedSlice(ask(...ADDRESSES), 'shop');
    seedSlice(ask(...ADDRESSES), 'depot');
    start({ mostBytes: 50_000 });
    await clock.until('two are there', () => made().length === 2);
    seedSlice(ask(...ADDRESSES), 'shop', 'tributary-more');
    await clock.advance(10_000);
    expect(made()).toHaveLength(2);
    server.storage.remove(SLICES, 'shop/tributary-web');
    await clock.until(
      'its place is free',
      () => made().length === 2 && made('shop')[0]?.metadata.ownerReferences?.[0]?.name === 'tributary-more',
      6 * 60_000,
    );
  });
});
