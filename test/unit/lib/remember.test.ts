import { expect, test } from '@jest/globals';
import { remember } from '../../../src/lib/remember.ts';

test('the oldest is forgotten; what is set again is the newest', () => {
  const map = new Map<string, number>();
  remember(map, 'a', 1, 2);
  remember(map, 'b', 2, 2);
  remember(map, 'a', 3, 2);
  remember(map, 'c', 4, 2);
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ]);
});
