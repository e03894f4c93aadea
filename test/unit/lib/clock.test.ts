import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

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

test('a cancelled timer does not wake the process', async () => {
  const program = join(import.meta.dirname, 'support/cancels-timers.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [program]);
  const { timers, wakeUps } = JSON.parse(stdout) as { timers: number; wakeUps: number };
  expect(wakeUps).toBeLessThan(timers / 2);
});
