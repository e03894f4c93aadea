import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { NETWORK_CONFIG_MAP, type OwnNetwork, ownNetworkData } from '../../../../src/api/own-network.ts';
import { configMaps, namespaces, pods, type ResourceType } from '../../../../src/api/resources.ts';
import { tunnels } from '../../../../src/api/tunnel.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import type { KubeObject, Pod } from '../../../../src/api/wire.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { GatewayCaches } from '../../../../src/network/gateway/caches.ts';
import { MOST_STRAYS, StrayPods } from '../../../../src/network/gateway/stray-pods.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { NETWORK, tunnelOf } from '../../../support/network/tunnels.ts';

const NAMESPACE = 'tributary-system';
const REF = { namespace: NAMESPACE, name: NETWORK_CONFIG_MAP };

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let strays: StrayPods;
let lifecycle: Lifecycle;
let changes: number;
let warnings: number;

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock, types: [tunnels, virtualNodes] as ResourceType<KubeObject>[] });
  client = server.client();
  await client.create(namespaces, { metadata: { name: NAMESPACE } });
  await client.create(namespaces, { metadata: { name: 'shop' } });
  [changes, warnings] = [0, 0];
});

afterEach(async () => {
  await lifecycle.stop();
  await client.close();
  await server.stop();
});

async function start(network: OwnNetwork = NETWORK): Promise<void> {
  await client.create(configMaps, { metadata: REF, data: ownNetworkData(network) });
  const caches = new GatewayCaches(new Caches({ client, clock, log: silentLogger }), NAMESPACE);
  strays = new StrayPods({
    client,
    clock,
    log: { ...silentLogger, warn: () => void warnings++, named: () => silentLogger },
    caches,
    isVirtual: (node) => node === 'virtual',
    onChange: () => void changes++,
  });
  const components = [caches.network, caches.tunnels, strays];
  lifecycle = new Lifecycle(components, { clock, log: silentLogger, stopDeadlineMs: 5000 });
  await lifecycle.start(new AbortController().signal);
}

const pod = (name: string, nodeName: string, ip: string, more: Partial<Pod['spec']> = {}): Pod => ({
  metadata: { namespace: 'shop', name, uid: name, resourceVersion: '1', creationTimestamp: '' },
  spec: { containers: [], nodeName, ...more },
  status: { phase: 'Running', podIPs: [{ ip }] },
});
const seed = (...given: Parameters<typeof pod>): void => void server.seed(pods, pod(...given));
/** As a kubelet does when it has ended. */
const remove = async (name: string): Promise<unknown> =>
  client.delete(pods, { namespace: 'shop', name }, { gracePeriodSeconds: 0 });
const known = async (): Promise<void> => clock.until('the pods are known', () => strays.isKnown);
const ways = (): [string, string][] => [...strays.ways].toSorted(([a], [b]) => (a < b ? -1 : 1));
const listed = (): number => server.count(/^GET .*\/pods/);

test('tells the pods that are not where the CIDRs of the nodes say, as they come and go', async () => {
  server.seed(tunnels, tunnelOf('p'));
  seed('at-home', 'n1', '10.1.0.5');
  seed('elsewhere', 'n2', '10.1.0.6');
  seed('nowhere', 'n2', '10.1.9.7');
  seed('on-the-host', 'n2', '10.1.0.8', { hostNetwork: true });
  seed('abroad', 'virtual', '10.1.0.9');
  await start();
  await known();
  expect(ways()).toEqual([
    ['10.1.0.6', 'n2'],
    ['10.1.9.7', 'n2'],
  ]);
  // It ends, and is there no more than one that is gone.
  const ended = { type: 'merge', body: { status: { phase: 'Succeeded' } } } as const;
  await client.patch(pods, { namespace: 'shop', name: 'elsewhere' }, ended, { subresource: 'status' });
  await clock.until('one is left', () => strays.ways.size === 1);
  await remove('nowhere');
  await clock.until('none is left', () => strays.ways.size === 0);
});

test('only what changes a route is told', async () => {
  server.seed(tunnels, tunnelOf('p'));
  await start();
  await known();
  const before = changes;
  for (let number = 1; number <= 50; number++) seed(`pod-${number}`, 'n1', `10.1.0.${number + 10}`);
  seed('stray', 'n2', '10.1.0.200');
  await clock.until('it is known', () => strays.ways.size === 1);
  expect(changes).toBe(before + 1);
  for (let number = 1; number <= 50; number++) seed(`stray-${number}`, 'n2', `10.1.9.${number}`);
  await clock.until('all are known', () => strays.ways.size === 51);
  await clock.advance(2000);
  // The first at once, and the others together.
  expect(changes).toBeLessThanOrEqual(before + 3);
});

test('a pod that claims what another one has gets nothing, until that one is gone', async () => {
  server.seed(tunnels, tunnelOf('p'));
  seed('owner', 'n1', '10.1.0.5');
  await start();
  await known();
  seed('thief', 'n2', '10.1.0.5');
  seed('stray', 'n2', '10.1.0.6');
  await clock.until('the later one is known', () => strays.ways.size === 1);
  expect(ways()).toEqual([['10.1.0.6', 'n2']]);
  await remove('owner');
  await clock.until('it is free', () => strays.ways.size === 2);
});

test('nobody is asked for pods while there is no tunnel, or no other node', async () => {
  seed('stray', 'n1', '10.1.9.5');
  await start({ ...NETWORK, nodes: NETWORK.nodes.slice(0, 1) });
  server.seed(tunnels, tunnelOf('p'));
  await clock.advance(5000);
  expect({ known: strays.isKnown, ways: ways(), listed: listed() }).toEqual({
    known: true,
    ways: [],
    listed: 0,
  });
  const tell = async (network: OwnNetwork): Promise<unknown> =>
    client.patch(configMaps, REF, { type: 'merge', body: { data: ownNetworkData(network) } });
  await tell(NETWORK);
  await clock.until('it is known', () => strays.ways.get('10.1.9.5') === 'n1');
  // The CIDR of its node comes later.
  const [one, two] = NETWORK.nodes;
  if (one === undefined || two === undefined) throw new Error('no nodes');
  await tell({ ...NETWORK, nodes: [{ ...one, pods: [...one.pods, '10.1.9.0/24'] }, two] });
  await clock.until('it is no stray', () => strays.ways.size === 0);
  await tell(NETWORK);
  await clock.until('it is one again', () => strays.ways.size === 1);
  await client.delete(tunnels, { name: 'p' });
  await clock.until('nobody needs it', () => strays.ways.size === 0);
  expect(strays.isKnown).toBe(true);
});

test('a host waits for the pods, but not for ever', async () => {
  server.seed(tunnels, tunnelOf('p'));
  seed('stray', 'n2', '10.1.9.5');
  server.fault({ match: ({ path }) => path.includes('/pods'), status: 403, times: Infinity });
  await start();
  await clock.advance(20_000);
  expect(strays.isKnown).toBe(false);
  await clock.advance(20_000);
  expect(strays.isKnown).toBe(true);
  expect(ways()).toEqual([]);
});

test('of too many, some have no route, always the same ones, and that is said once', async () => {
  server.seed(tunnels, tunnelOf('p'));
  const addresses = Array.from(
    { length: MOST_STRAYS + 2 },
    (_, n) => `10.1.${100 + Math.floor(n / 250)}.${n % 250}`,
  );
  for (const [number, ip] of addresses.entries()) seed(`pod-${number}`, 'n2', ip);
  await start();
  await known();
  expect(strays.ways.size).toBe(MOST_STRAYS);
  const missing = addresses.filter((address) => !strays.ways.has(address));
  expect(missing).toEqual(addresses.toSorted().slice(-2).toSorted());
  seed('at-home', 'n1', '10.1.0.5');
  await remove('pod-0');
  await clock.until('another one has its place', () => missing.some((address) => strays.ways.has(address)));
  expect(warnings).toBe(1);
});
