/** What the lanes of a bed do: kills at each write, and random faults. */
import type { Worker } from '../campaign.ts';
import { killsOf, type Plans, randomFrom } from '../plan.ts';
import type { PodsBed } from './bed.ts';
import { SIDES } from './lane.ts';
import { run } from './run.ts';
import { OPERATIONS, Workload } from './workload.ts';

/** Resolves when the agents run and their nodes are Ready. */
export async function podWorkers(bed: PodsBed): Promise<Worker[]> {
  await Promise.all(
    bed.lanes.map(async (lane) => {
      await lane.start();
      await lane.ready();
    }),
  );
  return bed.lanes.map((lane) => {
    const workload = new Workload(lane);
    return async (plan) => run(lane, workload, plan);
  });
}

/** Kills at each write first; then lanes take random runs from one list. */
export function podPlans({ seed, lanes, stride }: { seed: number; lanes: number; stride: number }): Plans[] {
  const kills = (['before', 'after'] as const).flatMap((when) =>
    SIDES.map((side) => killsOf({ cycle: OPERATIONS, side, when, stride, first: 1 + (seed % stride) })),
  );
  const random = randomFrom(seed);
  return [...kills, ...Array.from({ length: lanes }, () => random)];
}
