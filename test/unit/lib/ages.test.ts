import { expect, test } from '@jest/globals';
import { Ages } from '../../../src/lib/ages.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const DAY_MS = 86_400_000;

test.each([DAY_MS, -DAY_MS, 600_000, -600_000])(
  'a clock that is set by %i ms makes nothing older or younger',
  async (by) => {
    const clock = new FakeClock();
    const ages = new Ages(clock);
    const since = clock.now() - 5000;
    expect(ages.ageMs('a', since)).toBe(5000);
    clock.jump(by);
    expect(ages.ageMs('a', since)).toBe(5000);
    await clock.advance(3000);
    expect([ages.ageMs('a', since), ages.leftMs('b', clock.now() + 2000)]).toEqual([8000, 2000]);
  },
);

test('what began in the future begins now; what began anew counts anew', async () => {
  const clock = new FakeClock();
  const ages = new Ages(clock);
  const future = clock.now() + DAY_MS;
  expect(ages.ageMs('a', future)).toBe(0);
  await clock.advance(1000);
  expect([ages.ageMs('a', future), ages.ageMs('a', clock.now() - 10)]).toEqual([1000, 10]);
  expect(ages.ageMs('a', Number.NaN)).toBeNaN();
});

test('a time that is over stays over', async () => {
  const clock = new FakeClock();
  const ages = new Ages(clock);
  const until = clock.now() + 1000;
  expect(ages.leftMs('a', until)).toBe(1000);
  await clock.advance(1500);
  clock.jump(-DAY_MS);
  expect([ages.leftMs('a', until), ages.leftMs('a', 0)].map((ms) => ms > 0)).toEqual([false, false]);
});
