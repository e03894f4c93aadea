import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net';
import { expect, test } from '@jest/globals';
import {
  compare,
  contains,
  formatAddress,
  formatPrefix,
  mergePrefixes,
  nthAddress,
  overlaps,
  parseAddress,
  parsePrefix,
  prefixOf,
  PrefixSet,
  sizeOf,
  tryPrefix,
  WIDTHS,
} from '../../../src/lib/prefix.ts';
import type { Address, Prefix } from '../../../src/lib/prefix.ts';
import { fc } from '../../support/property.ts';

const v4 = fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }).map((value): Address => ({ family: 4, value }));
/** With many zeros, and never mapped. */
const v6 = fc
  .array(fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: 0, max: 0xffff })), {
    minLength: 7,
    maxLength: 7,
  })
  .map((groups): Address => ({
    family: 6,
    value: groups.reduce((sum, group) => (sum << 16n) + BigInt(group), 0x2001n),
  }));
const address = fc.oneof(v4, v6);
const prefix = fc
  .tuple(address, fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([one, part]) => prefixOf(one, Math.round(part * WIDTHS[one.family])));
/** Few addresses and lengths, so that they meet. */
const near = fc
  .record({ value: fc.bigInt({ min: 0n, max: 63n }), length: fc.integer({ min: 26, max: 32 }) })
  .map(({ value, length }) => prefixOf({ family: 4, value: 0x0a000000n + value }, length));

test.each([
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['10.244.0.0/16', '10.244.0.0/16'],
  ['255.255.255.255/32', '255.255.255.255/32'],
  ['::/0', '::/0'],
  ['FD00:0:0:1:0:0:0:0/64', 'fd00:0:0:1::/64'],
  ['2001:0db8::/32', '2001:db8::/32'],
  ['2001:db8:0:1:1:1:1:1/128', '2001:db8:0:1:1:1:1:1/128'],
  ['2001:0:0:1:0:0:0:1/128', '2001:0:0:1::1/128'],
  ['2001:db8:0:0:1:0:0:1/128', '2001:db8::1:0:0:1/128'],
  ['1::/16', '1::/16'],
  ['::1/128', '::1/128'],
  ['2001:0db8:1111:2222:3333:4444:5555:6666/128', '2001:db8:1111:2222:3333:4444:5555:6666/128'],
  ['1:2:3:4:5:6:7::/112', '1:2:3:4:5:6:7:0/112'],
])('%s is %s', (text, canonical) => {
  expect(formatPrefix(parsePrefix(text))).toBe(canonical);
});

test.each([
  ['10.0.0.0', 'length is missing'],
  ['10.0.0.0/', 'from 0 to 32'],
  ['10.0.0.0/33', 'from 0 to 32'],
  ['10.0.0.0/08', 'from 0 to 32'],
  ['10.0.0.0/+8', 'from 0 to 32'],
  ['10.0.0.0/8 ', 'from 0 to 32'],
  ['10.0.0.0/8/8', 'from 0 to 32'],
  ['fd00::/129', 'from 0 to 128'],
  ['10.0.0.1/8', 'write 10.0.0.0/8'],
  ['fd00::1/64', 'write fd00::/64'],
  ['010.0.0.0/8', 'plain IPv4 or IPv6'],
  ['10.0.0/8', 'plain IPv4 or IPv6'],
  ['10.0.0.0.0/8', 'plain IPv4 or IPv6'],
  ['256.0.0.0/8', 'plain IPv4 or IPv6'],
  ['10.0.0.-0/8', 'plain IPv4 or IPv6'],
  ['0x0a.0.0.0/8', 'plain IPv4 or IPv6'],
  ['10.0.0.1e0/32', 'plain IPv4 or IPv6'],
  [' 10.0.0.0/8', 'plain IPv4 or IPv6'],
  ['/8', 'plain IPv4 or IPv6'],
  ['fe80::%eth0/64', 'plain IPv4 or IPv6'],
  ['::ffff:10.0.0.0/104', 'plain IPv4 or IPv6'],
  ['::ffff:a00:0/104', 'plain IPv4 or IPv6'],
  ['::ffff:0:0/96', 'plain IPv4 or IPv6'],
  ['1::2::3/128', 'plain IPv4 or IPv6'],
  ['1:2:3:4:5:6:7/128', 'plain IPv4 or IPv6'],
  ['1:2:3:4:5:6:7:8::/128', 'plain IPv4 or IPv6'],
  ['1:2:3:4:5:6:7:8:9/128', 'plain IPv4 or IPv6'],
  [':1:2:3:4:5:6:7/128', 'plain IPv4 or IPv6'],
  ['1:2:3:4:5:6:7:/128', 'plain IPv4 or IPv6'],
  [':::/128', 'plain IPv4 or IPv6'],
  [':/128', 'plain IPv4 or IPv6'],
  ['12345::/16', 'plain IPv4 or IPv6'],
  ['g::/16', 'plain IPv4 or IPv6'],
  [`${'1'.repeat(100_000)}/8`, 'plain IPv4 or IPv6'],
])('%j is no prefix', (text, why) => {
  expect(() => parsePrefix(text)).toThrow(
    expect.objectContaining({ code: 'Invalid', message: expect.stringContaining(why) }),
  );
  expect(tryPrefix(text)).toBeUndefined();
});

test('the message of a hostile text is short and on one line', () => {
  let message = '';
  try {
    parsePrefix(`\n${'x'.repeat(10_000)}/8`);
  } catch (error) {
    ({ message } = error as Error);
  }
  expect(message).toMatch(/^[^\n]{20,200}$/);
});

test('what is written is read again', () => {
  fc.assert(fc.property(address, (one) => expect(parseAddress(formatAddress(one))).toEqual(one)));
  fc.assert(fc.property(prefix, (one) => expect(parsePrefix(formatPrefix(one))).toEqual(one)));
});

test('addresses are written as the platform writes them', () => {
  fc.assert(
    fc.property(address, (one) => {
      const text = formatAddress(one);
      expect(new SocketAddress({ address: text, family: one.family === 4 ? 'ipv4' : 'ipv6' }).address).toBe(
        text,
      );
    }),
  );
});

test('addresses are read where the platform reads them', () => {
  const noise = fc.string({ unit: fc.constantFrom(...'0123459af:.'.split('')), maxLength: 20 });
  const almost = fc
    .tuple(address.map(formatAddress), fc.nat(), fc.constantFrom('', ':', '.', '0', '1', 'g'))
    .map(([text, at, piece]) => {
      const cut = at % (text.length + 1);
      return text.slice(0, cut) + piece + text.slice(cut + 1);
    });
  const dotted = (text: string): boolean => text.includes(':') && text.includes('.');
  fc.assert(
    fc.property(fc.oneof(noise, almost), (text) => {
      fc.pre(!dotted(text) && !/^[0:]*:ffff:[^:]*:[^:]*$/i.test(text));
      expect(parseAddress(text)?.family === 4).toBe(isIPv4(text));
      expect(parseAddress(text)?.family === 6).toBe(isIPv6(text));
    }),
    { numRuns: 2_000 },
  );
});

test('contains as the platform does', () => {
  fc.assert(
    fc.property(prefix, address, (one, other) => {
      const list = new BlockList();
      const family = one.family === 4 ? 'ipv4' : 'ipv6';
      fc.pre(one.length > 0);
      list.addSubnet(formatAddress({ family: one.family, value: one.base }), one.length, family);
      const inside = { ...other, value: other.family === one.family ? other.value : one.base };
      expect(contains(one, { ...inside, family: one.family })).toBe(
        list.check(formatAddress({ ...inside, family: one.family }), family),
      );
    }),
  );
});

test('prefixes contain and overlap each other as their addresses do', () => {
  const members = (one: Prefix): Set<bigint> =>
    new Set(Array.from({ length: Number(sizeOf(one)) }, (_, i) => one.base + BigInt(i)));
  fc.assert(
    fc.property(near, near, (one, other) => {
      expect(contains(one, other)).toBe(members(other).isSubsetOf(members(one)));
      expect(overlaps(one, other)).toBe(!members(other).isDisjointFrom(members(one)));
      expect(Math.sign(compare(one, other))).toBe(-Math.sign(compare(other, one)) || 0);
    }),
  );
  const [four, six] = [parsePrefix('0.0.0.0/0'), parsePrefix('::/0')];
  expect([contains(four, six), contains(six, four), overlaps(four, six)]).toEqual([false, false, false]);
  expect(contains(six, { family: 4, value: 1n })).toBe(false);
});

test('merging keeps the addresses and leaves nothing to merge', () => {
  const covers = (list: readonly Prefix[], value: bigint): boolean =>
    list.some((one) => contains(one, { family: 4, value }));
  fc.assert(
    fc.property(fc.array(near, { maxLength: 12 }), (list) => {
      const merged = mergePrefixes(list);
      for (let value = 0x0a000000n; value < 0x0a000080n; value += 1n) {
        expect(covers(merged, value)).toBe(covers(list, value));
      }
      for (const [at, one] of merged.entries()) {
        const next = merged[at + 1];
        if (next === undefined) continue;
        expect(compare(one, next)).toBeLessThan(0);
        expect(overlaps(one, next)).toBe(false);
        const whole = prefixOf({ family: 4, value: one.base }, one.length - 1);
        expect(one.length === next.length && contains(whole, next)).toBe(false);
      }
    }),
  );
  const texts = ['fd00:0:0:1::/64', '10.0.1.0/24', '10.0.0.0/24', '10.0.2.0/23', 'fd00::/64', '10.0.3.0/24'];
  expect(mergePrefixes(texts.map(parsePrefix)).map(formatPrefix)).toEqual(['10.0.0.0/22', 'fd00::/63']);
  const halves = ['0.0.0.0/1', '128.0.0.0/1', '::/1', '8000::/1'];
  expect(mergePrefixes(halves.map(parsePrefix)).map(formatPrefix)).toEqual(['0.0.0.0/0', '::/0']);
});

test('addresses are counted from the first to the last', () => {
  const four = parsePrefix('10.70.0.0/20');
  expect([sizeOf(four), sizeOf(parsePrefix('::/0')), sizeOf(parsePrefix('::1/128'))]).toEqual([
    4096n,
    2n ** 128n,
    1n,
  ]);
  expect([nthAddress(four, 0), nthAddress(four, 1), nthAddress(four, 4095n)]).toEqual([
    '10.70.0.0',
    '10.70.0.1',
    '10.70.15.255',
  ]);
  expect(nthAddress(parsePrefix('fd00::/64'), 2n ** 64n - 1n)).toBe('fd00::ffff:ffff:ffff:ffff');
  for (const wrong of [-1, 4096]) {
    expect(() => nthAddress(four, wrong)).toThrow(expect.objectContaining({ code: 'Invalid' }));
  }
});

test('a set of prefixes contains what one of them contains', () => {
  const prefixes = fc.array(fc.oneof(near, prefix), { maxLength: 12 });
  const nearby = fc
    .bigInt({ min: 0n, max: 63n })
    .map((value): Address => ({ family: 4, value: 0x0a000000n + value }));
  fc.assert(
    fc.property(prefixes, fc.oneof(nearby, address), (all, one) => {
      expect(new PrefixSet(all).contains(one)).toBe(all.some((each) => contains(each, one)));
    }),
  );
});
