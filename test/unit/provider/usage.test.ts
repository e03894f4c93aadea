import { expect, test } from '@jest/globals';
import { durationMs } from '../../../src/provider/usage.ts';

test.each([
  ['9.996s', 9_996],
  ['30s', 30_000],
  ['1m0s', 60_000],
  ['1m3.5s', 63_500],
  ['1h2m3s', 3_723_000],
  ['500ms', 500],
  ['', 0],
  ['soon', 0],
  ['1e999s', 0],
])('a window of %j is %d ms', (text, expected) => {
  expect(durationMs(text)).toBeCloseTo(expected);
});
