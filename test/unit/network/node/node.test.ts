import { afterEach, beforeEach, expect, test } from '@jest/globals';

import {
  GATEWAY_CONFIG_MAP,
  gatewayFactsData,
  NETWORK_CONFIG_MAP,
  ownNetworkData,
} from '../../../../src/api/own-network.ts';
import { configMaps, leases, type ResourceType } from '../../../../src/api/resources.ts';
import { tunnels } from '../../../../src/api/tunnel.ts';
import type { KubeObject, Lease } from '../../../../src/api/wire.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { FENCE_MS, fenceIn, gatewayNodeOf, NodeNetwork } from '../../../../src/network/node/node.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { RecordingHost } from '../../../support/network/recording-host.ts';
import { NETWORK, tunnelOf } from '../../../support/network/tunnels.ts';

const NAMESPACE = 'tributary-system';

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let lifecycles: Lifecycle[];

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock, types: [tunnels] as ResourceType<KubeObject>[] });
  client = server.client();
  lifecycles = [];
  const data = ownNetworkData(NETWORK);
  await client.create(configMaps, { metadata: { namespace: NAMESPACE, name: NETWORK_CONFIG_MAP }, data });
});

afterEach(async () => {
  for (const lifecycle of lifecycles) await lifecycle.stop();
  await client.close();
  await server.stop();
});

async function start(nodeName: string): Promise<RecordingHost> {
  const host = new RecordingHost();
  const network = new NodeNetwork({
    caches: new Caches({ client, clock, log: silentLogger }),
    host,
    clock,
    log: silentLogger,
    namespace: NAMESPACE,
    nodeName,
    link: 'tributary',
    vxlanLink: 'tributary-vx',
    mtu: 1420,
  });
  const options = { clock, log: silentLogger, stopDeadlineMs: 5000 };
  const lifecycle = new Lifecycle(network.components(), options);
  lifecycles.push(lifecycle);
  await lifecycle.start(new AbortController().signal);
  return host;
}

async function hold(holderIdentity: string): Promise<void> {
  const metadata = { namespace: NAMESPACE, name: 'tributary-gateway' };
  const spec = { holderIdentity, renewTime: new Date(clock.now()).toISOString().replace('Z', '000Z') };
  const list = await client.list(leases, { namespace: NAMESPACE });
  if (list.items.length === 0) await client.create(leases, { metadata, spec });
  else await client.patch(leases, metadata, { type: 'merge', body: { spec } });
}

/** What a gateway tells that is active on that node; of an earlier version: nothing about that. */
async function tell(node: string | undefined): Promise<void> {
  const ref = { namespace: NAMESPACE, name: GATEWAY_CONFIG_MAP };
  const data = gatewayFactsData({ publicKey: 'k', endpoints: [], ...(node !== undefined && { node }) });
  const { items } = await client.list(configMaps, { namespace: NAMESPACE });
  if (items.some(({ metadata }) => metadata.name === ref.name))
    await client.patch(configMaps, ref, { type: 'merge', body: { data } });
  else await client.create(configMaps, { metadata: ref, data });
}

/** Next hops of the routes to the peers' views. */
const hopsOf = (host: RecordingHost): (string | undefined)[] => {
  const routes = host.last?.routes ?? [];
  const hops = routes.flatMap(({ to }) => (typeof to === 'string' ? [] : [to.gateway]));
  return [...new Set(hops.filter((hop) => hop !== undefined))];
};

const lease = (holderIdentity?: string): Lease => ({ spec: { holderIdentity } }) as unknown as Lease;

test.each<[string, Lease | undefined, string | undefined, string | undefined]>([
  ['no lease yet', undefined, undefined, undefined],
  ['held', lease('n2'), undefined, 'n2'],
  ['taken over', lease('n2'), 'n1', 'n2'],
  ['given up: the host of before goes on forwarding', lease(''), 'n1', 'n1'],
  ['deleted: likewise', undefined, 'n1', 'n1'],
])('the active gateway: %s', (_case, given, before, wanted) => {
  expect(gatewayNodeOf(given, before)).toBe(wanted);
});

test.each<[string, Partial<Parameters<typeof fenceIn>[0]>, number | undefined]>([
  ['nobody holds it', { holder: undefined }, undefined],
  ['we hold it', { holder: 'n1' }, undefined],
  ['another one, just now', {}, FENCE_MS],
  ['another one, for a moment', { now: 1100 }, FENCE_MS - 100],
  ['another one, for long', { now: 9000 }, 0],
  ['it is done', { now: 9000, cleanedFor: 'n2' }, undefined],
  ['it was done for an earlier one', { now: 9000, cleanedFor: 'n3' }, 0],
])('the fence: %s', (_case, given, wanted) => {
  const facts = { now: 1000, since: 1000, nodeName: 'n1', holder: 'n2', cleanedFor: undefined, ...given };
  expect(fenceIn(facts)).toBe(wanted);
});

test('the way follows the holder of the lease', async () => {
  server.seed(tunnels, tunnelOf('p'));
  await hold('n2');
  const host = await start('n1');
  await clock.until('by n2', () => hopsOf(host).join() === '10.70.0.3');
  expect(host.last?.owner).toBe('node');
  await hold('n1');
  await clock.until('its own', () => hopsOf(host).length === 0);
  await hold('');
  host.changed();
  await hold('n2');
  await clock.until('by n2 again', () => hopsOf(host).join() === '10.70.0.3');
});

test('what a gateway left here is removed when another node has the lease, once, whether or not it is renewed', async () => {
  await hold('n1');
  const host = await start('n1');
  await clock.until('set', () => host.sets.length > 0);
  expect(host.cleaned).toEqual([]);
  await hold('n2');
  await clock.until('cleaned', () => host.cleaned.length > 0);
  for (let renewal = 0; renewal < 5; renewal++) await hold('n2');
  const before = host.sets.length;
  host.changed();
  await clock.until('a look', () => host.sets.length > before);
  expect(host.cleaned).toEqual(['gateway']);
});

test('one that comes back in time is not fenced', async () => {
  await hold('n1');
  const host = await start('n1');
  await hold('n2');
  await hold('n1');
  await hold('n1');
  const later = await start('n2');
  await clock.until('the other was', () => later.cleaned.length > 0);
  expect(host.cleaned).toEqual([]);
});

test('the way follows what the gateway tells, and nobody asks for its lease', async () => {
  server.seed(tunnels, tunnelOf('p'));
  await hold('n1');
  await tell('n2');
  const host = await start('n1');
  await clock.until('by n2', () => hopsOf(host).join() === '10.70.0.3');
  await tell('n1');
  await clock.until('its own', () => hopsOf(host).length === 0);
  await tell('n2');
  await clock.until('by n2 again', () => hopsOf(host).join() === '10.70.0.3');
  await clock.until('cleaned', () => host.cleaned.length > 0);
  expect(server.count(/leases\?.*fieldSelector/)).toBe(0);
});

test('the lease counts as long as the gateway tells nothing else, and again after it', async () => {
  server.seed(tunnels, tunnelOf('p'));
  await hold('n2');
  await tell(undefined);
  const host = await start('n1');
  await clock.until('by n2', () => hopsOf(host).join() === '10.70.0.3');
  await tell('n1');
  await clock.until('its own', () => hopsOf(host).length === 0);
  await hold('n2');
  await tell(undefined);
  await clock.until('by n2 again', () => hopsOf(host).join() === '10.70.0.3');
});

test('renewals of the lease wake nobody', async () => {
  await hold('n2');
  const host = await start('n1');
  await clock.until('cleaned', () => host.cleaned.length > 0);
  const before = host.sets.length;
  for (let renewal = 0; renewal < 20; renewal++) await hold('n2');
  const other = await start('n3');
  await clock.until('watched', () => other.sets.length > 0);
  expect(host.sets).toHaveLength(before);
});

test('without our own ranges nothing is touched, and stopping leaves all as it is', async () => {
  const host = await start('n1');
  await clock.until('set', () => host.sets.length > 0);
  await client.delete(configMaps, { namespace: NAMESPACE, name: NETWORK_CONFIG_MAP });
  const before = host.sets.length;
  server.seed(tunnels, tunnelOf('p'));
  host.changed();
  await client.create(configMaps, {
    metadata: { namespace: NAMESPACE, name: NETWORK_CONFIG_MAP },
    data: ownNetworkData(NETWORK),
  });
  await clock.until('set again', () => host.sets.length > before);
  for (const set of host.sets) expect(set.links).not.toEqual([]);
  await lifecycles.pop()?.stop();
  expect(host.cleaned).toEqual([]);
});
