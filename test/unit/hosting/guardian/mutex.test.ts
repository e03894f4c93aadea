import { expect, test } from '@jest/globals';
import { Mutex } from '../../../../src/hosting/guardian/mutex.ts';

test('one at a time, in the order of asking; who gives up or fails does not keep the next', async () => {
  const turns = new Mutex();
  const seen: string[] = [];
  const end = await turns.take();
  const abort = new AbortController();
  const gaveUp = turns.take(abort.signal);
  const failed = turns.run(async () => Promise.reject(new Error('no')));
  const last = turns.run(async () => {
    seen.push('last');
    return 7;
  });
  abort.abort();
  await expect(gaveUp).rejects.toMatchObject({ code: 'Aborted' });
  expect(seen).toEqual([]);
  end();
  await expect(failed).rejects.toThrow('no');
  expect(await last).toBe(7);
});
