import { expect, test } from '@jest/globals';

import { overlaps, parsePrefix } from '../../../../src/lib/prefix.ts';
import { checkSeenAs } from '../../../../src/network/ipam/seen-as.ts';
import { fc } from '../../../support/property.ts';

const EXPORTED = ['10.244.0.0/16', '10.70.0.0/20', 'fd00:10::/48'];

test('what fits is taken, in the order of what we export and in canonical text', () => {
  expect(
    checkSeenAs(
      [
        { prefix: 'FD00:10::/48', as: 'FDCC:0::/48' },
        { prefix: '10.70.0.0/20', as: '10.70.0.0/20' },
        { prefix: '10.244.0.0/16', as: '10.96.0.0/16' },
      ],
      EXPORTED,
    ),
  ).toEqual({
    seenAs: [
      { prefix: '10.244.0.0/16', as: '10.96.0.0/16' },
      { prefix: '10.70.0.0/20', as: '10.70.0.0/20' },
      { prefix: 'fd00:10::/48', as: 'fdcc::/48' },
    ],
    refused: [],
  });
});

test('a prefix that the peer has no view of is left out', () => {
  expect(checkSeenAs([], EXPORTED)).toEqual({ seenAs: [], refused: [] });
});

test.each([
  ['not ours', '10.9.0.0/16', '100.64.0.0/16', 'not exported'],
  ['a part of ours', '10.244.1.0/24', '100.64.1.0/24', 'not exported'],
  ['everything', '0.0.0.0/0', '0.0.0.0/0', 'not exported'],
  ['no prefix', 'x', '100.64.0.0/16', 'no CIDR'],
  ['another length', '10.244.0.0/16', '100.64.0.0/17', 'another family or length'],
  ['another family', '10.244.0.0/16', 'fdcc::/16', 'another family or length'],
  ['host bits', '10.244.0.0/16', '100.64.0.1/16', 'another family or length'],
  ['no CIDR', '10.244.0.0/16', '100.64.0.0', 'another family or length'],
  ['loopback', '10.244.0.0/16', '127.0.0.0/16', 'loopback'],
  ['link-local', '10.244.0.0/16', '169.254.0.0/16', 'link-local'],
  ['multicast', '10.244.0.0/16', '239.1.0.0/16', 'multicast'],
  ['unspecified', '10.244.0.0/16', '0.0.0.0/16', 'unspecified'],
  ['broadcast', '10.244.0.0/16', '255.255.0.0/16', 'broadcast'],
  ['link-local IPv6', 'fd00:10::/48', 'fe80::/48', 'link-local'],
  ['multicast IPv6', 'fd00:10::/48', 'ff02::/48', 'multicast'],
])('%s: %s seen as %s is refused', (_, prefix, as, why) => {
  const { seenAs, refused } = checkSeenAs([{ prefix, as }], EXPORTED);
  expect(seenAs).toEqual([]);
  expect(refused).toEqual([{ prefix, reason: 'PrefixRefused', message: expect.stringContaining(why) }]);
});

test('of overlapping views, and of two for one prefix, the first of ours counts', () => {
  const { seenAs, refused } = checkSeenAs(
    [
      { prefix: '10.70.0.0/20', as: '100.64.16.0/20' },
      { prefix: '10.244.0.0/16', as: '100.64.0.0/16' },
      { prefix: '10.244.0.0/16', as: '100.65.0.0/16' },
    ],
    EXPORTED,
  );
  expect(seenAs).toEqual([{ prefix: '10.244.0.0/16', as: '100.64.0.0/16' }]);
  expect(refused.map(({ prefix, message }) => [prefix, message])).toEqual([
    ['10.244.0.0/16', 'it is no CIDR, or is given twice'],
    ['10.70.0.0/20', '10.70.0.0/20 is seen as 100.64.16.0/20, which overlaps another view'],
  ]);
});

test('whatever a peer says: only what we export, each once, nothing overlaps', () => {
  const exported = ['10.0.0.0/16', '10.1.0.0/16', '10.2.0.0/17', '10.2.128.0/17'];
  const text = fc.oneof(
    fc.constantFrom(...exported, '0.0.0.0/0', '10.2.0.0/16', '127.0.0.0/16', 'x'),
    fc.tuple(fc.nat(3), fc.integer({ min: 15, max: 18 })).map(([n, length]) => `100.${n * 2}.0.0/${length}`),
  );
  fc.assert(
    fc.property(fc.array(fc.record({ prefix: text, as: text })), (views) => {
      const { seenAs, refused } = checkSeenAs(views, exported);
      expect(seenAs.length + refused.length).toBe(views.length);
      expect(exported.filter((prefix) => seenAs.some((view) => view.prefix === prefix))).toEqual(
        seenAs.map(({ prefix }) => prefix),
      );
      for (const [at, { prefix, as }] of seenAs.entries()) {
        expect(parsePrefix(as).length).toBe(parsePrefix(prefix).length);
        expect(
          seenAs.slice(at + 1).filter((view) => overlaps(parsePrefix(view.as), parsePrefix(as))),
        ).toEqual([]);
      }
    }),
  );
});
