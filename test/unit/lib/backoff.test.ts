import { expect, test } from '@jest/globals';
import { Backoff, fullJitterMs, spreadMs } from '../../../src/lib/backoff.ts';

test('ceilings double to the cap; a reset starts anew', () => {
  const backoff = new Backoff({ baseMs: 500, capMs: 30_000, random: () => 0.999_999 });
  const delays = Array.from({ length: 8 }, () => Math.round(backoff.next()));
  expect(delays).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  backoff.reset();
  expect(Math.round(backoff.next())).toBe(500);
});

test('jitter is full, spread is half', () => {
  expect(fullJitterMs(3, { baseMs: 100, capMs: 10_000, random: () => 0 })).toBe(0);
  expect(spreadMs(1000, () => 0)).toBe(500);
  expect(spreadMs(1000, () => 1)).toBe(1000);
});

test('no attempt is too many', () => {
  expect(fullJitterMs(1e6, { baseMs: 100, capMs: 10_000, random: () => 0.5 })).toBe(5000);
});
