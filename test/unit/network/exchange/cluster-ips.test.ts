import { afterEach, describe, expect, test } from '@jest/globals';

import type { TunnelSpec } from '../../../../src/api/tunnel.ts';
import {
  decideSpec,
  type NetworkPeer,
  serviceRangesFor,
} from '../../../../src/network/exchange/tunnel-spec.ts';
import { peer } from './support/peer.ts';
import { clock, joined, peered, World } from './support/world.ts';

/** Whether pods of ours at a peer reach our ClusterIPs. */

const open = (changes: Partial<NetworkPeer> = {}): NetworkPeer =>
  peer({ services: 'OffloadedPods', ...changes });
const own = { services: ['10.96.0.0/16', 'fd00:96::/108'] };

test('a peer is told the ranges of our ClusterIPs where we choose so, written as everywhere', () => {
  expect(serviceRangesFor(open(), own)).toEqual(own.services);
  expect(serviceRangesFor(open(), { services: ['FD00:96:0::/108', 'nonsense', '10.96.0.1/16'] })).toEqual([
    'fd00:96::/108',
  ]);
  expect(serviceRangesFor(open(), {})).toEqual([]);
});

test('ranges that lie in another one are told with it', () => {
  const services = ['10.96.4.0/24', '10.96.0.0/16', '10.97.0.0/16', '10.97.0.0/16'];
  expect(serviceRangesFor(open(), { services })).toEqual(['10.96.0.0/16', '10.97.0.0/16']);
});

test.each<[string, Partial<NetworkPeer>]>([
  ['nobody has chosen it', { services: 'None' }],
  ['nothing may come from there', { access: 'None' }],
  ['none of our pods run there', { outgoing: false, incoming: true }],
])('it is told none where %s', (_why, changes) => {
  expect(serviceRangesFor(open(changes), own)).toEqual([]);
});

test('more ranges than a Tunnel holds are cut', () => {
  const services = Array.from({ length: 20 }, (_, n) => `10.96.${n}.0/24`);
  expect(serviceRangesFor(open(), { services })).toEqual(services.slice(0, 8));
});

test('the Tunnel names them, and how the peer sees them', () => {
  const decided = (ranges: string[], exported: string[], views = [...exported]): TunnelSpec =>
    decideSpec({
      peer: open(),
      heard: {
        publicKey: 'k',
        endpoints: [],
        pods: [],
        external: [],
        transit: [],
        views: views.map((prefix) => ({ prefix, as: prefix })),
      },
      exported,
      ranges,
    }).spec;
  expect(decided(own.services, own.services)).toMatchObject({
    services: own.services,
    seenAs: own.services.map((prefix) => ({ prefix, as: prefix })),
  });
  // What the peer still says of them is not believed.
  const closed = decided([], [], own.services);
  expect(closed).not.toHaveProperty('services');
  expect(closed).not.toHaveProperty('seenAs');
});

describe('two clusters, joined', () => {
  const worlds: World[] = [];
  afterEach(async () => Promise.all(worlds.splice(0).map(async (world) => world.down())));

  /** Home has 10.96.0.0/16. */
  async function pair(theirs: string): Promise<{ home: World; other: World }> {
    const home = await World.up('a', '10.244.0.0/16');
    const other = await World.up('b', '10.244.0.0/16', { serviceCidrs: [theirs] });
    worlds.push(home, other);
    peered(home, other, { services: 'OffloadedPods' });
    await joined(home, other);
    await clock.until('home knows', () => home.seenBy(other, RANGE) !== undefined);
    return { home, other };
  }
  const RANGE = '10.96.0.0/16';

  test('see each other’s pods elsewhere, and home’s ClusterIPs as they are', async () => {
    const { home, other } = await pair('10.97.0.0/16');
    expect(home.seenBy(other, RANGE)).toBe(RANGE);
    expect(home.tunnel(other)?.spec.services).toEqual([RANGE]);
    expect(other.tunnel(home)?.status?.views).toContainEqual({ prefix: RANGE, as: RANGE, use: 'Transit' });
    // The choice is that of home: it learns of no ClusterIPs itself.
    expect(other.tunnel(home)?.spec).not.toHaveProperty('services');
    expect(home.tunnel(other)?.spec.peer).not.toHaveProperty('transit');

    peered(home, other, { services: 'None' });
    await clock.until('it is taken back', () => other.tunnel(home)?.status?.views?.length === 2);
    expect(home.tunnel(other)?.spec).not.toHaveProperty('services');
    expect(home.seenBy(other, RANGE)).toBeUndefined();
  });

  test('with the same range, home is told where the other one sees it', async () => {
    const { home, other } = await pair('10.96.0.0/12');
    expect(home.seenBy(other, RANGE)).toMatch(/^100\..*\/16$/);
  });
});
