import { describe, expect, test } from '@jest/globals';

import { METADATA_SERVICES } from '../../../../src/lib/metadata-services.ts';
import type { ForeignCluster, PeeringPhase } from '../../../../src/api/foreign-cluster.ts';
import type { PeerView, Tunnel, TunnelSpec } from '../../../../src/api/tunnel.ts';
import type { Node } from '../../../../src/api/wire.ts';
import { checkDocument, composeDocument, exportedTo } from '../../../../src/network/exchange/document.ts';
import type { OwnNetwork } from '../../../../src/api/own-network.ts';
import { Inbox } from '../../../../src/network/exchange/inbox.ts';
import {
  composeOwn,
  externalConflict,
  realNode,
  type RealNode,
  reservedOf,
} from '../../../../src/network/exchange/own-network-data.ts';
import { decidePreshared, presharedKey } from '../../../../src/network/exchange/preshared.ts';
import {
  decideSpec,
  type NetworkPeer,
  networkPeers,
  transitFor,
  wantedPrefixes,
} from '../../../../src/network/exchange/tunnel-spec.ts';
import { KeyClaims } from '../../../../src/network/exchange/tunnels.ts';
import { DOCUMENT_KINDS } from '../../../../src/peering/protocol/documents.ts';
import { checkDocuments } from '../../../../src/peering/protocol/forms.ts';
import { document, peer } from './support/peer.ts';
import { keyOf } from './support/world.ts';

const idOf = (letter: string): string => letter.repeat(26);
const [B, C, D] = ['b', 'c', 'd'].map(idOf) as [string, string, string];
const tunnel = (clusterID: string, views: PeerView[], spec: Partial<TunnelSpec> = {}): Tunnel =>
  ({
    metadata: { name: clusterID },
    spec: { clusterID, access: 'OffloadedPods', transit: 'OffloadedPods', ...spec },
    status: { views },
  }) as Tunnel;

describe('with whom there is a network', () => {
  const cluster = (outgoing: PeeringPhase, incoming: PeeringPhase, clusterID = B): ForeignCluster =>
    ({
      metadata: { name: 'x' },
      status: { clusterID, outgoing: { phase: outgoing }, incoming: { phase: incoming } },
    }) as ForeignCluster;

  test.each([
    ['None', 'None', false],
    ['Offered', 'Pending', false],
    ['Ending', 'Denied', false],
    ['Accepted', 'None', true],
    ['Established', 'Ending', true],
    ['None', 'Accepted', true],
    ['Denied', 'Established', true],
  ] as const)('outgoing %s, incoming %s: %p', (outgoing, incoming, expected) => {
    expect(networkPeers([cluster(outgoing, incoming)]).has(B)).toBe(expected);
  });

  test('not with one that has not proved who it is, or not in the form of a ClusterID', () => {
    expect(networkPeers([{ metadata: {}, spec: {} } as ForeignCluster]).size).toBe(0);
    expect(networkPeers([cluster('Accepted', 'None', '../secrets')]).size).toBe(0);
  });

  test('as people want it', () => {
    const wanted = { ...cluster('Accepted', 'None'), spec: { network: { access: 'None', transit: 'None' } } };
    expect(networkPeers([wanted as ForeignCluster]).get(B)).toMatchObject({
      access: 'None',
      transit: 'None',
    });
  });
});

describe('the spec of a Tunnel', () => {
  const exported = ['10.1.0.0/16', '10.71.0.0/20'];
  const said = document({ views: [{ prefix: '10.1.0.0/16', as: '100.64.0.0/16' }] });

  test('is what the peer says, as far as it may say so', () => {
    const { spec } = decideSpec({ peer: peer(), heard: said, exported });
    expect(spec).toEqual({
      clusterID: B,
      access: 'OffloadedPods',
      transit: 'OffloadedPods',
      peer: {
        publicKey: keyOf('b'),
        endpoints: ['192.0.2.1:51820'],
        pods: ['10.2.0.0/16'],
        external: ['10.72.0.0/20'],
      },
      seenAs: [{ prefix: '10.1.0.0/16', as: '100.64.0.0/16' }],
    });
    const home = decideSpec({
      peer: peer({ incoming: true }),
      heard: document({ transit: ['10.9.0.0/16'] }),
      exported,
    });
    expect(home.spec.peer?.transit).toEqual(['10.9.0.0/16']);
  });

  test('stays as stored until the peer was heard, and is emptied when it takes all back', () => {
    const current = decideSpec({ peer: peer(), heard: said, exported }).spec;
    expect(decideSpec({ peer: peer(), heard: undefined, exported, current }).spec).toEqual(current);
    const silent = decideSpec({ peer: peer(), heard: null, exported, current }).spec;
    expect(silent).toEqual({ clusterID: B, access: 'OffloadedPods', transit: 'OffloadedPods' });
    expect(wantedPrefixes(silent.peer)).toBeUndefined();
  });

  test('what is stored does not outlive what it rests on', () => {
    const home = peer({ incoming: true });
    const heard = { ...said, transit: ['10.9.0.0/16'] };
    const current = decideSpec({ peer: home, heard, exported }).spec;
    const later = { heard: undefined, current };
    expect(decideSpec({ ...later, peer: home, exported: ['10.71.0.0/20'] }).spec).not.toHaveProperty(
      'seenAs',
    );
    const lender = decideSpec({ ...later, peer: peer(), exported }).spec;
    expect(lender.peer).toEqual({ ...current.peer, transit: undefined });
  });

  test('each prefix is wanted once, by its first use', () => {
    const end = { publicKey: '', endpoints: [], pods: ['10.2.0.0/16'], external: ['10.2.0.0/16'] };
    expect(wantedPrefixes({ ...end, transit: ['10.3.0.0/16'] })).toEqual([
      { prefix: '10.2.0.0/16', use: 'Pods' },
      { prefix: '10.3.0.0/16', use: 'Transit' },
    ]);
  });
});

describe('what is forwarded', () => {
  const views = (as: string): PeerView[] => [
    { prefix: '10.244.0.0/16', as, use: 'Pods' },
    { prefix: '10.70.0.0/20', as: '100.127.0.0/20', use: 'External' },
    { prefix: '10.5.0.0/16', as: '100.126.0.0/16', use: 'Transit' },
  ];
  const all = [
    tunnel(B, views('100.64.0.0/16')),
    tunnel(C, views('100.66.0.0/16')),
    tunnel(D, views('100.65.0.0/16')),
  ];
  const peers = (...list: NetworkPeer[]): Map<string, NetworkPeer> =>
    new Map(list.map((each) => [each.clusterID, each]));

  test('our views of the pods of those that run ours, in order, and nothing else of theirs', () => {
    const known = peers(peer(), peer({ clusterID: C }), peer({ clusterID: D }));
    expect(transitFor(peer(), all, known)).toEqual(['100.65.0.0/16', '100.66.0.0/16']);
    expect(transitFor(peer({ clusterID: C }), all, known)).toEqual(['100.64.0.0/16', '100.65.0.0/16']);
  });

  test('not to or of those that only use us, that are gone, or where it is not wanted', () => {
    const [only, unwanted] = [
      peer({ clusterID: C, outgoing: false, incoming: true }),
      peer({ clusterID: D, transit: 'None' }),
    ];
    expect(transitFor(peer(), all, peers(peer(), only, unwanted))).toEqual([]);
    expect(transitFor(only, all, peers(peer(), only))).toEqual([]);
    expect(transitFor(unwanted, all, peers(peer(), unwanted))).toEqual([]);
  });
});

describe('a document', () => {
  const own = { pods: ['10.1.0.0/16'], external: '10.71.0.0/20' };
  const facts = { publicKey: keyOf('a'), endpoints: ['192.0.2.9:51820'] };
  const prefixes = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => `100.${64 + (index >> 8)}.${index & 255}.0/24`);

  test('says our end, and the stored views', () => {
    const stored = tunnel(B, [{ prefix: '10.2.0.0/16', as: '100.64.0.0/16', use: 'Pods' }]);
    expect(composeDocument({ facts, own, tunnel: stored, transit: [] })).toEqual({
      ...facts,
      pods: own.pods,
      external: [own.external],
      transit: [],
      views: [{ prefix: '10.2.0.0/16', as: '100.64.0.0/16' }],
    });
  });

  test('is never larger than its form allows', () => {
    const many = { pods: prefixes(2_000), external: own.external };
    const stored = tunnel(
      B,
      prefixes(1_024).map((prefix) => ({ prefix, as: prefix, use: 'Pods' })),
    );
    const endpoints = Array<string>(20).fill('192.0.2.9:51820');
    const network = composeDocument({
      facts: { ...facts, endpoints },
      own: many,
      tunnel: stored,
      transit: prefixes(3_000),
      presharedHalf: keyOf('h'),
    });
    expect(checkDocuments({ network })).toEqual({ changes: { network }, problems: [] });
    expect(JSON.stringify(network).length).toBeLessThan(512 * 1_024);
    const told = exportedTo(many, prefixes(3_000));
    expect(told).toHaveLength(1_024);
    expect(told).toEqual([...network.pods, ...network.external, ...network.transit]);
  });

  test('of a kind that somebody does not know is passed over', () => {
    expect(checkDocuments({ weather: { rain: true }, network: null })).toEqual({
      changes: { network: null },
      problems: [],
    });
    expect(DOCUMENT_KINDS).toContain('network');
  });

  test('is taken without what makes no sense, in one spelling', () => {
    const { document: taken, problems } = checkDocument(
      document({
        pods: ['10.2.0.0/16', '10.2.0.0/16', '10.2.0.1/16', 'FD00::/48'],
        endpoints: ['127.0.0.1:1', '[fe80::1]:1', '192.0.2.1:51820', '192.0.2.1:51820', 'a:99999'],
      }),
    );
    expect(taken.pods).toEqual(['10.2.0.0/16', 'fd00::/48']);
    expect(taken.endpoints).toEqual(['192.0.2.1:51820']);
    expect(problems).toHaveLength(4);
  });
});

describe('the inbox', () => {
  const inbox = (peered: Set<string>, linked: Set<string>): Inbox =>
    new Inbox({ isPeered: (id) => peered.has(id), isLinked: (id) => linked.has(id) });

  test('keeps few words of those with whom we do not peer, while they are there', () => {
    const [peered, linked] = [new Set<string>(['p']), new Set<string>()];
    const box = inbox(peered, linked);
    expect(box.hear('p', document())).toBe(true);
    for (let stranger = 0; stranger < 1_000; stranger++) box.hear(`s${stranger}`, document());
    expect(box.size).toBeLessThanOrEqual(2);
    let kept = 0;
    for (let stranger = 0; stranger < 1_000; stranger++) {
      linked.add(`l${stranger}`);
      if (box.hear(`l${stranger}`, document())) kept++;
    }
    expect(kept).toBe(32);
    expect(box.size).toBe(33);
    expect(box.hear('l0', null)).toBe(true);
    expect(box.hear('l900', document())).toBe(true);
    linked.clear();
    box.hear('other', null);
    expect(box.size).toBe(1);
  });

  test('forgets whom we do not peer with any more, unless it may mean the next time', () => {
    const linked = new Set(['p', 'q']);
    const box = inbox(new Set(['p', 'q', 'r']), linked);
    box.hear('p', document());
    box.hear('q', null);
    box.hear('r', document());
    for (const id of ['p', 'q', 'r']) box.forget(id);
    expect(['p', 'q', 'r'].map((id) => box.get(id) !== undefined)).toEqual([true, false, false]);
  });
});

test('a key has one owner, until it has another key or is gone; then those that were refused it are told', () => {
  const freed: string[] = [];
  const claims = new KeyClaims((clusterID) => freed.push(clusterID));
  expect(claims.claim('a', 'k')).toBe('a');
  expect(claims.claim('a', 'k')).toBe('a');
  expect(claims.claim('b', 'k')).toBe('a');
  expect(freed).toEqual([]);
  expect(claims.claim('a', 'l')).toBe('a');
  expect(freed).toEqual(['b']);
  expect(claims.claim('b', 'k')).toBe('b');
  claims.release('b');
  expect(claims.claim('a', 'k')).toBe('a');
  expect(freed).toEqual(['b']);
});

describe('our own network', () => {
  const options = {
    podCidrs: [],
    externalCidr: '10.70.0.0/29',
    viewPools: ['100.64.0.0/10'],
    reservedCidrs: ['192.168.0.0/16'],
  };
  const composed = (
    nodes: readonly RealNode[],
    ...rest: [options: Parameters<typeof composeOwn>[1], before: OwnNetwork | undefined]
  ): OwnNetwork => composeOwn({ nodes, apiServers: [] }, ...rest);
  const node = (name: string, index: number): { name: string; address: string; pods: string[] } => ({
    name,
    address: `172.30.0.${index}`,
    pods: [`10.244.${index}.0/24`],
  });

  test('nodes keep their addresses; those that find no room are left out', () => {
    const before = composed([node('m', 1)], options, undefined);
    expect(before.nodes.map(({ external }) => external)).toEqual(['10.70.0.2']);
    const more = 'abcdefgh'.split('').map((name, index) => node(name, index + 2));
    const after = composed([...more, node('m', 1)], options, before);
    expect(after.nodes.find(({ name }) => name === 'm')?.external).toBe('10.70.0.2');
    expect(after.nodes).toHaveLength(5);
    expect(new Set(after.nodes.map(({ external }) => external)).size).toBe(5);
  });

  test('what people say of the pods counts', () => {
    expect(composed([node('m', 1)], { ...options, podCidrs: ['10.0.0.0/8'] }, undefined).pods).toEqual([
      '10.0.0.0/8',
    ]);
    expect(() => composed([], { ...options, podCidrs: ['10.0.0.1/8'] }, undefined)).toThrow('10.0.0.1/8');
  });

  test('reserved is all that is ours', () => {
    const nodes = [{ ...node('m', 1), others: ['203.0.113.7', 'fd00:7::9'] }];
    const apiServers = [{ address: '10.9.8.7', port: 6443 }];
    const own = composeOwn({ nodes, apiServers }, options, undefined);
    const reserved = reservedOf(own, ['10.96.0.0/12'], options, ['10.5.0.2']);
    const metadata = METADATA_SERVICES;
    expect(reserved.filter((range) => !metadata.includes(range))).toEqual([
      '10.5.0.2/32',
      '10.9.8.7/32',
      '10.70.0.0/29',
      '10.96.0.0/12',
      '10.244.1.0/24',
      '172.30.0.0/24',
      '192.168.0.0/16',
      '203.0.113.7/32',
      'fd00:7::9/128',
    ]);
    expect(reserved).toEqual(expect.arrayContaining([...metadata]));
  });

  test('the external range is beside pods and Services', () => {
    const own = composed([node('m', 1)], options, undefined);
    expect(externalConflict(own, ['10.96.0.0/12'])).toBeUndefined();
    expect(externalConflict(own, ['10.0.0.0/8'])).toContain('10.0.0.0/8');
    expect(externalConflict({ ...own, pods: ['10.70.0.0/16'] }, [])).toContain('--external-cidr');
  });

  test('a node counts by its internal address; a virtual one has none of our pods', () => {
    const real = (changes: object): Node =>
      ({
        metadata: { name: 'n' },
        spec: { podCIDR: '10.1.0.0/24' },
        status: {
          addresses: [
            { type: 'Hostname', address: 'n' },
            { type: 'InternalIP', address: '10.0.0.1' },
          ],
        },
        ...changes,
      }) as Node;
    expect(realNode(real({}))).toEqual({ name: 'n', address: '10.0.0.1', pods: ['10.1.0.0/24'] });
    expect(realNode(real({ spec: { podCIDRs: ['x', '10.1.0.0/24', 'fd00::/64'] } }))?.pods).toEqual([
      '10.1.0.0/24',
      'fd00::/64',
    ]);
    const addresses = [
      { type: 'InternalIP', address: 'fd00::7' },
      { type: 'ExternalIP', address: '203.0.113.7' },
      { type: 'InternalIP', address: '10.0.0.1' },
      { type: 'ExternalDNS', address: '10.0.0.2' },
    ];
    expect(realNode(real({ status: { addresses } }))).toMatchObject({
      address: 'fd00::7',
      others: ['10.0.0.1', '203.0.113.7'],
    });
    expect(realNode(real({ status: {} }))).toBeUndefined();
    const labels = { 'tributary.dev/node-type': 'virtual-node' };
    expect(realNode(real({ metadata: { name: 'v', labels } }))).toBeUndefined();
  });
});

describe('preshared keys', () => {
  const ids = { own: 'a', peer: 'b' };
  const [half, theirs] = [keyOf('1'), keyOf('2')];
  const key = presharedKey({ id: 'a', half }, { id: 'b', half: theirs });
  const fresh = (): string => 'fresh';

  test('do not depend on who reckons, and change with either half', () => {
    expect(presharedKey({ id: 'b', half: theirs }, { id: 'a', half })).toBe(key);
    expect(presharedKey({ id: 'a', half: theirs }, { id: 'b', half })).not.toBe(key);
    expect(Buffer.from(key, 'base64')).toHaveLength(32);
  });

  test.each([
    ['a half first', {}, { wanted: true, theirs }, { halves: { b: 'fresh', 'b.renewed': null } }],
    ['then the key', { half }, { wanted: true, theirs }, { keys: { b: key } }],
    ['then nothing', { half, key }, { wanted: true, theirs }, {}],
    ['nothing of a peer not heard yet', { half, key }, { wanted: true, theirs: undefined }, {}],
    ['no key without its half', { half, key }, { wanted: true, theirs: null }, { keys: { b: null } }],
    [
      'another half when asked',
      { half, key },
      { wanted: true, theirs, renew: 'x' },
      { halves: { b: 'fresh', 'b.renewed': 'x' } },
    ],
    ['once', { half, key, renewed: 'x' }, { wanted: true, theirs, renew: 'x' }, {}],
    [
      'all removed in the end',
      { half, key },
      { wanted: false, theirs },
      { halves: { b: null, 'b.renewed': null }, keys: { b: null } },
    ],
    ['and nothing where nothing is', {}, { wanted: false, theirs }, {}],
  ])('%s', (_name, state, wish, expected) => {
    expect(decidePreshared(ids, state, { ...wish, fresh })).toEqual(expected);
  });
});
