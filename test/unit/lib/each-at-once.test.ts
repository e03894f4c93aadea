import { expect, test } from '@jest/globals';

import { eachAtOnce } from '../../../src/lib/each-at-once.ts';

test('each item is worked on, at most so many at a time', async () => {
  const done: number[] = [];
  let now = 0;
  let most = 0;
  await eachAtOnce([1, 2, 3, 4, 5], 2, async (item) => {
    most = Math.max(most, ++now);
    await Promise.resolve();
    now--;
    done.push(item);
  });
  expect(done).toHaveLength(5);
  expect(new Set(done)).toEqual(new Set([1, 2, 3, 4, 5]));
  expect(most).toBe(2);
});

test('nothing is done for no items', async () => {
  expect(await eachAtOnce([], 2, async () => Promise.reject(new Error('never')))).toEqual([]);
});

test('others are worked on whatever fails; the first failure rejects when all work has ended', async () => {
  const done: number[] = [];
  const work = async (item: number): Promise<void> => {
    if (item % 2 === 1) throw new Error(`no ${item}`);
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    done.push(item);
  };
  await expect(eachAtOnce([1, 2, 3, 4, 5, 6], 2, work)).rejects.toThrow('no 1');
  expect(done).toEqual([2, 4, 6]);
});

test('the results are in the order of the items, whichever ends first', async () => {
  const results = await eachAtOnce([3, 1, 2, 0], 2, async (turns) => {
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    return turns * 10;
  });
  expect(results).toEqual([30, 10, 20, 0]);
});
