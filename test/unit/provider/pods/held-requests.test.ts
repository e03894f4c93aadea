import { expect, test } from '@jest/globals';
import { HeldRequests } from '../../../../src/provider/pods/held-requests.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

test('a request is held for as long as asked, by key', async () => {
  const clock = new FakeClock();
  const held = new HeldRequests(clock);
  held.hold('a', 1000);
  expect([held.waitMs('a'), held.waitMs('b')]).toEqual([1000, 0]);
  await clock.advance(999);
  expect(held.waitMs('a')).toBe(1);
  await clock.advance(1);
  expect(held.waitMs('a')).toBe(0);
  held.hold('a', 1000);
  held.forget('a');
  expect(held.waitMs('a')).toBe(0);
});
