import { expect, test } from '@jest/globals';
import { Patience } from '../../../../src/provider/pods/patience.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

test('patience lasts as long as asked, by key', async () => {
  const clock = new FakeClock();
  const patience = new Patience(clock);
  patience.hold('a', 1000);
  expect([patience.waitMs('a'), patience.waitMs('b')]).toEqual([1000, 0]);
  await clock.advance(999);
  expect(patience.waitMs('a')).toBe(1);
  await clock.advance(1);
  expect(patience.waitMs('a')).toBe(0);
  patience.hold('a', 1000);
  patience.forget('a');
  expect(patience.waitMs('a')).toBe(0);
});
