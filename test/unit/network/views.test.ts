import { expect, test } from '@jest/globals';

import type { PrefixView } from '../../../src/api/tunnel.ts';
import { formatAddress, nthAddress, parsePrefix } from '../../../src/lib/prefix.ts';
import { translate, translateBack, ViewTable } from '../../../src/network/views.ts';
import { fc } from '../../support/property.ts';

const VIEWS: PrefixView[] = [
  { prefix: '10.244.0.0/16', as: '100.64.0.0/16' },
  { prefix: '10.244.7.0/24', as: '100.127.3.0/24' },
  { prefix: '10.9.0.0/16', as: '10.9.0.0/16' },
  { prefix: 'fd00:1::/48', as: 'fdff:0:9::/48' },
];

test.each([
  ['10.244.1.2', '100.64.1.2'],
  ['10.244.0.0', '100.64.0.0'],
  ['10.244.255.255', '100.64.255.255'],
  ['10.244.7.9', '100.127.3.9'],
  ['10.9.3.4', '10.9.3.4'],
  ['fd00:1:0:5::abcd', 'fdff:0:9:5::abcd'],
])('%s is seen as %s, and back', (own, seen) => {
  expect(translate(VIEWS, own)).toBe(seen);
  expect(translateBack(VIEWS, seen)).toBe(own);
  const table = new ViewTable(VIEWS);
  expect([table.translate(own), table.translateBack(seen)]).toEqual([seen, own]);
});

test.each(['10.245.0.0', '11.0.0.1', 'fd00:2::1', '::1', '', 'x', '10.244.1.2/32', '010.244.1.2'])(
  '%j is not seen',
  (address) => {
    expect(translate(VIEWS, address)).toBeUndefined();
    expect(translateBack(VIEWS, address)).toBeUndefined();
  },
);

test('a wider view counts where a narrower one does not match, in whatever order they are', () => {
  for (const views of [VIEWS, VIEWS.toReversed()]) {
    expect(translate(views, '10.244.8.1')).toBe('100.64.8.1');
    expect(translate(views, '10.244.7.1')).toBe('100.127.3.1');
  }
});

test('of two views of one prefix the first counts', () => {
  const views = [
    { prefix: '10.1.0.0/16', as: '100.64.0.0/16' },
    { prefix: '10.1.0.0/16', as: '100.65.0.0/16' },
  ];
  expect(translate(views, '10.1.0.1')).toBe('100.64.0.1');
});

test.each([
  ['another length', { prefix: '10.1.0.0/16', as: '100.64.0.0/17' }],
  ['another family', { prefix: '10.1.0.0/16', as: 'fd00::/16' }],
  ['host bits', { prefix: '10.1.0.1/16', as: '100.64.0.0/16' }],
  ['no prefix', { prefix: '10.1.0.0/16', as: 'x' }],
])('a view with %s is left out', (_, view) => {
  expect(translate([view], '10.1.0.1')).toBeUndefined();
  expect(translateBack([view], '100.64.0.1')).toBeUndefined();
});

/** Disjoint on both sides; either family. */
const world = fc.uniqueArray(
  fc.record({
    own: fc.integer({ min: 0, max: 255 }),
    seen: fc.integer({ min: 0, max: 255 }),
    six: fc.boolean(),
  }),
  { selector: ({ own, six }) => `${own} ${six}`, maxLength: 8 },
);

test('there and back again is where one was', () => {
  fc.assert(
    fc.property(world, fc.nat({ max: 65_535 }), (entries, host) => {
      const unique = new Map(entries.map((entry) => [`${entry.seen} ${entry.six}`, entry]));
      const views = [...unique.values()].map(({ own, seen, six }) =>
        six
          ? { prefix: `fd00:${own.toString(16)}::/32`, as: `fd01:${seen.toString(16)}::/32` }
          : { prefix: `10.${own}.0.0/16`, as: `100.${seen}.0.0/16` },
      );
      const table = new ViewTable(views);
      for (const { prefix, as } of views) {
        const own = nthAddress(parsePrefix(prefix), host);
        const seen = table.translate(own) ?? '';
        expect(seen).toBe(nthAddress(parsePrefix(as), host));
        expect(table.translateBack(seen)).toBe(own);
      }
    }),
  );
});

test('an address is found among thousands of views', () => {
  const views = Array.from({ length: 4_096 }, (_, i) => ({
    prefix: `10.${i >> 8}.${i & 255}.0/24`,
    as: `${formatAddress({ family: 4, value: 0x64400000n + (BigInt(4_095 - i) << 8n) })}/24`,
  }));
  const table = new ViewTable(views);
  expect(table.translate('10.0.0.7')).toBe('100.79.255.7');
  expect(table.translate('10.15.255.7')).toBe('100.64.0.7');
  expect(table.translateBack('100.64.1.9')).toBe('10.15.254.9');
  expect(table.translate('10.16.0.1')).toBeUndefined();
});
