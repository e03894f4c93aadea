import { expect, test } from '@jest/globals';
import { formatMilli, parseMilli, parseQuantity } from '../../../src/lib/quantity.ts';

test.each<[string, bigint, number]>([
  ['0', 0n, 0],
  ['1', 1000n, 1],
  ['100m', 100n, 0.1],
  ['1500m', 1500n, 1.5],
  ['0.5', 500n, 0.5],
  ['.5', 500n, 0.5],
  ['1.', 1000n, 1],
  ['-2', -2000n, -2],
  ['+3', 3000n, 3],
  ['128Mi', 134_217_728_000n, 134_217_728],
  ['1.5Gi', 1_610_612_736_000n, 1_610_612_736],
  ['2k', 2_000_000n, 2000],
  ['1e3', 1_000_000n, 1000],
  ['12E2', 1_200_000n, 1200],
  ['1E', 1_000_000_000_000_000_000_000n, 1e18],
  ['8Ei', 9_223_372_036_854_775_808_000n, 2 ** 63],
  ['9007199254740993', 9_007_199_254_740_993_000n, 9_007_199_254_740_992],
  // Kubernetes rounds what is finer than it can hold upwards.
  ['1n', 1n, 1e-9],
  ['1100u', 2n, 0.0011],
])('%s', (text, milli, value) => {
  expect(parseMilli(text)).toBe(milli);
  expect(parseQuantity(text)).toBeCloseTo(value, 12);
});

test.each([
  '',
  ' ',
  '1 Gi',
  '1gi',
  'NaN',
  'Infinity',
  '1e309',
  '1e',
  '0x10',
  '.',
  '-',
  'Mi',
  '1'.repeat(1000),
  '1Mi ',
])('refuses %j', (text) => {
  expect(() => parseMilli(text)).toThrow(expect.objectContaining({ code: 'Invalid' }));
  expect(() => parseQuantity(text)).toThrow(expect.objectContaining({ code: 'Invalid' }));
});

test.each<[bigint, 'binary' | 'decimal', string]>([
  [0n, 'decimal', '0'],
  [1500n, 'decimal', '1500m'],
  [2000n, 'decimal', '2'],
  [3_000_000n, 'decimal', '3k'],
  [134_217_728_000n, 'binary', '128Mi'],
  [1_000_000n, 'binary', '1000'],
  [-2000n, 'decimal', '-2'],
])('%s milli in %s form is %s', (milli, form, text) => {
  expect(formatMilli(milli, form)).toBe(text);
  expect(parseMilli(text)).toBe(milli);
});
