import { expect, test } from '@jest/globals';

import { chanceOf, seedOf } from '../../../faults/chance.ts';

const numbers = (seed: number): number[] => {
  const chance = chanceOf(seed);
  return Array.from({ length: 50 }, () => chance.below(2 ** 32));
};

test('the same seed, name and number give the same', () => {
  expect(seedOf(4711, 'moments', 3)).toBe(seedOf(4711, 'moments', 3));
});

test('another seed, name or number gives numbers that have nothing in common', () => {
  const seeds = [4711, 4712, 4713].flatMap((seed) =>
    ['choices', 'moments'].flatMap((name) => [0, 1, 2].map((number) => seedOf(seed, name, number))),
  );
  const all = seeds.flatMap(numbers);
  expect(new Set(all).size).toBe(all.length);
});
