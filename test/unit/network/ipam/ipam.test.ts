import { expect, test } from '@jest/globals';

import type { PeerView } from '../../../../src/api/tunnel.ts';
import { contains, overlaps, parsePrefix } from '../../../../src/lib/prefix.ts';
import { type Assignment, Ipam as AnyIpam } from '../../../../src/network/ipam/ipam.ts';
import { ownAddressesOf } from '../../../../src/network/ipam/own-addresses.ts';
import type { WantedPrefix } from '../../../../src/network/ipam/wanted-prefixes.ts';
import { NEVER_SEEN, SPECIAL_RANGES } from '../../../../src/network/ipam/special-ranges.ts';
import { fc } from '../../../support/property.ts';

const RESERVED = ['10.244.0.0/16', '10.96.0.0/12', '10.70.0.0/20', '192.168.5.0/24', 'fd00:10::/48'];
const OPTIONS = { pools: ['100.64.0.0/10', 'fdcc::/32'], reserved: RESERVED };

/** Here each peer may keep its own private addresses; own-addresses.test.ts has those that may not. */
class Ipam extends AnyIpam {
  override assign(owner: string, wanted: readonly WantedPrefix[]): Assignment {
    return super.assign(owner, wanted, ownAddressesOf(['Any']));
  }
}

const pods = (...prefixes: string[]): WantedPrefix[] =>
  prefixes.map((prefix) => ({ prefix, use: 'Pods' as const }));
const seen = ({ views }: Assignment): string[] => views.map(({ as }) => as);
const reasons = ({ refused }: Assignment): string[] =>
  refused.map(({ prefix, reason }) => `${prefix} ${reason}`);

test('a prefix that overlaps nothing stays as it is', () => {
  const ipam = new Ipam(OPTIONS);
  expect(
    ipam.assign('a', [
      { prefix: '10.1.0.0/16', use: 'Pods' },
      { prefix: 'FD00:11::/48', use: 'External' },
    ]),
  ).toEqual({
    views: [
      { prefix: '10.1.0.0/16', as: '10.1.0.0/16', use: 'Pods' },
      { prefix: 'fd00:11::/48', as: 'fd00:11::/48', use: 'External' },
    ],
    refused: [],
  });
});

test.each([
  ['our own pods', '10.244.0.0/16', '100.64.0.0/16'],
  ['a part of our own pods', '10.244.3.0/24', '100.64.0.0/24'],
  ['more than our own pods', '10.240.0.0/12', '100.64.0.0/12'],
  ['our own Services', '10.96.0.0/12', '100.64.0.0/12'],
  ['the underlay', '192.168.5.0/24', '100.64.0.0/24'],
  ['our pool', '100.64.0.0/16', '100.64.0.0/16'],
  ['a part of our pool', '100.100.0.0/24', '100.64.0.0/24'],
  ['our own IPv6', 'fd00:10::/56', 'fdcc::/56'],
  ['a public range', '8.8.8.0/24', '100.64.0.0/24'],
  ['a public IPv6 range', '2a00:1450::/48', 'fdcc::/48'],
])('%s under the name of a peer is seen in a pool', (_, prefix, as) => {
  expect(seen(new Ipam(OPTIONS).assign('a', pods(prefix)))).toEqual([as]);
});

test.each([
  '172.16.0.0/12',
  '192.168.0.0/24',
  '198.18.0.0/15',
  '192.0.2.0/24',
  '198.51.100.0/25',
  '203.0.113.9/32',
  '2001:db8::/40',
  '3fff::/40',
])('%s is private and may stay', (prefix) => {
  expect(seen(new Ipam(OPTIONS).assign('a', pods(prefix)))).toEqual([prefix]);
});

test.each([
  '0.0.0.0/0',
  '0.0.0.0/8',
  '10.0.0.0/7',
  '127.0.0.0/8',
  '127.0.0.1/32',
  '169.254.169.254/32',
  '169.254.0.0/16',
  '169.0.0.0/8',
  '224.0.0.0/8',
  '239.1.2.0/24',
  '240.0.0.0/8',
  '255.255.255.255/32',
  '::/0',
  '::/16',
  '::1/128',
  '64:ff9b::/96',
  'fc00::/7',
  'fd00::/15',
  'fe80::/64',
  'ff02::/16',
  '10.1.0.1/16',
  '10.1.0.0',
  '10.01.0.0/16',
  '::ffff:a01:0/112',
  'x',
  '',
])('%j is refused', (prefix) => {
  const ipam = new Ipam(OPTIONS);
  const answer = ipam.assign('a', pods('10.1.0.0/24', prefix, '10.1.1.0/24'));
  expect(seen(answer)).toEqual(['10.1.0.0/24', '10.1.1.0/24']);
  expect(answer.refused).toEqual([
    { prefix, reason: 'PrefixRefused', message: expect.stringMatching(/^[\x20-\x7e]{10,250}$/) },
  ]);
});

test('the widest that pass', () => {
  const ipam = new Ipam({ pools: ['20.0.0.0/7', '2c00::/14'], reserved: ['10.0.0.0/8', 'fd00::/16'] });
  expect(seen(ipam.assign('a', pods('10.0.0.0/8', 'fd00::/16')))).toEqual(['20.0.0.0/8', '2c00::/16']);
});

test('of prefixes of one peer that overlap, the first counts', () => {
  const ipam = new Ipam(OPTIONS);
  const wanted = pods(
    '10.1.0.0/16',
    '10.1.0.0/16',
    '10.1.3.0/24',
    '10.0.0.0/14',
    'fd00:1::/48',
    'fd00:1::/64',
  );
  const answer = ipam.assign('a', wanted);
  expect(seen(answer)).toEqual(['10.1.0.0/16', 'fd00:1::/48']);
  expect(answer.refused.map(({ message }) => message)).toEqual([
    '10.1.0.0/16 overlaps another prefix of the same peer',
    '10.1.3.0/24 overlaps another prefix of the same peer',
    '10.0.0.0/14 overlaps another prefix of the same peer',
    'fd00:1::/64 overlaps another prefix of the same peer',
  ]);
});

test('a peer may have 1024 prefixes', () => {
  const many = Array.from({ length: 1_030 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`);
  const answer = new Ipam(OPTIONS).assign('a', pods(...many));
  expect(answer.views).toHaveLength(1_024);
  expect(answer.refused.map(({ prefix }) => prefix)).toEqual(many.slice(1_024));
  expect(answer.refused[0]?.message).toBe('a peer may have at most 1024 prefixes');
});

test('what a peer wrote reaches people without control characters and cut short', () => {
  const { refused } = new Ipam(OPTIONS).assign('a', pods(`\u001b[2J\u202e${'9'.repeat(5_000)}`));
  expect(refused[0]?.prefix).toMatch(/^\?\[2J\?9+$/);
  expect(refused[0]?.prefix).toHaveLength(64);
  expect(refused[0]?.message).toMatch(/^[\x20-\x7e]{10,200}$/);
});

test('three clusters with the same ranges as ours', () => {
  const ipam = new Ipam(OPTIONS);
  const same = pods('10.244.0.0/16', '10.70.0.0/20');
  expect([ipam.assign('b', same), ipam.assign('c', same)].map(seen)).toEqual([
    ['100.64.0.0/16', '100.65.0.0/20'],
    ['100.66.0.0/16', '100.65.16.0/20'],
  ]);
});

test('of two peers with the same range the second is seen in the pool', () => {
  const ipam = new Ipam(OPTIONS);
  expect(['b', 'c'].map((owner) => seen(ipam.assign(owner, pods('10.1.0.0/16'))))).toEqual([
    ['10.1.0.0/16'],
    ['100.64.0.0/16'],
  ]);
});

test('who has a view keeps it, in whatever order and company', () => {
  const ipam = new Ipam(OPTIONS);
  ipam.assign('b', pods('10.1.0.0/16'));
  const before = ipam.assign('c', pods('10.1.0.0/16', '10.2.0.0/16', '10.244.0.0/16'));
  ipam.release('b');
  const after = ipam.assign('c', pods('10.244.0.0/16', '10.9.0.0/16', '10.2.0.0/16', '10.1.0.0/16'));
  expect(seen(before)).toEqual(['100.64.0.0/16', '10.2.0.0/16', '100.65.0.0/16']);
  expect(seen(after)).toEqual(['100.65.0.0/16', '10.9.0.0/16', '10.2.0.0/16', '100.64.0.0/16']);
});

test('what is not wanted any more is free, and another use is no other view', () => {
  const ipam = new Ipam(OPTIONS);
  ipam.assign('b', pods('10.244.0.0/16', '10.1.0.0/16'));
  expect(ipam.assign('b', [{ prefix: '10.1.0.0/16', use: 'Transit' }]).views).toEqual([
    { prefix: '10.1.0.0/16', as: '10.1.0.0/16', use: 'Transit' },
  ]);
  expect(seen(ipam.assign('c', pods('10.244.0.0/16')))).toEqual(['100.64.0.0/16']);
  ipam.release('b');
  ipam.release('nobody');
  expect(seen(ipam.assign('d', pods('10.1.0.0/16')))).toEqual(['10.1.0.0/16']);
  ipam.assign('c', []);
  expect([...ipam.allocations().keys()]).toEqual(['d']);
});

test('a pool that is used up says so, and says which', () => {
  const ipam = new Ipam({ pools: ['100.64.0.0/15'], reserved: ['10.0.0.0/8'] });
  expect(['a', 'b', 'c'].map((owner) => reasons(ipam.assign(owner, pods('10.0.0.0/16'))))).toEqual([
    [],
    [],
    ['10.0.0.0/16 PoolExhausted'],
  ]);
  expect(ipam.assign('c', pods('10.0.0.0/16', 'fd00::/48', '2a00::/48'))).toEqual({
    views: [{ prefix: 'fd00::/48', as: 'fd00::/48', use: 'Pods' }],
    refused: [
      {
        prefix: '10.0.0.0/16',
        reason: 'PoolExhausted',
        message: 'no /16 is left for 10.0.0.0/16 in the pools (100.64.0.0/15)',
      },
      {
        prefix: '2a00::/48',
        reason: 'PoolExhausted',
        message: '2a00::/48 cannot be used as it is, and there is no pool of IPv6',
      },
    ],
  });
  ipam.release('a');
  expect(seen(ipam.assign('c', pods('10.0.0.0/16')))).toEqual(['100.64.0.0/16']);
});

test('one peer leaves a quarter of the pools to others, but may have all of them as one', () => {
  const options = { pools: ['100.64.0.0/24', '100.64.2.0/24'], reserved: ['10.0.0.0/8'] };
  const ipam = new Ipam(options);
  const greedy = Array.from({ length: 8 }, (_, i) => `10.0.${i}.0/26`);
  const answer = ipam.assign('greedy', pods(...greedy));
  expect(answer.views).toHaveLength(6);
  expect(reasons(answer)).toEqual(['10.0.6.0/26 PoolExhausted', '10.0.7.0/26 PoolExhausted']);
  expect(answer.refused[0]?.message).toContain('too little of the pools (100.64.0.0/24, 100.64.2.0/24)');
  expect(ipam.assign('greedy', pods(...greedy))).toEqual(answer);
  expect(ipam.assign('modest', pods('10.0.0.0/25')).refused).toEqual([]);

  const single = new Ipam({ pools: ['100.64.0.0/24'], reserved: ['10.0.0.0/8'] });
  expect(seen(single.assign('a', pods('10.0.0.0/24')))).toEqual(['100.64.0.0/24']);
});

// Public, so that it has to come out of the pool; nobody else would get an address any more.
test('a pool for many is not had as one', () => {
  const ipam = new Ipam({ pools: ['100.64.0.0/10'], reserved: [] });
  const greedy = ipam.assign('greedy', pods('11.0.0.0/10', '11.64.0.0/16'));
  expect(reasons(greedy)).toEqual(['11.0.0.0/10 PoolExhausted']);
  expect(seen(greedy)).toEqual(['100.64.0.0/16']);
  expect(ipam.assign('honest', pods('12.0.0.0/16')).refused).toEqual([]);
});

test('reserved ranges within pools, and pools within reserved ranges', () => {
  const within = new Ipam({ pools: ['100.64.0.0/16'], reserved: ['10.0.0.0/8', '100.64.0.0/17'] });
  expect(seen(within.assign('a', pods('10.0.0.0/24')))).toEqual(['100.64.128.0/24']);
  const around = new Ipam({ pools: ['10.9.0.0/16'], reserved: ['10.0.0.0/8'] });
  expect(reasons(around.assign('a', pods('10.1.0.0/24')))).toEqual(['10.1.0.0/24 PoolExhausted']);
});

test.each([
  [{ pools: ['x'], reserved: [] }],
  [{ pools: ['10.0.0.1/8'], reserved: [] }],
  [{ pools: ['127.0.0.0/16'], reserved: [] }],
  [{ pools: ['0.0.0.0/0'], reserved: [] }],
  [{ pools: [], reserved: ['10.0.0.0'] }],
])('%j is a mistake', (options) => {
  expect(() => new Ipam(options)).toThrow(expect.objectContaining({ code: 'Invalid' }));
});

test('what comes back from a status is checked', () => {
  const ipam = new Ipam(OPTIONS);
  const view = (prefix: string, as: string): PeerView => ({ prefix, as, use: 'Pods' });
  expect(
    ipam.restore('a', [view('10.1.0.0/16', '100.70.0.0/16'), view('10.2.0.0/16', '10.2.0.0/16')]),
  ).toEqual([]);
  const refused = ipam.restore('b', [
    view('10.3.0.0/16', '100.70.0.0/16'),
    view('10.4.0.0/16', '10.2.0.0/16'),
    view('10.5.0.0/24', '10.244.1.0/24'),
    view('10.6.0.0/16', '127.0.0.0/16'),
    view('10.7.0.0/16', '100.71.0.0/17'),
    view('10.8.0.0/16', 'fdcc::/16'),
    view('10.9.0.0/16', 'x'),
    view('x', '100.72.0.0/16'),
    view('10.10.0.0/16', '100.73.0.0/16'),
    view('10.10.0.0/16', '100.74.0.0/16'),
    view('10.11.0.0/8', '100.0.0.0/8'),
  ]);
  expect(refused.map(({ prefix, reason }) => `${prefix} ${reason}`)).toEqual([
    '10.3.0.0/16 PrefixRefused',
    '10.4.0.0/16 PrefixRefused',
    '10.5.0.0/24 PrefixRefused',
    '10.6.0.0/16 PrefixRefused',
    '10.7.0.0/16 PrefixRefused',
    '10.8.0.0/16 PrefixRefused',
    '10.9.0.0/16 PrefixRefused',
    'x PrefixRefused',
    '10.10.0.0/16 PrefixRefused',
    '10.11.0.0/8 PrefixRefused',
  ]);
  expect(ipam.allocations()).toEqual(
    new Map([
      ['a', [view('10.1.0.0/16', '100.70.0.0/16'), view('10.2.0.0/16', '10.2.0.0/16')]],
      ['b', [view('10.10.0.0/16', '100.73.0.0/16')]],
    ]),
  );
  expect(seen(ipam.assign('b', pods('10.3.0.0/16', '10.10.0.0/16')))).toEqual([
    '10.3.0.0/16',
    '100.73.0.0/16',
  ]);
});

test('restoring is safe to repeat, and leaves nothing of an owner that lost all', () => {
  const ipam = new Ipam(OPTIONS);
  const { views } = ipam.assign('a', pods('10.1.0.0/16', '10.244.0.0/16', 'fd00:10::/48'));
  expect(ipam.restore('a', views)).toEqual([]);
  expect(ipam.restore('b', views)).toHaveLength(3);
  expect(ipam.restore('c', [])).toEqual([]);
  expect(ipam.allocations()).toEqual(new Map([['a', views]]));
});

test('views outlive a change of the pools, unless they are in the way', () => {
  const old = new Ipam(OPTIONS);
  const { views } = old.assign('a', pods('10.244.0.0/16', '10.1.0.0/16', '10.2.0.0/16'));
  const now = new Ipam({ pools: ['100.101.0.0/16'], reserved: [...RESERVED, '10.1.7.0/24'] });
  expect(now.restore('a', views).map(({ prefix }) => prefix)).toEqual(['10.1.0.0/16']);
  expect(seen(now.assign('a', pods('10.244.0.0/16', '10.1.0.0/16', '10.2.0.0/16')))).toEqual([
    '100.64.0.0/16',
    '100.101.0.0/16',
    '10.2.0.0/16',
  ]);
});

/** Small worlds in which much overlaps. */
const four = fc
  .tuple(fc.constantFrom(10, 100, 127, 8), fc.integer({ min: 0, max: 3 }), fc.integer({ min: 12, max: 18 }))
  .map(([first, second, length]) => `${first}.${(second << (16 - length)) & 255}.0.0/${length}`)
  .filter((text) => !text.startsWith('100.') || text.startsWith('100.0'));
const six = fc
  .tuple(fc.constantFrom('fd00:10', 'fd00', 'fdcc', '2a00'), fc.integer({ min: 44, max: 50 }))
  .map(([base, length]) => `${base}::/${length}`);
const list = fc.array(fc.record({ prefix: fc.oneof(four, six), use: fc.constant('Pods' as const) }), {
  maxLength: 6,
});
const history = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), list), { maxLength: 14 });

function expectSound(ipam: Ipam, pools: readonly string[]): void {
  const all = [...ipam.allocations().values()].flat();
  const reserved = [...RESERVED.map(parsePrefix), ...SPECIAL_RANGES, ...NEVER_SEEN];
  for (const [at, { prefix, as }] of all.entries()) {
    const range = parsePrefix(as);
    expect([range.family, range.length]).toEqual([parsePrefix(prefix).family, parsePrefix(prefix).length]);
    expect(reserved.filter((other) => overlaps(other, range))).toEqual([]);
    expect(all.slice(at + 1).filter((other) => overlaps(parsePrefix(other.as), range))).toEqual([]);
    const pooled = pools.some((pool) => contains(parsePrefix(pool), range));
    expect([as, pooled || as === prefix]).toEqual([as, true]);
  }
}

test('whatever peers wish: nothing overlaps, nobody loses, and all comes back', () => {
  fc.assert(
    fc.property(history, (steps) => {
      const ipam = new Ipam(OPTIONS);
      for (const [owner, wanted] of steps) {
        const before = new Map(
          ipam
            .allocations()
            .get(owner)
            ?.map(({ prefix, as }) => [prefix, as]),
        );
        const { views, refused } = ipam.assign(owner, wanted);
        expect(views.length + refused.length).toBe(wanted.length);
        for (const { prefix, as } of views) expect(as).toBe(before.get(prefix) ?? as);
        expect(ipam.allocations().get(owner) ?? []).toEqual(views);
        expectSound(ipam, OPTIONS.pools);
      }
      const again = new Ipam(OPTIONS);
      for (const [owner, views] of ipam.allocations()) expect(again.restore(owner, views)).toEqual([]);
      expect(again.allocations()).toEqual(ipam.allocations());
      for (const [owner, wanted] of new Map(steps)) {
        expect(again.assign(owner, wanted)).toEqual(ipam.assign(owner, wanted));
      }
      for (const owner of again.allocations().keys()) again.release(owner);
      const halves = ['y', 'z'].flatMap((one) => seen(again.assign(one, pods('100.64.0.0/12', 'fdcc::/33'))));
      expect(halves).toEqual(['100.64.0.0/12', 'fdcc::/33', '100.80.0.0/12', 'fdcc:0:8000::/33']);
    }),
    { numRuns: 150 },
  );
});

test('the 10,000th allotment costs as many steps as the 100th', () => {
  const ipam = new Ipam({ pools: ['100.64.0.0/10', 'fdcc::/32'], reserved: RESERVED });
  const cost = (peer: number): number => {
    const before = ipam.steps;
    const { views } = ipam.assign(`peer-${peer}`, pods('10.244.0.0/24', 'fd00:10::/64'));
    expect(views).toHaveLength(2);
    return ipam.steps - before;
  };
  const costs = Array.from({ length: 10_000 }, (_, peer) => cost(peer));
  const most = (from: number, to: number): number => Math.max(...costs.slice(from, to));
  expect(most(9_900, 10_000) / most(0, 100)).toBeLessThan(1.3);
});
