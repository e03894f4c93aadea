/** Whether goals are reached, and the figures of two contenders beside each other. */
import type { Goal } from './bench.ts';
import { median, shown, spread } from './statistics.ts';

export const isReached = (goal: Goal): boolean => isWithin(median(goal.values), goal);

const isWithin = (value: number, { atLeast = -Infinity, atMost = Infinity }: Goal): boolean =>
  value >= atLeast && value <= atMost;

export const goalText = ({ atLeast, atMost }: Goal): string =>
  [atLeast === undefined ? '' : `≥ ${atLeast}`, atMost === undefined ? '' : `≤ ${atMost}`].join(' ').trim();

const MOST_DIGITS = 9;

/** Median, least and most of the rounds, with as many digits as it takes to see from the median whether the goal is reached. */
export function valueText(goal: Goal): string {
  const { values, digits = 2 } = goal;
  const value = median(values);
  const isSeen = (count: number): boolean => isWithin(Number(value.toFixed(count)), goal) === isReached(goal);
  let count = digits;
  while (count < MOST_DIGITS && !isSeen(count)) count++;
  return shown(spread(values), count);
}

/** Round by round, since whatever else the machine does meets both. */
export const ratios = (ours: readonly number[], theirs: readonly number[]): number[] =>
  ours.map((value, round) => value / (theirs[round] ?? Number.NaN));

export const differences = (ours: readonly number[], theirs: readonly number[]): number[] =>
  ours.map((value, round) => value - (theirs[round] ?? Number.NaN));
