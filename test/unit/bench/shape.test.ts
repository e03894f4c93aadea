import { expect, test } from '@jest/globals';

import { bend } from '../../../bench/frame/statistics.ts';
import { isReached } from '../../../bench/frame/goals.ts';
import type { Phase, Step } from '../../../bench/shape/measure.ts';
import { machine, nodeNameOf } from '../../../bench/shape/nodes.ts';
import { found } from '../../../bench/shape/shape-bench.ts';

test('a bend: what a further one costs, not what there is without any', () => {
  expect(bend([100, 300, 1000].map((x) => [x, 50 + 2 * x]))).toBe(1);
  expect(bend([1, 2, 3].map((x) => [x, x * x]))).toBeCloseTo(5 / 3);
  expect(bend([])).toBeNaN();
});

test('nodes have names, addresses and networks of their own, up to some thousands', () => {
  const all = Array.from({ length: 2_000 }, (_none, index) => machine(index));
  expect(all[7]?.metadata.name).toBe(nodeNameOf(7));
  expect(new Set(all.map(({ metadata }) => metadata.name)).size).toBe(2_000);
  expect(new Set(all.map(({ spec }) => spec?.podCIDR)).size).toBe(2_000);
  expect(new Set(all.map(({ status }) => status?.addresses?.[0]?.address)).size).toBe(2_000);
});

const phase = (cpuMsPerMinute: number, offers: number): Phase => ({
  heartbeats: 100,
  flaps: 0,
  cpuMsPerMinute,
  requestsPerMinute: 40,
  offers,
  writes: offers,
  watchedBytes: 0,
  stall: { startMs: 1, p999Ms: 1, longestMs: 1 },
});
const step = (nodes: number, cost: number, offers = 0): Step => ({
  nodes,
  growMs: 1,
  growOffers: 1,
  privateMiB: 40 + cost,
  rest: phase(300 + cost, offers),
  flapping: phase(300 + cost, 3),
});

const missed = (steps: readonly Step[]): string[] =>
  found([steps]).goals.flatMap((goal) => (isReached(goal) ? [] : [goal.id]));

test('goals: straight lines reach them, squares do not, nor does an offer that is written for a heartbeat', () => {
  expect(missed([step(10, 10), step(300, 300), step(1000, 1000)])).toEqual([]);
  expect(missed([step(10, 1), step(300, 900), step(1000, 10_000)])).toEqual(['shape-memory', 'shape-cpu']);
  expect(missed([step(10, 10), step(300, 300), step(1000, 1000, 1)])).toEqual(['shape-writes']);
});
