/** What processes cost while they rest, all of them in the same time. */
import { setTimeout as sleep } from 'node:timers/promises';

import { processFigures, type ProcessFigures } from '../frame/process-figures.ts';
import { BARE_TIMER, startBareTimer } from './bare-timer.ts';
import { cpuMsPerWakeUp, idleRate, idleSample, type IdleRate } from './figures.ts';

export interface Rest extends IdleRate, ProcessFigures {
  readonly name: string;
}

export type RestFigure = readonly [figure: string, of: (rest: Rest) => number, digits: number];

export const CPU: RestFigure = [
  'CPU, % of a core',
  ({ cpuPercent, childrenPercent }) => cpuPercent + childrenPercent,
  2,
];
export const PRIVATE_MIB: RestFigure = ['private MiB', ({ privateMiB }) => privateMiB, 1];
export const REST_FIGURES: readonly RestFigure[] = [
  CPU,
  ['wake-ups per second', ({ wakeUpsPerSecond }) => wakeUpsPerSecond, 1],
  ['CPU ms per wake-up', cpuMsPerWakeUp, 2],
  PRIVATE_MIB,
];

/** Beside them rests a bare timer, which is one more. `flags`: of Node.js, for it. */
export async function restOf(
  processes: readonly { readonly name: string; readonly pid: number }[],
  { seconds, flags }: { seconds: number; flags: readonly string[] },
): Promise<Rest[]> {
  using timer = await startBareTimer(flags);
  const before = [...processes, { name: BARE_TIMER, pid: timer.pid }].map(({ name, pid }) => ({
    name,
    pid,
    sample: idleSample(pid),
  }));
  await sleep(seconds * 1000);
  return before.map(({ name, pid, sample }) => ({
    name,
    ...idleRate(sample, idleSample(pid)),
    ...processFigures(pid),
  }));
}
