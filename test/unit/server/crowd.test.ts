import { expect, test } from '@jest/globals';

import { Crowd } from '../../../src/server/crowd.ts';

/** Enters and tells who had to go. */
function crowd(most: number): {
  gone: string[];
  enter: (group: string, name: string) => () => void;
  crowd: Crowd;
} {
  const of = new Crowd(most);
  const gone: string[] = [];
  return { gone, enter: (group, name) => of.enter(group, () => gone.push(name)), crowd: of };
}

test('a full house drops the oldest of the largest group, never the newest of a small one', () => {
  const { gone, enter, crowd: of } = crowd(4);
  enter('home', 'honest');
  for (const name of ['a', 'b', 'c', 'd', 'e']) enter('away', name);
  expect(gone).toEqual(['a', 'b']);
  enter('new', 'late');
  expect(gone).toEqual(['a', 'b', 'c']);
  expect(of.size).toBe(4);
});

test('of groups of one size the one goes that came first', () => {
  const { gone, enter } = crowd(2);
  for (const name of ['a', 'b', 'c', 'd']) enter(name, name);
  expect(gone).toEqual(['a', 'b']);
});

test('whoever has left is neither ended nor counted, however often they leave', () => {
  const { gone, enter, crowd: of } = crowd(2);
  const leave = enter('x', 'a');
  enter('x', 'b');
  leave();
  leave();
  expect(of.size).toBe(1);
  enter('x', 'c');
  expect(gone).toEqual([]);
  enter('x', 'd');
  expect(gone).toEqual(['b']);
});
