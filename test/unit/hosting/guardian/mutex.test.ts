import { expect, test } from '@jest/globals';
import { Mutex } from '../../../../src/hosting/guardian/mutex.ts';

test('one at a time, in the order of asking; who gives up or fails does not keep the next', async () => {
  const mutex = new Mutex();
  const seen: string[] = [];
  const unlock = await mutex.lock();
  const abort = new AbortController();
  const gaveUp = mutex.lock(abort.signal);
  const failed = mutex.run(async () => Promise.reject(new Error('no')));
  const last = mutex.run(async () => {
    seen.push('last');
    return 7;
  });
  abort.abort();
  await expect(gaveUp).rejects.toMatchObject({ code: 'Aborted' });
  expect(seen).toEqual([]);
  unlock();
  await expect(failed).rejects.toThrow('no');
  expect(await last).toBe(7);
});
