import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { endpointSlices, services } from '../../../../src/api/resources.ts';
import type { EndpointSlice } from '../../../../src/api/wire.ts';
import { FakeNetwork } from '../support/network.ts';
import { World } from '../support/world.ts';

/** A Service without a selector, and endpoints that somebody has written: some of them run over there. */

const SLICES = 'endpointslices.discovery.k8s.io';
const NATIVE = 'tributary.dev/native-endpoints';

let world: World;
beforeEach(async () => {
  world = await new World().up();
  world.network = new FakeNetwork();
  world.home.seed(services, {
    metadata: { namespace: 'shop', name: 'web' },
    spec: { type: 'ClusterIP', ports: [{ port: 80 }] },
  });
  addSlice(['100.64.9.9', '10.1.0.1']);
});
afterEach(async () => world.down());

function addSlice(addresses: string[]): void {
  world.home.seed(endpointSlices, {
    metadata: { namespace: 'shop', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: '', port: 80, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  });
}
const copy = (): EndpointSlice | undefined =>
  world.foreign.storage.get(SLICES, 'tenant/tributary-web-1') as EndpointSlice | undefined;
const asked = (): string => copy()?.metadata.annotations?.[NATIVE] ?? '';
const shown = (): string | undefined =>
  copy()
    ?.endpoints?.map(({ addresses }) => addresses[0])
    .join();
const writes = (): number => world.foreign.count(/^(POST|PUT) .*endpointslices/u);

test('are asked for in one write, come and go with what is written at home', async () => {
  await world.start();
  await world.until('the copy', () => shown() === '100.99.0.1');
  expect(asked()).toBe('[{"address":"10.0.9.9"}]');
  await world.clock.advance(60_000);
  expect(writes()).toBe(1);
  const stored = world.home.storage.get(SLICES, 'shop/web-1');
  if (stored === undefined) throw new Error('no slice');
  world.home.storage.update(SLICES, { ...stored, endpoints: [{ addresses: ['10.1.0.1'] }] });
  await world.until('no pod is asked for', () => asked() === '');
  world.home.storage.remove(SLICES, 'shop/web-1');
  await world.until('it has gone', () => copy() === undefined);
});

test('a provider that knows nothing of that gets the others, and people are told', async () => {
  const has = (body: unknown): boolean => JSON.stringify(body ?? null).includes(NATIVE);
  world.foreign.fault({
    match: ({ path, body }) => path.includes('endpointslices') && has(body),
    times: Infinity,
    status: 403,
    message: 'of the annotations of tributary.dev peers write these only',
  });
  await world.start();
  await world.until('the endpoint at home is there', () => shown() === '100.99.0.1');
  expect(asked()).toBe('');
  await world.until('it is told', () =>
    world.events.some((event) => event.includes('peers write these only')),
  );
  const stored = world.home.storage.get(SLICES, 'shop/web-1');
  if (stored === undefined) throw new Error('no slice');
  world.home.storage.update(SLICES, { ...stored, endpoints: [{ addresses: ['100.64.9.9'] }] });
  await world.until('it leaves', () => shown() === '');
});
