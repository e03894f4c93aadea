import { expect, test } from '@jest/globals';

import type { Namespace, Pod, Secret } from '../../../../src/api/wire.ts';
import {
  gatewayPeers,
  hasToken,
  hostedByPeer,
  isOnNetwork,
  neverDialled,
  type PeersInput,
  listensTo,
  probeTarget,
  refusedPeers,
} from '../../../../src/network/gateway/peers.ts';
import { slimPodWithTokens } from '../../../../src/network/gateway/caches.ts';
import { NETWORK, tunnelOf } from '../../../support/network/tunnels.ts';

const pod = (namespace: string, ip: string, more: { spec?: object; status?: object } = {}): Pod =>
  ({
    metadata: { name: ip, namespace },
    spec: more.spec ?? {},
    status: { phase: 'Running', podIPs: [{ ip }], ...more.status },
  }) as unknown as Pod;

const namespace = (peer?: string): Namespace =>
  ({
    metadata: { name: 'x', labels: peer === undefined ? {} : { 'tributary.dev/peer': peer } },
  }) as unknown as Namespace;

function peersOf(input: Partial<PeersInput>): ReturnType<typeof gatewayPeers> {
  return gatewayPeers({
    tunnels: [tunnelOf('p')],
    network: NETWORK,
    publicKey: 'own',
    preshared: undefined,
    abroad: new Map(),
    clients: new Map(),
    hosted: new Map(),
    endpointOf: () => undefined,
    probes: new Map(),
    mtu: 1420,
    ...input,
  });
}

test.each<[string, Pod, boolean]>([
  ['runs', pod('a', '10.1.0.5'), true],
  ['starts', pod('a', '10.1.0.5', { status: { phase: 'Pending' } }), true],
  ['has ended', pod('a', '10.1.0.5', { status: { phase: 'Succeeded' } }), false],
  ['has failed', pod('a', '10.1.0.5', { status: { phase: 'Failed' } }), false],
  ['has the addresses of its node', pod('a', '10.1.0.5', { spec: { hostNetwork: true } }), false],
])('a pod that %s', (_case, given, counts) => expect(isOnNetwork(given)).toBe(counts));

test('a pod has a token of its account, or none', () => {
  const spec = (...sources: object[]): object => ({
    volumes: [{ name: 'x' }, { name: 'y', projected: { sources } }],
  });
  const given = (one: object): Pod => slimPodWithTokens(pod('a', '10.1.0.5', { spec: one }));
  expect(hasToken(given(spec({ serviceAccountToken: { path: 'token' } })))).toBe(true);
  expect(hasToken(given(spec({ configMap: { name: 'x' } })))).toBe(false);
  expect(hasToken(given({}))).toBe(false);
  expect(isOnNetwork(given(spec({ serviceAccountToken: { path: 'token' } })))).toBe(true);
});

test('whose pod it is, is said by the namespace, not by the pod', () => {
  const pods = [pod('shop-p', '10.1.0.5'), pod('shop-q', '10.1.0.6'), pod('kube-system', '10.1.0.7')];
  const namespaces = new Map([
    ['shop-p', namespace('p')],
    ['shop-q', namespace('q')],
    ['kube-system', namespace()],
  ]);
  expect([...hostedByPeer(pods, (name) => namespaces.get(name))]).toEqual([
    ['p', ['10.1.0.5']],
    ['q', ['10.1.0.6']],
  ]);
});

test('a reported address outside the peer’s views, or outside our pods, lets nobody in', () => {
  const abroad = new Map([
    ['p', ['100.64.0.9', '100.64.0.5', '100.70.0.1', '10.1.0.1', 'junk', '100.64.0.5']],
  ]);
  const hosted = new Map([['p', ['10.1.9.9', '10.96.0.1', '172.30.0.11']]]);
  const [peer] = peersOf({ abroad, hosted });
  expect(peer).toMatchObject({ abroad: ['100.64.0.5', '100.64.0.9'], hosted: ['10.1.9.9'] });
});

test('the smaller MTU counts: the probed one, never more than the link’s', () => {
  const probe = { alive: true, since: 0, lossPercent: 0 };
  const mtuOf = (mtu: number | undefined, stored?: number): number | undefined => {
    const tunnels = [tunnelOf('p', { status: { connection: stored === undefined ? {} : { mtu: stored } } })];
    return peersOf({ tunnels, probes: new Map([['p', { ...probe, ...(mtu !== undefined && { mtu }) }]]) })[0]
      ?.mtu;
  };
  expect([mtuOf(1300), mtuOf(9000), mtuOf(undefined, 1290), mtuOf(1350, 1290), mtuOf(undefined)]).toEqual([
    1300,
    1420,
    1290,
    1350,
    undefined,
  ]);
});

test('preshared keys that are none are left out', () => {
  const key = Buffer.alloc(32, 7).toString('base64');
  const data = { p: Buffer.from(key).toString('base64'), q: 'bm90IGEga2V5', constructor: 'eA==' };
  const tunnels = ['p', 'q', 'toString'].map((name) => tunnelOf(name));
  const peers = peersOf({ tunnels, preshared: { data } as unknown as Secret });
  expect(peers.map(({ presharedKey }) => presharedKey)).toEqual([key, undefined, undefined]);
});

test('a preshared key in a spelling that WireGuard does not take costs no other peer its tunnel', () => {
  // Bits beyond the 32 bytes.
  const odd = `${'A'.repeat(42)}B=`;
  const data = { p: Buffer.from(odd).toString('base64') };
  const peers = peersOf({ preshared: { data } as unknown as Secret });
  expect(peers.map(({ presharedKey }) => presharedKey)).toEqual([undefined]);
});

test('no peer is dialled at what is ours or in a tunnel; beside our nodes it may be', () => {
  const network = { ...NETWORK, services: ['10.96.0.0/16'], reserved: ['172.30.0.0/24', '10.96.0.0/16'] };
  const tunnels = [
    tunnelOf('p', { status: { views: [{ prefix: '10.9.0.0/16', as: '10.8.0.0/16', use: 'Pods' }] } }),
  ];
  expect(neverDialled(network, tunnels)).toEqual([
    '10.1.0.0/16',
    '10.70.0.0/20',
    '100.64.0.0/10',
    '10.96.0.0/16',
    '172.30.0.11/32',
    '172.30.0.12/32',
    '10.8.0.0/16',
  ]);
});

test('a key belongs to the tunnel that had it first, and ours to nobody', () => {
  const first = tunnelOf('z', { createdAt: 1 });
  const thief = tunnelOf('a', { spec: first.spec, createdAt: 2 });
  const mirror = tunnelOf('m', { createdAt: 3 });
  const own = mirror.spec.peer?.publicKey ?? '';
  const tunnels = [thief, mirror, first];
  expect([...refusedPeers(tunnels, own).keys()]).toEqual(['a', 'm']);
  expect(refusedPeers(tunnels, own).get('a')).toContain('of z');
  expect(peersOf({ tunnels, publicKey: own }).map(({ tunnel }) => tunnel.metadata.name)).toEqual(['z']);
});

test('of two ends one listens, and both know which one, whatever the order of the keys', () => {
  const [own, peer] = ['a', tunnelOf('p').spec.peer?.publicKey ?? ''];
  expect(listensTo(peer, own)).toBe(!listensTo(own, peer));
  for (const ownKey of ['', '~']) {
    const target = probeTarget(tunnelOf('p'), { network: NETWORK, ownKey });
    expect(target?.listens).toBe(listensTo(peer, ownKey));
  }
});

test('probes go to the first address of the peer’s external range as we see it', () => {
  expect(probeTarget(tunnelOf('p'), { network: NETWORK, endpoint: '192.0.2.1:1' })).toEqual({
    clusterID: 'p',
    address: '100.65.0.1',
    source: '10.70.0.1',
    as: '10.66.0.1',
    endpoint: '192.0.2.1:1',
    listens: false,
  });
  const ipv6 = { ...NETWORK, external: 'fd00::/112', gatewayAddress: 'fd00::1' };
  expect(probeTarget(tunnelOf('p'), { network: ipv6 })).toBeUndefined();
  expect(probeTarget(tunnelOf('p', { status: { views: [] } }), { network: NETWORK })).toBeUndefined();
  const tiny = { views: [{ prefix: '10.70.0.0/32', as: '100.65.0.0/32', use: 'External' as const }] };
  expect(probeTarget(tunnelOf('p', { status: tiny }), { network: NETWORK })).toBeUndefined();
});

test('a probe says as what the peer sees our gateway, by its range and not by another that holds it', () => {
  const asSeen = (...pairs: [prefix: string, as: string][]): string | undefined => {
    const seenAs = pairs.map(([prefix, as]) => ({ prefix, as }));
    return probeTarget(tunnelOf('p', { spec: { seenAs } }), { network: NETWORK })?.as;
  };
  expect(asSeen(['10.0.0.0/8', '11.0.0.0/8'], ['10.70.0.0/20', '10.67.0.0/20'])).toBe('10.67.0.1');
  expect(asSeen(['10.0.0.0/8', '11.0.0.0/8'], ['10.70.0.0/20', '10.67.0.0/21'])).toBeUndefined();
  expect(asSeen()).toBeUndefined();
});
