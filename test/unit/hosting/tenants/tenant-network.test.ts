import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { endpointSlices, namespaces } from '../../../../src/api/resources.ts';
import { tunnels } from '../../../../src/api/tunnel.ts';
import type { EndpointSlice, Namespace } from '../../../../src/api/wire.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { TenantNetwork, WITHHELD_WITHIN_MS } from '../../../../src/hosting/tenants/tenant-network.ts';
import type { ByteRate } from '../../../../src/hosting/peer-writes.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const PEER = 'a'.repeat(26);
const OTHER = 'b'.repeat(26);
const TUNNELS = 'tunnels.tributary.dev';
const SLICES = 'endpointslices.discovery.k8s.io';
/** Making a certificate takes long on a busy machine. */
const HOOK_TIMEOUT_MS = 30_000;

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let network: TenantNetwork;
beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock, types: [tunnels] });
  client = server.client();
  server.seed(namespaces, {
    metadata: {
      name: 'shop',
      labels: { 'tributary.dev/peer': PEER, 'tributary.dev/tenancy': 'contract' },
    },
  });
  // A person's, for the same peer: not lending's to write to.
  server.seed(namespaces, { metadata: { name: 'theirs', labels: { 'tributary.dev/peer': PEER } } });
}, HOOK_TIMEOUT_MS);
afterEach(async () => {
  await network?.stop();
  await client?.close();
  await server.stop();
});

async function start(more: { rate?: ByteRate } = {}): Promise<void> {
  const common = { client, clock, log: silentLogger };
  network = new TenantNetwork({ ...common, ...more, caches: new Caches(common) });
  network.start(new AbortController().signal);
}

const ready = (status: string, since = clock.now()): object => ({
  type: 'Ready',
  status,
  reason: 'r',
  message: 'm',
  lastTransitionTime: new Date(since).toISOString(),
});
function seedTunnel(name: string, status: string): void {
  server.seed(tunnels, {
    metadata: { name },
    spec: { clusterID: name, access: 'OffloadedPods', transit: 'None' },
    status: {
      views: [{ use: 'Pods', prefix: '10.1.0.0/16', as: '100.99.0.0/16' }],
      conditions: [ready(status)],
    },
  });
}
function change(status: object): void {
  const tunnel = server.storage.get(TUNNELS, PEER);
  if (tunnel === undefined) throw new Error('no tunnel');
  server.storage.update(TUNNELS, { ...tunnel, status: { ...(tunnel.status as object), ...status } });
}
function seedSlice(namespace: string, name = 'web'): void {
  server.seed(endpointSlices, {
    metadata: { namespace, name, labels: { 'endpointslice.kubernetes.io/managed-by': 'tributary.dev' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['100.99.0.1'], conditions: { ready: true } }],
  });
}
const prefixes = (name = 'shop'): string | undefined =>
  (server.storage.get('namespaces', name) as unknown as Namespace).metadata.annotations?.[
    'tributary.dev/peer-prefixes'
  ];
const slice = (namespace = 'shop'): EndpointSlice =>
  server.storage.get(SLICES, `${namespace}/web`) as unknown as EndpointSlice;
const isHeld = (namespace = 'shop'): boolean =>
  slice(namespace).metadata.annotations?.['tributary.dev/withheld'] !== undefined &&
  (slice(namespace).endpoints ?? []).every(({ conditions }) => conditions?.ready === false);
const writes = (): string[] => server.log.filter((line) => !line.startsWith('GET '));

test('the namespace says where the peer may point, as long as there is a tunnel', async () => {
  seedTunnel(PEER, 'True');
  seedTunnel(OTHER, 'True');
  await start();
  await clock.until('it is said', () => prefixes() === '100.99.0.0/16');
  change({ views: [] });
  await clock.until('it is taken back', () => prefixes() === undefined);
  change({ views: [{ use: 'Transit', prefix: '10.8.0.0/16', as: '100.98.0.0/16' }] });
  await clock.until('it is said again', () => prefixes() === '100.98.0.0/16');
  server.storage.remove(TUNNELS, PEER);
  await clock.until('it is taken back', () => prefixes() === undefined);
  expect(prefixes('theirs')).toBeUndefined();
  expect(writes().every((line) => line.startsWith('PATCH /api/v1/namespaces/shop'))).toBe(true);
});

test('endpoints are withheld some seconds after the tunnel went down, and let go at once', async () => {
  seedTunnel(PEER, 'True');
  seedSlice('shop');
  seedSlice('theirs');
  await start();
  await clock.until('it works', () => prefixes() === '100.99.0.0/16');
  const downAt = clock.now();
  change({ conditions: [ready('False')] });
  await clock.until('withheld', () => isHeld());
  expect(clock.now() - downAt).toBeGreaterThan(4_000);
  change({ connection: { rttMs: 3 } });
  change({ conditions: [ready('True')] });
  await clock.until('let go', () => !isHeld());
  const puts = writes().filter((line) => line.includes('endpointslices'));
  expect(puts).toHaveLength(2);
  expect(isHeld('theirs')).toBe(false);
});

test('a tunnel that is up again in time withholds nothing', async () => {
  seedTunnel(PEER, 'True');
  seedSlice('shop');
  await start();
  await clock.until('it works', () => prefixes() === '100.99.0.0/16');
  change({ conditions: [ready('False')] });
  await clock.advance(1_000);
  change({ conditions: [ready('True')] });
  await clock.advance(10_000);
  expect(writes().filter((line) => line.includes('endpointslices'))).toEqual([]);
});

test('found after a restart: down for long, endpoints that say ready', async () => {
  seedTunnel(PEER, 'False');
  change({ conditions: [ready('False', clock.now() - 60_000)] });
  seedSlice('shop');
  await start();
  await clock.until('withheld', () => isHeld());
  await network.stop();
  change({ conditions: [ready('True')] });
  await start();
  await clock.until('let go', () => !isHeld());
});

test('without a tunnel, what is there leads nowhere', async () => {
  seedSlice('shop');
  await start();
  await clock.until('withheld', () => isHeld());
});

test('a tunnel that comes and goes without end has slices written as a budget of bytes allows; none leads into it for long', async () => {
  /** A tenth of all: addresses, and what may be written. */
  const RATE = { burstMiB: 3.2, mibPerMinute: 0.2 } as const;
  const MIB = 1024 * 1024;
  const COUNT = 60;
  const names = Array.from({ length: COUNT }, (_, at) => `web-${at}`);
  const all = (): EndpointSlice[] =>
    names.map((name) => server.storage.get(SLICES, `shop/${name}`) as unknown as EndpointSlice);
  const endpoints = Array.from({ length: 100 }, (_, at) => ({
    addresses: [`100.99.${at >> 8}.${at & 255}`],
    hostname: `web-${at}-${'x'.repeat(40)}`,
    conditions: { ready: true, serving: true },
  }));
  /** As its home does, which pays for it. */
  const say = (): void => {
    for (const slice of all()) server.storage.update(SLICES, { ...slice, endpoints } as never);
  };
  const count = (is: (slice: EndpointSlice) => boolean): number => all().filter(is).length;
  const isOpen = ({ endpoints: open }: EndpointSlice): boolean =>
    (open ?? []).some(({ conditions }) => conditions?.ready !== false);
  const isMarked = ({ metadata }: EndpointSlice): boolean =>
    metadata.annotations?.['tributary.dev/withheld'] !== undefined;
  seedTunnel(PEER, 'True');
  for (const name of names) seedSlice('shop', name);
  await start({ rate: RATE });
  const began = clock.now();
  await clock.until('it works', () => prefixes() === '100.99.0.0/16');
  say();
  const size = JSON.stringify(all()[0]).length;
  let whole = 0;
  for (let time = 0; time < 12; time++) {
    change({ conditions: [ready('False', clock.now() - 60_000)] });
    await clock.advance(WITHHELD_WITHIN_MS);
    expect(count(isOpen)).toBe(0);
    whole += count((slice) => isMarked(slice) && (slice.endpoints ?? []).length > 0);
    change({ conditions: [ready('True')] });
    await clock.advance(1_000);
    say();
  }
  const mostMiB = RATE.burstMiB + ((clock.now() - began) / 60_000) * RATE.mibPerMinute;
  expect(whole * size).toBeLessThan(mostMiB * MIB + size);
  await clock.until('all are let go in the end', () => count(isMarked) === 0, 30 * 60_000);
  say();
  await clock.advance(10_000);
  expect(count(isOpen)).toBe(COUNT);
});
