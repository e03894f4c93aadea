import { afterEach, describe, expect, test } from '@jest/globals';

import { ANNOTATION_ROTATE } from '../../../../src/api/names.ts';
import { NETWORK_CONFIG_MAP } from '../../../../src/api/own-network.ts';
import { nodes, secrets } from '../../../../src/api/resources.ts';
import { tunnels } from '../../../../src/api/tunnel.ts';
import type { NetworkDocument } from '../../../../src/api/peer-documents.ts';
import type { ExchangeOptions } from '../../../../src/network/exchange/exchange.ts';
import { presharedKey } from '../../../../src/network/exchange/preshared.ts';
import type { AnyObject } from '../../../support/fake-api/storage.ts';
import { clock, joined, keyOf, link, peered, unpeered, World } from './support/world.ts';

/** Two and three whole exchanges, joined back to back, against API servers in memory. */

let worlds: World[] = [];
afterEach(async () => {
  await Promise.all(worlds.map(async (world) => world.down()));
  worlds = [];
});

async function up(
  letter: string,
  pods: string,
  options: Partial<ExchangeOptions> & { gateway?: boolean } = {},
): Promise<World> {
  const world = await World.up(letter, pods, options);
  worlds.push(world);
  return world;
}

/** After all that one had to say before: a new key of its gateway has arrived. */
async function said(one: World, other: World): Promise<void> {
  one.rekey(keyOf('y'));
  await clock.until('the new key is known', () => other.tunnel(one)?.spec.peer?.publicKey === keyOf('y'));
}

const SAME = '10.244.0.0/16';
const EXTERNAL = '10.70.0.0/20';
const isPool = (cidr: string | undefined): boolean =>
  /^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./.test(cidr ?? '');

test('nodes that come one after the other are published together, and none is forgotten', async () => {
  const a = await up('a', '10.1.1.0/24');
  const versions = new Set<string | undefined>();
  for (let number = 2; number <= 40; number++) {
    a.node(`node-${number}`, `10.1.${number}.0/24`, `172.30.0.${number + 20}`);
    await clock.advance(50);
    versions.add(a.configMap(NETWORK_CONFIG_MAP)?.metadata.resourceVersion);
  }
  await clock.until('all are published', () => a.own?.nodes.length === 40);
  // In two seconds.
  expect(versions.size).toBeLessThan(6);
});

describe('two clusters', () => {
  test('where a route of ours leads to somebody else, no peer is seen, and nodes are told', async () => {
    const a = await up('a', '10.1.0.0/16', { externalCidr: '10.71.0.0/20' });
    const b = await up('b', '10.2.0.0/16', { externalCidr: '10.72.0.0/20' });
    a.rekey(keyOf('a'), ['172.30.0.11:51820'], ['10.2.0.0/15']);
    await clock.until('nodes are told', () => a.own?.reserved?.includes('10.2.0.0/15') === true);
    peered(a, b);
    await joined(a, b);
    expect(isPool(a.sees(b, '10.2.0.0/16'))).toBe(true);
    expect(a.sees(b, '10.72.0.0/20')).toBe('10.72.0.0/20');
    // One that comes later does not move what is there.
    a.rekey(keyOf('a'), ['172.30.0.11:51820'], ['10.72.0.0/16']);
    await clock.until('nodes are told', () => a.own?.reserved?.includes('10.72.0.0/16') === true);
    await said(b, a);
    expect(a.sees(b, '10.72.0.0/20')).toBe('10.72.0.0/20');
    expect(a.own?.services).toEqual(['10.96.0.0/16']);
  });

  test('with distinct prefixes see each other as they are', async () => {
    const a = await up('a', '10.1.0.0/16', { externalCidr: '10.71.0.0/20' });
    const b = await up('b', '10.2.0.0/16', { externalCidr: '10.72.0.0/20' });
    peered(a, b);
    await joined(a, b);
    expect(a.tunnel(b)).toMatchObject({
      spec: {
        clusterID: b.id,
        access: 'OffloadedPods',
        transit: 'OffloadedPods',
        peer: { publicKey: keyOf('b'), endpoints: ['172.30.0.11:51820'], pods: ['10.2.0.0/16'] },
        seenAs: [
          { prefix: '10.1.0.0/16', as: '10.1.0.0/16' },
          { prefix: '10.71.0.0/20', as: '10.71.0.0/20' },
        ],
      },
      status: {
        views: [
          { prefix: '10.2.0.0/16', as: '10.2.0.0/16', use: 'Pods' },
          { prefix: '10.72.0.0/20', as: '10.72.0.0/20', use: 'External' },
        ],
      },
    });
    expect(b.sees(a, '10.1.0.0/16')).toBe('10.1.0.0/16');
  });

  test('with the same prefixes see each other in their pools, and reads change nothing', async () => {
    const [a, b] = [await up('a', SAME), await up('b', SAME)];
    peered(a, b);
    await joined(a, b);
    for (const [one, other] of [
      [a, b],
      [b, a],
    ] as const) {
      expect(isPool(one.sees(other, SAME))).toBe(true);
      expect(isPool(one.sees(other, EXTERNAL))).toBe(true);
      expect(one.sees(other, SAME)).toMatch(/\/16$/);
    }
    const ownWrites = (): number => a.api.count(/^PATCH .*configmaps\/tributary-network/);
    const ownBefore = ownWrites();
    const [before, version] = [a.api.storage.writes, a.tunnel(b)?.metadata.resourceVersion];
    for (let round = 0; round < 3; round++) {
      const labels = { 'tributary.dev/node-type': 'virtual-node' };
      a.api.seed(nodes, { metadata: { name: `virtual-${round}`, labels } });
    }
    await a.halt();
    await a.start();
    await said(a, b);
    expect(a.tunnel(b)?.metadata.resourceVersion).toBe(version);
    // The nodes, and what `said` writes.
    expect(a.api.storage.writes - before).toBe(3 + 1);
    // Nor is what is published already sent again, which would look like no write.
    expect(ownBefore).toBeGreaterThan(0);
    expect(ownWrites()).toBe(ownBefore);
  });

  test('see nothing of each other once they are not peered, and the addresses are free again', async () => {
    const [a, b, c] = [await up('a', SAME), await up('b', SAME), await up('c', SAME)];
    peered(a, b);
    await joined(a, b);
    const view = a.sees(b, SAME);
    unpeered(a, b);
    await clock.until('no tunnels', () => a.tunnels.length + b.tunnels.length === 0);
    expect(a.exchange.documents(b.id)).toEqual({});
    peered(a, c);
    await joined(a, c);
    expect(a.sees(c, SAME)).toBe(view);
  });

  test('keep their addresses while one has nothing to say', async () => {
    const [a, b] = [await up('a', SAME), await up('b', SAME)];
    peered(a, b);
    await joined(a, b);
    const view = a.sees(b, SAME);
    await a.exchange.received({ clusterID: b.id }, { network: null });
    await clock.until('the end is gone', () => a.tunnel(b)?.spec.peer === undefined);
    expect(a.tunnel(b)?.spec.seenAs).toBeUndefined();
    expect(a.sees(b, SAME)).toBe(view);
  });

  test('one of which never had a gateway: nothing is to be seen there, and nothing is said', async () => {
    const [a, b] = [await up('a', SAME), await up('b', SAME, { gateway: false })];
    peered(a, b);
    await clock.until('there is a tunnel', () => a.tunnel(b) !== undefined);
    expect(a.tunnel(b)?.spec.peer).toBeUndefined();
    expect(b.exchange.documents(a.id)).toEqual({});
    expect(b.tunnels).toEqual([]);
    b.gateway();
    await joined(a, b);
  });

  test('learn of a new key of the other', async () => {
    const [a, b] = [await up('a', SAME), await up('b', SAME)];
    peered(a, b);
    await joined(a, b);
    b.rekey(keyOf('x'), []);
    await clock.until('the new key is known', () => a.tunnel(b)?.spec.peer?.publicKey === keyOf('x'));
    expect(a.tunnel(b)?.spec.peer?.endpoints).toEqual([]);
  });
});

test('what was said before we knew of the peering counts when we do', async () => {
  const [a, b] = [await up('a', SAME), await up('b', SAME)];
  b.peer(a, { incoming: 'Accepted' });
  link(a, b);
  await clock.until('b has its tunnel', () => b.tunnel(a) !== undefined);
  expect(a.tunnels).toEqual([]);
  a.peer(b, { outgoing: 'Accepted' });
  await joined(a, b);
});

test('strangers leave nothing behind', async () => {
  const a = await up('a', SAME);
  const network = {
    publicKey: keyOf('z'),
    endpoints: [],
    pods: [SAME],
    external: [EXTERNAL],
    transit: [],
    views: [],
  };
  for (let stranger = 0; stranger < 300; stranger++) {
    const clusterID = `${'z'.repeat(22)}${String(stranger + 1_000).replaceAll(/[0189]/g, 'x')}`;
    await a.exchange.received({ clusterID }, { network }).catch(() => undefined);
  }
  expect(a.tunnels).toEqual([]);
  expect(a.api.count(/^(POST|PATCH|PUT) .*tunnels/)).toBe(0);
});

describe('three clusters with the same prefixes', () => {
  test('two that run pods of the first reach each other through it, by addresses of their own', async () => {
    const [a, b, c] = [await up('a', SAME), await up('b', SAME), await up('c', SAME)];
    peered(a, b);
    peered(a, c);
    await joined(a, b);
    await joined(a, c);
    const [ofB, ofC] = [a.sees(b, SAME) ?? '', a.sees(c, SAME) ?? ''];
    expect(ofB).not.toBe(ofC);
    await clock.until('b sees c through a, and a knows how', () => {
      const as = b.sees(a, ofC);
      return as !== undefined && as === a.seenBy(b, ofC);
    });
    await clock.until('and the other way round', () => {
      const as = c.sees(a, ofB);
      return as !== undefined && as === a.seenBy(c, ofB);
    });
    expect(b.tunnel(a)?.status?.views?.find(({ prefix }) => prefix === ofC)?.use).toBe('Transit');
    expect(b.tunnel(a)?.spec.peer?.transit).toEqual([ofC]);
    expect(b.tunnels).toHaveLength(1);
    unpeered(a, c);
    await clock.until('no way to c any more', () => b.sees(a, ofC) === undefined);
    await joined(a, b);
  });

  test('nothing is forwarded where one does not run our pods, or a person does not want it', async () => {
    const [a, b, c, d] = [await up('a', SAME), await up('b', SAME), await up('c', SAME), await up('d', SAME)];
    peered(a, b);
    peered(c, a);
    peered(a, d, { transit: 'None' });
    for (const other of [b, c, d]) await joined(a, other);
    for (const other of [b, c, d]) {
      expect(a.exchange.documents(other.id).network?.transit).toEqual([]);
      expect(other.tunnel(a)?.spec.peer).not.toHaveProperty('transit');
    }
  });

  test('who only lends to us cannot say that it forwards', async () => {
    const [a, b] = [await up('a', SAME), await up('b', SAME)];
    peered(a, b);
    await joined(a, b);
    const network = b.exchange.documents(a.id).network as NetworkDocument;
    const endpoints = ['192.0.2.9:51820'];
    await a.exchange.received(
      { clusterID: b.id },
      { network: { ...network, endpoints, transit: ['10.9.0.0/16'] } },
    );
    await clock.until('the rest was taken', () => a.tunnel(b)?.spec.peer?.endpoints[0] === endpoints[0]);
    expect(a.tunnel(b)?.spec.peer).not.toHaveProperty('transit');
    expect(a.sees(b, '10.9.0.0/16')).toBeUndefined();
  });
});

describe('own network', () => {
  test('each node keeps its address, whoever comes before it', async () => {
    const a = await up('a', '10.244.1.0/24');
    await clock.until('published', () => a.own !== undefined);
    const first = a.own?.nodes[0];
    expect(a.own).toMatchObject({
      pods: ['10.244.1.0/24'],
      external: EXTERNAL,
      gatewayAddress: '10.70.0.1',
      pools: ['100.64.0.0/10'],
      nodes: [{ name: 'node-1', address: '172.30.0.11', pods: ['10.244.1.0/24'] }],
    });
    await a.halt();
    a.node('node-0', '10.244.0.0/24', '172.30.0.10');
    await a.start();
    await clock.until('both', () => a.own?.nodes.length === 2);
    expect(a.own?.nodes.find(({ name }) => name === 'node-1')).toEqual(first);
    // What peers were told of before is still there by the same name.
    expect(a.own?.pods).toEqual(['10.244.0.0/24', '10.244.1.0/24']);
  });

  test('what somebody else writes there does not last', async () => {
    const a = await up('a', SAME);
    await clock.until('published', () => a.own !== undefined);
    const [found, own] = [a.configMap('tributary-network') as AnyObject, a.own];
    for (const text of ['nonsense', '{"pods":5}', JSON.stringify({ ...own, pods: ['10.9.0.0/16', 'x'] })]) {
      const { resourceVersion: _old, ...metadata } = found.metadata;
      a.api.storage.update('configmaps', {
        ...found,
        metadata: { ...metadata, resourceVersion: '' },
        data: { 'network.json': text },
      });
      await clock.until('as before', () => JSON.stringify(a.own) === JSON.stringify(own));
    }
  });

  test('nothing is published, and nobody told, while the external range is where our pods are', async () => {
    const [a, b] = [await up('a', '10.70.0.0/16'), await up('b', SAME)];
    peered(a, b);
    await clock.until('b is ready', () => b.tunnel(a) !== undefined);
    expect(a.own).toBeUndefined();
    expect(a.tunnels).toEqual([]);
    expect(b.tunnel(a)?.spec.peer).toBeUndefined();
  });

  test('views that are stored and not ours are put right, also of a peer that says nothing', async () => {
    const [a, b] = [await up('a', SAME), await up('b', SAME)];
    peered(a, b);
    await joined(a, b);
    const view = a.sees(b, SAME);
    await a.exchange.received({ clusterID: b.id }, { network: null });
    await clock.until('the end is gone', () => a.tunnel(b)?.spec.peer === undefined);
    const body = { status: { views: [{ prefix: SAME, as: '10.96.0.0/16', use: 'Pods' }] } };
    await a.client.patch(tunnels, { name: b.id }, { type: 'merge', body }, { subresource: 'status' });
    await clock.until('as before', () => a.sees(b, SAME) === view);
  });

  test('a server that tells no ranges of Services', async () => {
    const a = await up('a', SAME);
    await a.halt();
    a.api.fault({ match: ({ path }) => path.includes('servicecidrs'), status: 404, times: 9 });
    const b = await up('b', SAME);
    await a.start();
    peered(a, b);
    await joined(a, b);
  });

  test('where nothing tells the ranges of Services, no peer is seen as what has a known one in it', async () => {
    const a = await up('a', SAME, { serviceAddress: '10.96.0.1' });
    await a.halt();
    a.api.fault({ match: ({ path }) => path.includes('servicecidrs'), status: 404, times: 9 });
    const b = await up('b', '10.96.0.0/12', { serviceCidrs: ['10.200.0.0/16'] });
    await a.start();
    peered(a, b);
    await joined(a, b);
    expect(isPool(a.sees(b, '10.96.0.0/12'))).toBe(true);
    // It is no range that could be told to others.
    expect(a.own?.services).toEqual([]);
  });

  test('ranges of Services that people name are not looked for', async () => {
    const a = await up('a', SAME, { serviceCidrs: ['10.96.0.0/12'] });
    const b = await up('b', '10.100.0.0/16');
    peered(a, b);
    await joined(a, b);
    expect(a.api.count(/servicecidrs/)).toBe(0);
    expect(isPool(a.sees(b, '10.100.0.0/16'))).toBe(true);
  });
});

describe('preshared keys', () => {
  const on = { presharedKeys: true };

  test('are the same on both sides, made of both halves, and survive a restart', async () => {
    const [a, b] = [await up('a', SAME, on), await up('b', SAME, on)];
    peered(a, b);
    const key = (one: World, other: World): string | undefined => one.secret('tributary-preshared')[other.id];
    await clock.until('both have it', () => key(a, b) !== undefined && key(a, b) === key(b, a));
    const before = key(a, b);
    const [ours, theirs] = [
      a.secret('tributary-preshared-halves')[b.id] ?? '',
      b.secret('tributary-preshared-halves')[a.id] ?? '',
    ];
    expect(before).toBe(presharedKey({ id: b.id, half: theirs }, { id: a.id, half: ours }));
    expect(Buffer.from(before ?? '', 'base64')).toHaveLength(32);
    await a.halt();
    await a.start();
    await joined(a, b);
    expect(key(a, b)).toBe(before);
    await a.client.patch(
      tunnels,
      { name: b.id },
      { type: 'merge', body: { metadata: { annotations: { [ANNOTATION_ROTATE]: 'now' } } } },
    );
    await clock.until('another one', () => key(a, b) !== before && key(a, b) === key(b, a));
    unpeered(a, b);
    await clock.until('gone', () => Object.keys(a.secret('tributary-preshared')).length === 0);
    await clock.until('halves too', () => Object.keys(a.secret('tributary-preshared-halves')).length === 0);
    await a.client.delete(secrets, { namespace: 'tributary-system', name: 'tributary-preshared' });
  });

  test('none where only one side wants one', async () => {
    const [a, b] = [await up('a', SAME, on), await up('b', SAME)];
    peered(a, b);
    await joined(a, b);
    await clock.until(
      'a gives its half',
      () => a.exchange.documents(b.id).network?.presharedHalf !== undefined,
    );
    expect(a.secret('tributary-preshared')).toEqual({});
    expect(b.secret('tributary-preshared')).toEqual({});
    expect(b.secret('tributary-preshared-halves')).toEqual({});
  });
});
