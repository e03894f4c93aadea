/** Whether goals are reached, and the figures of two contenders beside each other. */
import type { Goal } from './bench.ts';
import { median, shown, spread } from './statistics.ts';

export const isReached = ({ values, atLeast = -Infinity, atMost = Infinity }: Goal): boolean => {
  const value = median(values);
  return value >= atLeast && value <= atMost;
};

export const goalText = ({ atLeast, atMost }: Goal): string =>
  [atLeast === undefined ? '' : `≥ ${atLeast}`, atMost === undefined ? '' : `≤ ${atMost}`].join(' ').trim();

/** Median, least and most of the rounds. */
export const valueText = ({ values, digits = 2 }: Goal): string => shown(spread(values), digits);

/** Round by round, since whatever else the machine does meets both. */
export const ratios = (ours: readonly number[], theirs: readonly number[]): number[] =>
  ours.map((value, round) => value / (theirs[round] ?? Number.NaN));

export const differences = (ours: readonly number[], theirs: readonly number[]): number[] =>
  ours.map((value, round) => value - (theirs[round] ?? Number.NaN));
