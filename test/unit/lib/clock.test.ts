import { expect, test } from '@jest/globals';
import { systemClock } from '../../../src/lib/clock.ts';

test('sleep rejects with the reason of the signal', async () => {
  const abort = new AbortController();
  const sleeping = systemClock.sleep(60_000, abort.signal);
  abort.abort(new Error('stop'));
  await expect(sleeping).rejects.toThrow('stop');
});

test('a cancelled timer never calls back', async () => {
  let called = false;
  systemClock.after(1, () => (called = true))();
  await systemClock.sleep(5);
  expect(called).toBe(false);
});
