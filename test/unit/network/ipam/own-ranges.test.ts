import { expect, test } from '@jest/globals';

import { contains, mergePrefixes, overlaps, parseAddress, parsePrefix } from '../../../../src/lib/prefix.ts';
import {
  assignNodeAddresses,
  gatewayAddressOf,
  mergePodCidrs,
  reservedRanges,
} from '../../../../src/network/ipam/own-ranges.ts';
import { fc } from '../../../support/property.ts';

const NOTHING = new Map<string, string>();
const invalid = expect.objectContaining({ code: 'Invalid' });

test('reserved is what is ours, and the networks of our nodes', () => {
  const own = {
    pods: ['10.244.0.0/16', 'fd00:10:244::/56'],
    services: ['10.96.0.0/12'],
    external: '10.70.0.0/20',
    nodeAddresses: ['192.168.7.9', '192.168.7.10', 'fd00:1::7', 'node.example.org', '', 'fe80::1%eth0'],
    single: ['203.0.113.7', '2001:db8::7', 'nowhere'],
    extra: ['172.16.0.0/12', '10.244.3.0/24'],
  };
  expect(reservedRanges(own)).toEqual([
    '10.70.0.0/20',
    '10.96.0.0/12',
    '10.244.0.0/16',
    '100.100.100.200/32',
    '168.63.129.16/32',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.0.0.192/32',
    '192.168.7.0/24',
    '203.0.113.7/32',
    '2001:db8::7/128',
    'fd00:1::/64',
    'fd00:10:244::/56',
    'fd00:42::42/128',
    'fd00:c1::a9fe:a9fe/128',
    'fd00:ec2::/32',
    'fd20:ce::254/128',
    'fe80::/10',
  ]);
  for (const part of ['pods', 'services', 'extra']) {
    expect(() => reservedRanges({ ...own, [part]: ['10.0.0.1/8'] })).toThrow(invalid);
  }
  expect(() => reservedRanges({ ...own, external: 'x' })).toThrow(invalid);
});

test('the first address of the external range is the gateway’s', () => {
  expect(gatewayAddressOf('10.70.0.0/20')).toBe('10.70.0.1');
  expect(gatewayAddressOf('fd00:70::/64')).toBe('fd00:70::1');
  expect([...assignNodeAddresses('10.70.0.4/30', ['a', 'b'], NOTHING)]).toEqual([['a', '10.70.0.6']]);
  expect([...assignNodeAddresses('fd00::/126', ['a', 'b'], NOTHING)]).toEqual([['a', 'fd00::2']]);
  for (const range of ['10.70.0.0/31', '10.70.0.0/32', 'fd00::/127', '10.70.0.1/20']) {
    expect(() => gatewayAddressOf(range)).toThrow(invalid);
    expect(() => assignNodeAddresses(range, ['a'], NOTHING)).toThrow(invalid);
  }
});

test('nodes get the next addresses, by name, however they are listed', () => {
  for (const nodes of [
    ['a', 'b', 'c'],
    ['c', 'b', 'a', 'b'],
  ]) {
    expect([...assignNodeAddresses('10.70.0.0/20', nodes, NOTHING)]).toEqual([
      ['a', '10.70.0.2'],
      ['b', '10.70.0.3'],
      ['c', '10.70.0.4'],
    ]);
  }
});

test('who has an address keeps it; that of a node that left goes to the next', () => {
  const before = new Map([
    ['b', '10.70.0.2'],
    ['c', '10.70.1.9'],
    ['gone', '10.70.0.3'],
  ]);
  expect([...assignNodeAddresses('10.70.0.0/20', ['a', 'b', 'c', 'd'], before)]).toEqual([
    ['a', '10.70.0.3'],
    ['b', '10.70.0.2'],
    ['c', '10.70.1.9'],
    ['d', '10.70.0.4'],
  ]);
});

test.each([
  ['of another range', '10.71.0.2'],
  ['of another family', 'fd00::2'],
  ['the network’s', '10.70.0.0'],
  ['the gateway’s', '10.70.0.1'],
  ['broadcast', '10.70.0.7'],
  ['none', 'x'],
  ['another node’s', '10.70.0.5'],
])('an address that is %s is not kept', (_, address) => {
  const before = new Map([
    ['a', '10.70.0.5'],
    ['b', address],
  ]);
  expect([...assignNodeAddresses('10.70.0.0/29', ['a', 'b'], before)]).toEqual([
    ['a', '10.70.0.5'],
    ['b', '10.70.0.2'],
  ]);
});

test('a range that is full leaves nodes out, never one that had an address', () => {
  const nodes = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const before = new Map([['g', '10.70.0.3']]);
  expect([...assignNodeAddresses('10.70.0.0/29', nodes, before)]).toEqual([
    ['a', '10.70.0.2'],
    ['b', '10.70.0.4'],
    ['c', '10.70.0.5'],
    ['d', '10.70.0.6'],
    ['g', '10.70.0.3'],
  ]);
});

test('whoever comes and goes: addresses are unique, in range, and stay', () => {
  const nodes = fc.uniqueArray(fc.constantFrom(...'abcdefghijkl'.split('')), { maxLength: 10 });
  const range = parsePrefix('10.70.0.16/28');
  fc.assert(
    fc.property(fc.array(nodes, { maxLength: 8 }), (history) => {
      let before = NOTHING;
      for (const now of history) {
        const after = assignNodeAddresses('10.70.0.16/28', now, before);
        expect([...after.keys()].toSorted()).toEqual(now.toSorted());
        expect(new Set(after.values()).size).toBe(after.size);
        for (const [name, text] of after) {
          const address = parseAddress(text);
          expect(address && contains(range, address)).toBe(true);
          expect(['10.70.0.16', '10.70.0.17', '10.70.0.31']).not.toContain(text);
          expect(text).toBe(before.get(name) ?? text);
        }
        before = after;
      }
    }),
  );
});

test('CIDRs of nodes become as few as may be', () => {
  expect(
    mergePodCidrs(['10.244.1.0/24', '10.244.0.0/24', '10.244.5.0/24', 'fd00::/64', '10.244.0.0/24']),
  ).toEqual(['10.244.0.0/23', '10.244.5.0/24', 'fd00::/64']);
  expect(() => mergePodCidrs(['10.244.1.1/24'])).toThrow(invalid);
});

test('a node that joins or leaves changes no other prefix', () => {
  const before = ['10.244.0.0/23', '10.244.5.0/24'];
  const joined = mergePodCidrs(['10.244.0.0/24', '10.244.1.0/24', '10.244.5.0/24', '10.244.4.0/24'], before);
  expect(joined).toEqual(['10.244.0.0/23', '10.244.4.0/24', '10.244.5.0/24']);
  expect(mergePodCidrs(['10.244.1.0/24', '10.244.4.0/24'], joined)).toEqual([
    '10.244.0.0/23',
    '10.244.4.0/24',
  ]);
  expect(mergePodCidrs(['10.0.0.0/8'], joined)).toEqual(['10.0.0.0/8']);
  expect(mergePodCidrs(['10.244.5.0/24'], ['10.244.5.0/24', '10.244.4.0/23'])).toEqual(['10.244.4.0/23']);
  expect(mergePodCidrs([], joined)).toEqual([]);
});

// Each would be one prefix more, and a peer takes no more than 256: the next node would be cut off, and the tunnels with it.
test('nodes that join one by one never become more prefixes than a peer may be told', () => {
  const cidrs = Array.from({ length: 300 }, (_, n) => `10.${n >> 8}.${n & 255}.0/24`);
  let told: string[] = [];
  for (const [at] of cidrs.entries()) {
    told = mergePodCidrs(cidrs.slice(0, at + 1), told);
    expect(told.length).toBeLessThanOrEqual(256);
  }
  expect(told.slice(0, 2)).toEqual(['10.0.0.0/16', '10.1.0.0/24']);
  const apart = cidrs.map((text) => text.replace('.0/24', '.0/25'));
  expect(mergePodCidrs(apart, mergePodCidrs(apart.slice(0, 3)))).toHaveLength(300);
});

test('whatever was before: all pods are in, nothing overlaps, and what is still of use stays', () => {
  const cidr = fc
    .tuple(fc.nat(15), fc.integer({ min: 21, max: 24 }))
    .map(([n, length]) => `10.0.${(n >> (24 - length)) << (24 - length)}.0/${length}`);
  const cidrs = fc.array(cidr, { maxLength: 6 });
  fc.assert(
    fc.property(cidrs, cidrs, (now, earlier) => {
      const before = mergePodCidrs(earlier);
      const after = mergePodCidrs(now, before);
      const ranges = after.map(parsePrefix);
      for (const one of now.map(parsePrefix)) expect(ranges.some((range) => contains(range, one))).toBe(true);
      for (const [at, one] of ranges.entries()) {
        expect(ranges.slice(at + 1).filter((other) => overlaps(one, other))).toEqual([]);
      }
      const needed = mergePrefixes(now.map(parsePrefix));
      for (const text of before) {
        const old = parsePrefix(text);
        const wider = now.map(parsePrefix).some((one) => one.length < old.length && contains(one, old));
        const used = needed.some((one) => overlaps(old, one));
        expect([text, after.includes(text)]).toEqual([text, used && !wider]);
      }
    }),
  );
});
