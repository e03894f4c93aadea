import { expect, test } from '@jest/globals';
import { TokenBucket, TokenBuckets } from '../../../src/lib/token-bucket.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('a burst, then a rate; what is taken too early is owed', async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket({ clock, burst: 10, perSecond: 5 });
  expect(bucket.take(10)).toBe(0);
  expect(bucket.take(1)).toBe(200);
  expect(bucket.take(4)).toBe(1_000);
  await clock.advance(1_000);
  expect(bucket.take(0)).toBe(0);
  expect(bucket.tryTake(1)).toBe(false);
  await clock.advance(200);
  expect(bucket.tryTake(1)).toBe(true);
  await clock.advance(3_600_000);
  expect(bucket.take(10)).toBe(0);
  expect(bucket.take(1)).toBeGreaterThan(0);
});

test('rates of many keys are kept in bounded memory, those in use the longest', () => {
  const buckets = new TokenBuckets({ clock: new FakeClock(), burst: 1, perSecond: 1, maxKeys: 10 });
  expect(buckets.of('a').tryTake(1)).toBe(true);
  for (let other = 0; other < 9; other++) buckets.of(`${other}`).tryTake(1);
  expect(buckets.of('a').tryTake(1)).toBe(false);
  for (let other = 10; other < 20; other++) buckets.of(`${other}`).tryTake(1);
  expect(buckets.of('a').tryTake(1)).toBe(true);
});
