import { expect, test } from '@jest/globals';

import {
  contains,
  formatPrefix,
  overlaps,
  parsePrefix,
  type Prefix,
  prefixOf,
} from '../../../../src/lib/prefix.ts';
import { RangeTree } from '../../../../src/network/ipam/range-tree.ts';
import { fc } from '../../../support/property.ts';

const texts = (prefixes: readonly (Prefix | undefined)[]): string[] =>
  prefixes.map((prefix) => (prefix === undefined ? 'none' : formatPrefix(prefix)));

test('takes the lowest block that is left, and none when it is full', () => {
  const tree = new RangeTree(parsePrefix('10.0.0.0/30'));
  expect(texts([tree.allocate(31), tree.allocate(32), tree.allocate(32), tree.allocate(32)])).toEqual([
    '10.0.0.0/31',
    '10.0.0.2/32',
    '10.0.0.3/32',
    'none',
  ]);
});

test('a range that is wider than all does not fit, one as wide as all does', () => {
  const tree = new RangeTree(parsePrefix('10.0.0.0/16'));
  expect(texts([tree.allocate(15), tree.allocate(16), tree.allocate(16)])).toEqual([
    'none',
    '10.0.0.0/16',
    'none',
  ]);
});

test('takes the smallest block that is wide enough, so that wide ones stay whole', () => {
  const tree = new RangeTree(parsePrefix('10.0.0.0/16'));
  tree.take(parsePrefix('10.0.128.0/24'));
  expect(texts([tree.allocate(24), tree.allocate(23), tree.allocate(17)])).toEqual([
    '10.0.129.0/24',
    '10.0.130.0/23',
    '10.0.0.0/17',
  ]);
});

test('what is given back is whole again', () => {
  const tree = new RangeTree(parsePrefix('fd00::/32'));
  const blocks = [tree.allocate(64), tree.allocate(64), tree.allocate(48)];
  for (const block of blocks) expect(block && tree.release(block)).toBe(true);
  expect(texts([tree.allocate(32)])).toEqual(['fd00::/32']);
});

test('only what was taken can be given back', () => {
  const tree = new RangeTree(parsePrefix('10.0.0.0/8'));
  tree.take(parsePrefix('10.1.0.0/16'));
  for (const text of ['10.1.0.0/17', '10.0.0.0/15', '10.2.0.0/16', '11.0.0.0/16', '10.0.0.0/8', 'a00::/16']) {
    expect([text, tree.release(parsePrefix(text))]).toEqual([text, false]);
  }
  expect(tree.isFree(parsePrefix('10.1.0.0/24'))).toBe(false);
  expect(tree.release(parsePrefix('10.1.0.0/16'))).toBe(true);
  expect(tree.isFree(parsePrefix('10.0.0.0/8'))).toBe(true);
});

const RANGE = parsePrefix('10.0.0.0/26');
const place = fc
  .record({ value: fc.bigInt({ min: 0n, max: 127n }), length: fc.integer({ min: 25, max: 32 }) })
  .map(({ value, length }) => prefixOf({ family: 4, value: 0x0a000000n + value }, length));
const step = fc.oneof(
  fc.record({ act: fc.constant('take' as const), place }),
  fc.record({ act: fc.constant('release' as const), place }),
  fc.record({ act: fc.constant('allocate' as const), place }),
);
const candidates = (length: number): Prefix[] =>
  length < RANGE.length
    ? []
    : Array.from({ length: 2 ** (length - RANGE.length) }, (_, i) => ({
        ...RANGE,
        base: RANGE.base + BigInt(i) * 2n ** BigInt(32 - length),
        length,
      }));

test('does what a plain list of taken prefixes does', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const tree = new RangeTree(RANGE);
      let taken: Prefix[] = [];
      const isFree = (one: Prefix): boolean =>
        contains(RANGE, one) && !taken.some((other) => overlaps(one, other));
      for (const { act, place: one } of steps) {
        const same = (other: Prefix): boolean => formatPrefix(other) === formatPrefix(one);
        expect(tree.isFree(one)).toBe(isFree(one));
        if (act === 'take') {
          expect(tree.take(one)).toBe(isFree(one));
          if (isFree(one)) taken.push(one);
        } else if (act === 'release') {
          expect(tree.release(one)).toBe(taken.some(same));
          taken = taken.filter((other) => !same(other));
        } else {
          const possible = candidates(one.length).filter(isFree);
          const found = tree.allocate(one.length);
          if (possible.length === 0) expect(found).toBeUndefined();
          else expect(texts(possible)).toContain(found && formatPrefix(found));
          if (found) taken.push(found);
        }
      }
    }),
    { numRuns: 400 },
  );
});

test.each([
  ['10.0.0.0/8', 26, 18],
  ['fd00::/48', 66, 18],
])('in %s the 10,000th range costs no more steps than an address has bits', (range, length, bits) => {
  const tree = new RangeTree(parsePrefix(range));
  const costs = Array.from({ length: 10_000 }, () => {
    const before = tree.steps;
    expect(tree.allocate(length)).toBeDefined();
    return tree.steps - before;
  });
  expect(Math.max(...costs)).toBeLessThanOrEqual(3 * bits + 1);
  // To find it, to see that it is free, to take it.
  expect(Math.max(...costs)).toBeGreaterThan(2.5 * bits);
});
