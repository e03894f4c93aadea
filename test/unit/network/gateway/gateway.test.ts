import { afterEach, beforeEach, expect, test } from '@jest/globals';

import { NETWORK_CONFIG_MAP, ownNetworkData, readGatewayFacts } from '../../../../src/api/own-network.ts';
import { configMaps, namespaces, pods, type ResourceType } from '../../../../src/api/resources.ts';
import { type Tunnel, tunnels } from '../../../../src/api/tunnel.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import type { KubeObject } from '../../../../src/api/wire.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Gateway } from '../../../../src/network/gateway/gateway.ts';
import type { GatewayOptions } from '../../../../src/network/gateway/options.ts';
import type { TunnelSample } from '../../../../src/network/gateway/reports.ts';
import { generateKey } from '../../../../src/network/host/wireguard/wireguard.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { RecordingHost } from '../../../support/network/recording-host.ts';
import { NETWORK, tunnelOf } from '../../../support/network/tunnels.ts';
import { FakeProber } from './support/fake-prober.ts';

const NAMESPACE = 'tributary-system';
const TYPES = [tunnels, virtualNodes] as ResourceType<KubeObject>[];

interface Running {
  host: RecordingHost;
  prober: FakeProber;
  events: string[];
  samples: () => ReadonlyMap<string, TunnelSample>;
  peers: () => string[];
  address: () => string | undefined;
  stop: () => Promise<void>;
}

let clock: FakeClock;
let server: FakeApi;
let client: HttpClient;
let running: Running[];

beforeEach(async () => {
  clock = new FakeClock();
  server = new FakeApi({ clock, types: TYPES });
  client = server.client();
  running = [];
  await client.create(namespaces, { metadata: { name: NAMESPACE } });
});

afterEach(async () => {
  for (const gateway of running) await gateway.stop();
  await client.close();
  await server.stop();
});

async function start(options: Partial<GatewayOptions> = {}): Promise<Running> {
  const host = new RecordingHost();
  const prober = new FakeProber(clock);
  const events: string[] = [];
  let samples: ReadonlyMap<string, TunnelSample> = new Map();
  let address: string | undefined;
  const gateway = new Gateway({
    client,
    caches: new Caches({ client, clock, log: silentLogger }),
    host,
    prober,
    responder: { setAddress: (given) => (address = given) },
    nodes: { knock: async () => Promise.resolve(true), show: () => undefined },
    lookUp: async () => Promise.resolve([]),
    clock,
    log: silentLogger,
    events: {
      event: (subject, type, reason) => void events.push(`${subject.metadata.name} ${type} ${reason}`),
    },
    metrics: { show: (given) => (samples = given) },
    namespace: NAMESPACE,
    nodeName: 'n1',
    link: 'tributary',
    vxlanLink: 'tributary-vx',
    mtu: 1420,
    port: 51820,
    probeSeconds: 1,
    leading: () => true,
    ...options,
  });
  const lifecycle = new Lifecycle([...gateway.caches(), ...gateway.components()], {
    clock,
    log: silentLogger,
    stopDeadlineMs: 5000,
  });
  await lifecycle.start(new AbortController().signal);
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    await lifecycle.stop();
  };
  const all = {
    host,
    prober,
    events,
    samples: () => samples,
    address: () => address,
    peers: () => gateway.peers(),
    stop,
  };
  running.push(all);
  return all;
}

async function tellNetwork(network = NETWORK): Promise<void> {
  const data = ownNetworkData(network);
  await client.create(configMaps, { metadata: { namespace: NAMESPACE, name: NETWORK_CONFIG_MAP }, data });
}

function seedTunnel(name: string, more: Parameters<typeof tunnelOf>[1] = {}): Tunnel {
  const tunnel = tunnelOf(name, more);
  server.seed(tunnels, tunnel);
  return tunnel;
}

const stored = async (name: string): Promise<Tunnel> => client.get(tunnels, { name });
const reasonOf = ({ status }: Tunnel, wanted: string): string | undefined =>
  status?.conditions?.find(({ type }) => type === wanted)?.reason;

async function facts(): Promise<ReturnType<typeof readGatewayFacts>> {
  const list = await client.list(configMaps, { namespace: NAMESPACE });
  return readGatewayFacts(list.items.find(({ metadata }) => metadata.name === 'tributary-gateway')?.data);
}

test('nothing is touched before our own ranges are known; then the host is set and the key told', async () => {
  const { host, address } = await start();
  host.changed();
  expect(host.sets).toEqual([]);
  await tellNetwork();
  await clock.until('set', () => host.last !== undefined);
  await clock.until('told', async () => (await facts()) !== undefined);
  expect(await facts()).toMatchObject({ endpoints: ['172.30.0.11:51820'] });
  expect(host.last?.wireguard).toMatchObject({ link: 'tributary', port: 51820 });
  await clock.until('the responder has its address', () => address() === '10.70.0.1');
});

test('a peer is dialled, probed and reported', async () => {
  await tellNetwork();
  const tunnel = seedTunnel('p');
  const { host, prober, events, samples, peers } = await start();
  const publicKey = tunnel.spec.peer?.publicKey ?? '';
  await clock.until('the peer is set', () => host.last?.wireguard?.peers[0]?.endpoint === '192.0.2.1:51820');
  expect(host.last?.wireguard?.peers[0]).toMatchObject({ publicKey, keepalive: 25 });
  await clock.until('it is a target', () => prober.targets.length === 1);
  expect(prober.targets[0]).toMatchObject({ clusterID: 'p', address: '100.65.0.1', source: '10.70.0.1' });
  host.peers = [
    { publicKey, endpoint: '192.0.2.1:51820', handshakeMs: clock.now(), receivedBytes: 5, sentBytes: 6 },
  ];
  prober.answer('p', { mtu: 1400 });
  await clock.until('it is ready', async () => reasonOf(await stored('p'), 'Ready') === 'AsExpected');
  const { status } = await stored('p');
  expect(status?.connection).toMatchObject({ gateway: 'n1', endpoint: '192.0.2.1:51820', rttMs: 1 });
  expect(status?.views).toEqual(tunnel.status?.views);
  await clock.until('an event', () => events.includes('p Normal TunnelReady'));
  await clock.until('metrics', () => samples().get('p')?.receivedBytes === 5);
  expect(samples().get('p')).toMatchObject({ up: true, sentBytes: 6, mtu: 1400 });
  expect(peers()).toEqual(['p']);
  // While all is well WireGuard is read rarely, and at once when a probe is missed.
  prober.isCalm = true;
  await clock.advance(10_000);
  const [first] = host.peers;
  if (first !== undefined) host.peers = [{ ...first, receivedBytes: 8 }];
  await clock.advance(0);
  expect(samples().get('p')?.receivedBytes).toBe(5);
  for (const listener of prober.misses) listener('p');
  await clock.until('it is read', () => samples().get('p')?.receivedBytes === 8, 0);
});

test('a peer is not probed before its rules and routes are there, nor while it is seen, or sees us, elsewhere', async () => {
  await tellNetwork();
  const { host, prober } = await start();
  await clock.until('the host is set', () => host.last !== undefined);
  let { promise, resolve } = Promise.withResolvers<void>();
  host.free = promise;
  const tunnel = seedTunnel('p');
  await clock.until('the routes are being set', () => host.last?.wireguard?.peers.length === 1);
  await clock.advance(5000);
  expect(prober.targets).toEqual([]);
  resolve();
  await clock.until('it is a target', () => prober.targets.length === 1);

  const change = async (body: object, options: { subresource?: 'status' } = {}): Promise<void> => {
    ({ promise, resolve } = Promise.withResolvers<void>());
    host.free = promise;
    await client.patch(tunnels, { name: 'p' }, { type: 'merge', body }, options);
    await clock.until('no target', () => prober.targets.length === 0);
  };
  const views = tunnel.status?.views?.map((view) => ({ ...view, as: view.as.replace('100.65.', '100.66.') }));
  await change({ status: { views } }, { subresource: 'status' });
  resolve();
  await clock.until('it is a target again', () => prober.targets[0]?.address === '100.66.0.1');

  const { seenAs } = tunnel.spec;
  const other = seenAs?.map((pair) => ({ ...pair, as: pair.as.replace('10.66.', '10.67.') }));
  expect(prober.targets[0]?.as).toBe('10.66.0.1');
  host.isUnfiltered = true;
  await change({ spec: { seenAs: other } });
  resolve();
  await clock.advance(5000);
  expect(prober.targets).toEqual([]);
  host.isUnfiltered = false;
  host.changed();
  await clock.until('it is asked as what it sees', () => prober.targets[0]?.as === '10.67.0.1');
  // What was right before is not while the host is being changed.
  await change({ spec: { seenAs } });
  const free = resolve;
  await change({ spec: { seenAs: other } });
  await clock.advance(5000);
  expect(prober.targets).toEqual([]);
  free();
  resolve();
  await clock.until('it is asked again', () => prober.targets[0]?.as === '10.67.0.1');
});

test('a peer that sees as much of us as it was told sees enough', async () => {
  const all = Array.from({ length: 300 }, (_, n) => `10.${128 + (n >> 8)}.${n & 255}.0/25`);
  await tellNetwork({ ...NETWORK, pods: all });
  const told = [...all.slice(0, 256), NETWORK.external];
  seedTunnel('p', { spec: { seenAs: told.map((prefix) => ({ prefix, as: prefix })) } });
  const { prober } = await start();
  prober.answer('p');
  await clock.until('judged', async () => reasonOf(await stored('p'), 'AddressesAssigned') !== undefined);
  expect(reasonOf(await stored('p'), 'AddressesAssigned')).toBe('AsExpected');
});

test('no peer is dialled through a tunnel', async () => {
  await tellNetwork();
  const views = [{ prefix: '10.9.0.0/16', as: '10.9.0.0/16', use: 'Pods' as const }];
  const from = (endpoint: string): Tunnel['spec']['peer'] & object => ({
    publicKey: generateKey().publicKey,
    endpoints: [endpoint],
    pods: ['10.9.0.0/16'],
    external: [],
  });
  seedTunnel('p', { spec: { peer: from('10.9.1.1:51820') }, status: { views } });
  seedTunnel('q', { spec: { peer: from('10.9.1.2:51820') }, status: { views: [] } });
  seedTunnel('r', { spec: { peer: from('192.0.2.7:51820') }, status: { views: [] } });
  const { host } = await start();
  await clock.until('set', () => host.last?.wireguard?.peers.length === 3);
  expect(host.last?.wireguard?.peers.flatMap(({ endpoint }) => endpoint ?? [])).toEqual(['192.0.2.7:51820']);
});

test('a peer that has moved into a tunnel is taken out of WireGuard, and begins where it said it is', async () => {
  await tellNetwork();
  const tunnel = seedTunnel('p');
  const publicKey = tunnel.spec.peer?.publicKey ?? '';
  const warned: unknown[] = [];
  const log = { ...silentLogger, warn: (_text: string, fields: unknown) => void warned.push(fields) };
  const { host, prober } = await start({ log: { ...log, named: () => log } });
  const peers = (): unknown => host.last?.wireguard?.peers.map(({ endpoint }) => endpoint);
  await clock.until('dialled', () => String(peers()) === '192.0.2.1:51820');
  const routes = host.last?.routes;
  // What it has learnt by a fresh handshake `wg` keeps, whatever endpoint it is given again.
  host.peers = [
    { publicKey, endpoint: '100.64.3.4:7', handshakeMs: clock.now(), receivedBytes: 5, sentBytes: 6 },
  ];
  prober.answer('p');
  await clock.until('taken out', () => Array.isArray(peers()) && String(peers()) === '');
  expect(host.last?.routes).toEqual(routes);
  expect(warned).toContainEqual({ tunnel: 'p', endpoint: '100.64.3.4:7' });
  host.peers = [];
  await clock.until('dialled again', () => String(peers()) === '192.0.2.1:51820');
});

test('what fails is said once, and no number is written for its own sake', async () => {
  await tellNetwork();
  seedTunnel('p');
  const { host, events, prober } = await start();
  host.problems = [{ reason: 'NoWireGuard', message: 'no WireGuard here' }];
  host.changed();
  await clock.until('the cause', async () => reasonOf(await stored('p'), 'Ready') === 'WireGuardNotRunning');
  const writes = (): number => server.count(/^PATCH .*tunnels\/p\/status/);
  const before = writes();
  for (let look = 0; look < 20; look++) prober.answer('p', { alive: false, rttMs: 1 + look / 100 });
  await clock.until('all looks', () => host.sets.length > 2);
  expect(writes() - before).toBeLessThanOrEqual(2);
  expect(events.filter((text) => text === 'p Warning WireGuardNotRunning')).toHaveLength(1);
});

test('a route to one peer that is refused is no fault of the other', async () => {
  await tellNetwork();
  seedTunnel('p');
  const views = [
    { prefix: '10.1.0.0/16', as: '100.66.0.0/16', use: 'Pods' as const },
    { prefix: '10.70.0.0/20', as: '100.67.0.0/20', use: 'External' as const },
  ];
  seedTunnel('q', { status: { views } });
  const { host, prober } = await start();
  host.problems = [{ reason: 'Refused', message: 'route 100.66.0.0/16', about: '100.66.0.0/16' }];
  host.changed();
  for (const name of ['p', 'q']) prober.answer(name);
  await clock.until('the cause', async () => reasonOf(await stored('q'), 'Ready') === 'HostRefused');
  await clock.until('the other', async () => reasonOf(await stored('p'), 'Ready') === 'AsExpected');
});

test('where wg itself cannot be run, the Tunnel says so', async () => {
  await tellNetwork();
  seedTunnel('p');
  const host = new RecordingHost();
  host.wireguardPeers = async () => Promise.reject(new Error('wg cannot be run'));
  host.problems = [{ reason: 'Refused', message: 'wg cannot be run' }];
  await start({ host });
  await clock.until('the cause', async () => reasonOf(await stored('p'), 'Ready') === 'HostRefused');
});

test('pods that run at the peer and the peer’s pods here, by what says so', async () => {
  await tellNetwork();
  seedTunnel('p');
  server.seed(virtualNodes, {
    metadata: { name: 'milan', labels: { 'tributary.dev/provider': 'p' } },
    spec: { nodeName: 'milan-node', kubeconfigSecretRef: { namespace: 'x', name: 'y' }, resources: {} },
  });
  await client.create(namespaces, { metadata: { name: 'shop-p', labels: { 'tributary.dev/peer': 'p' } } });
  await client.create(namespaces, { metadata: { name: 'other' } });
  const seedPod = (where: string, nodeName: string, ip: string, labels = {}): unknown => {
    const [namespace, name] = where.split('/');
    return server.seed(pods, {
      metadata: { name, namespace, labels },
      spec: { nodeName, containers: [] },
      status: { phase: 'Running', podIPs: [{ ip }] },
    });
  };
  const remote = { 'tributary.dev/home-uid': 'u' };
  seedPod('shop/away', 'milan-node', '100.64.0.5');
  seedPod('shop/local', 'n1', '10.1.0.5');
  seedPod('shop-p/lent', 'n1', '10.1.0.6', remote);
  seedPod('other/liar', 'n1', '10.1.0.7', remote);
  const { host } = await start();
  await clock.until('set', () => host.last !== undefined);
  const text = JSON.stringify(host.last);
  expect(text).toContain('100.64.0.5');
  expect(text).toContain('10.1.0.6');
  expect(text).not.toContain('10.1.0.5');
  expect(text).not.toContain('10.1.0.7');
  seedPod('shop/away2', 'milan-node', '100.64.0.8');
  await clock.until('the new one too', () => JSON.stringify(host.last).includes('100.64.0.8'));
  await client.delete(virtualNodes, { name: 'milan' });
  await clock.until('gone with its node', () => !JSON.stringify(host.last).includes('100.64.0.5'));
});

test('a restart wants the same of the host at its first word, a learnt endpoint included', async () => {
  await tellNetwork();
  const tunnel = seedTunnel('p');
  const publicKey = tunnel.spec.peer?.publicKey ?? '';
  const learnt = {
    publicKey,
    endpoint: '198.51.100.7:40001',
    handshakeMs: clock.now(),
    receivedBytes: 1,
    sentBytes: 1,
  };
  const first = await start();
  first.host.peers = [learnt];
  first.prober.answer('p');
  await clock.until('settled', () => first.host.last?.wireguard?.peers[0]?.endpoint === '198.51.100.7:40001');
  const wanted = first.host.last;
  await first.stop();
  expect(first.host.cleaned).toEqual([]);
  // The kernel has gone on alone.
  const second = await startWith([learnt]);
  await clock.until('set', () => second.host.sets.length > 0);
  expect(second.host.sets[0]).toEqual(wanted);
});

/** As `start`, on a host that has these peers from the beginning. */
async function startWith(peers: RecordingHost['peers']): Promise<Running> {
  const host = new RecordingHost();
  host.peers = peers;
  return { ...(await start({ host })), host };
}

test('who does not lead does not touch the host, and does so soon after the Lease is renewed', async () => {
  await tellNetwork();
  let leads = false;
  const { host } = await start({ leading: () => leads });
  await clock.until('the key is told', async () => (await facts()) !== undefined);
  host.changed();
  await clock.advance(2000);
  expect(host.sets).toEqual([]);
  leads = true;
  // Nobody tells of a renewal.
  const renewed = clock.monotonic();
  await clock.until('set', () => host.sets.length > 0);
  expect(clock.monotonic() - renewed).toBeLessThanOrEqual(500);
});

test('what others change on the host is put right at once', async () => {
  await tellNetwork();
  const { host } = await start();
  await clock.until('set', () => host.sets.length > 0);
  const before = host.sets.length;
  host.changed();
  await clock.until('again', () => host.sets.length > before);
  expect(host.last).toEqual(host.sets[before - 1]);
});

test('who cannot be dialled says so, and keeps the mapping open', async () => {
  await tellNetwork();
  seedTunnel('p');
  const { host } = await start({ endpoints: [] });
  await clock.until('told', async () => (await facts())?.endpoints.length === 0);
  await clock.until('set', () => host.last?.wireguard?.peers[0]?.keepalive === 5);
});

test('a tunnel that goes is taken out, also of the probes', async () => {
  await tellNetwork();
  seedTunnel('p');
  seedTunnel('q');
  const { host, prober } = await start();
  await clock.until('both', () => host.last?.wireguard?.peers.length === 2);
  await client.delete(tunnels, { name: 'q' });
  await clock.until('one', () => host.last?.wireguard?.peers.length === 1);
  await clock.until('one target', () => prober.targets.length === 1);
});
