import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { configMaps, endpointSlices } from '../../../../src/api/resources.ts';
import type { KubeClient } from '../../../../src/kube/client.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { ApiAccessFinder, type ApiAccessOptions } from '../../../../src/peering/lending/api-access.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

let api: FakeApi;
let client: KubeClient;
let clock: FakeClock;
let finder: ApiAccessFinder | undefined;

beforeEach(async () => {
  clock = new FakeClock();
  api = new FakeApi({ clock });
  client = api.client();
});

afterEach(async () => {
  await finder?.stop();
  await client.close();
  await api.stop();
});

async function find(options: Partial<ApiAccessOptions> = {}): Promise<ApiAccessFinder> {
  const systemNamespace = 'tributary-system';
  finder = new ApiAccessFinder({ client, clock, log: silentLogger, systemNamespace, ...options });
  finder.start();
  return finder;
}

const slice = (addresses: string[], port = 6443): object => ({
  metadata: { namespace: 'default', name: 'kubernetes' },
  addressType: 'IPv4',
  ports: [{ name: 'https', port }],
  endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
});

test('what people say is believed, and nothing is looked for', async () => {
  const given = { server: 'https://api.example' };
  expect((await find({ given })).current).toEqual(given);
  expect(api.log).toEqual([]);
});

test('the address behind the Service kubernetes, with the authority that every namespace has', async () => {
  api.seed(endpointSlices, slice(['10.0.0.9', '10.0.0.1']));
  api.seed(configMaps, {
    metadata: { namespace: 'tributary-system', name: 'kube-root-ca.crt' },
    data: { 'ca.crt': 'PEM' },
  });
  const found = await find();
  await clock.until('found', () => found.current !== undefined);
  expect(found.current).toEqual({
    server: 'https://10.0.0.1:6443',
    ca: 'PEM',
    serverName: 'kubernetes.default.svc',
  });
});

test('an address that goes is replaced, one that stays is kept, and whoever listens hears of it', async () => {
  api.seed(endpointSlices, slice(['10.0.0.5', '10.0.0.9']));
  let changes = 0;
  const found = await find();
  found.onChange(() => changes++);
  await clock.until('found', () => found.current?.server === 'https://10.0.0.5:6443');
  const move = async (addresses: string[]): Promise<void> => {
    const body = slice(addresses);
    await client.patch(endpointSlices, { namespace: 'default', name: 'kubernetes' }, { type: 'merge', body });
    await clock.advance(60_000);
  };
  await move(['10.0.0.1', '10.0.0.5']);
  await move(['fd00::1']);
  await clock.until('moved', () => found.current?.server === 'https://[fd00::1]:6443');
  expect(changes).toBe(2);
});

test('an API server that restarts, and is not listed for a while, is where it was', async () => {
  api.seed(endpointSlices, slice(['10.0.0.5']));
  const found = await find({ own: { server: 'https://10.96.0.1' } });
  await clock.until('found', () => found.current?.server === 'https://10.0.0.5:6443');
  const before = found.current;
  const body = slice([]);
  await client.patch(endpointSlices, { namespace: 'default', name: 'kubernetes' }, { type: 'merge', body });
  const asked = api.count(/configmaps/);
  await clock.until('looked for twice more', () => api.count(/configmaps/) >= asked + 2, 600_000);
  expect(found.current).toEqual(before);
});

test('where the cluster shows nothing, the way we go ourselves; where there is none, it is looked for again', async () => {
  const own = { server: 'https://own.example', ca: 'OWN' };
  const found = await find({ own });
  await clock.until('found', () => found.current?.server === own.server);
  await found.stop();
  const again = await find();
  await clock.until('asked', () => api.count(/endpointslices/) === 2);
  expect(again.current).toBeUndefined();
  api.seed(endpointSlices, slice(['10.0.0.1']));
  await clock.advance(2000);
  await clock.until('found', async () => {
    await clock.advance(2000);
    return again.current?.server === 'https://10.0.0.1:6443';
  });
});
