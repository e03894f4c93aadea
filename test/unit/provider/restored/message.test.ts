import { expect, test } from '@jest/globals';

import { homeMessage } from '../../../../src/provider/restored/restores.ts';

const UNTIL = '2026-01-01T12:10:00Z';
const keys = (count: number): string[] => Array.from({ length: count }, (_, at) => `shop/web-${at}`);

test.each<[number, RegExp]>([
  [0, /backup: no pod over there is known to have lost its pod here; such pods are kept until 2026/u],
  [
    1,
    /1 pod over there has no pod here \(shop\/web-0\); they are kept until 2026-01-01T12:10:00Z, then deleted/u,
  ],
  [8, /8 pods over there have no pod here \(shop\/web-0, .*, shop\/web-7\);/u],
  [10, /10 pods over there .*, shop\/web-7, 2 more\);/u],
])('%d pods without a home pod are told by name, up to a bound', (count, expected) => {
  expect(homeMessage(keys(count), UNTIL)).toMatch(expected);
});
