import { expect, test } from '@jest/globals';
import { TokenBucket } from '../../../src/lib/token-bucket.ts';
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
