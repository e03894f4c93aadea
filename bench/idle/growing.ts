/** What a role costs at rest while its peers become more: the same for each bed that can grow. */
import { setTimeout as sleep } from 'node:timers/promises';

import { imageFlags } from '../../lab/compiled-program.ts';
import type { Found, Given, Measured } from '../frame/bench.ts';
import { processFigures, type ProcessFigures } from '../frame/process-figures.ts';
import { BARE_TIMER, startBareTimer } from './bare-timer.ts';
import { cpuMsPerWakeUp, idleRate, idleSample, type IdleRate } from './figures.ts';

/** Steps by which the number of peers grows, as shares of the largest. */
const SHARES = [1 / 32, 1 / 4, 1];
/** Of a core, with the most peers. */
const MOST_CPU_PERCENT = 1;

/** Seconds. `settle`: how long everything rests before the first look. */
export interface GrowingParameters extends Readonly<Record<string, number>> {
  readonly peers: number;
  readonly seconds: number;
  readonly settle: number;
}

export const GROWING: GrowingParameters = { peers: 32, seconds: 40, settle: 300 };

export interface GrowingBed {
  /** The processes whose rest is measured, by name. */
  readonly pids: Readonly<Record<string, number>>;
  /** Adds peers until there are so many; returns when all are joined. */
  grow(count: number): Promise<void>;
  down(): Promise<void>;
}

interface Rest extends IdleRate, ProcessFigures {}
interface Step {
  readonly peers: number;
  /** Of the names of its programs. */
  readonly suffix: string;
  /** By program, for each round. */
  readonly looks: readonly ReadonlyMap<string, Rest>[];
}

/** @param up is given the folder of another checkout for `before`, which runs after it in a bed of its own */
export async function restWhileGrowing(
  up: (checkout?: string) => Promise<GrowingBed>,
  { parameters: { peers, seconds, settle }, rounds, before, say, signal }: Given<GrowingParameters>,
): Promise<Step[]> {
  const versions = [
    { suffix: '', checkout: undefined },
    ...(before === undefined ? [] : [{ suffix: ', before', checkout: before }]),
  ];
  const steps: Step[] = [];
  for (const { suffix, checkout } of versions) {
    const bed = await up(checkout);
    try {
      for (const count of new Set(SHARES.map((share) => Math.max(1, Math.round(peers * share))))) {
        await bed.grow(count);
        say(`peers that are joined${suffix}: ${count}`);
        await sleep(settle * 1000, undefined, { signal });
        steps.push({ peers: count, suffix, looks: await looks(bed, { rounds, seconds }) });
      }
    } finally {
      await bed.down();
    }
  }
  return steps;
}

async function looks(
  bed: GrowingBed,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<Map<string, Rest>[]> {
  const all: Map<string, Rest>[] = [];
  while (all.length < rounds) all.push(await look(bed, seconds));
  return all;
}

async function look(bed: GrowingBed, seconds: number): Promise<Map<string, Rest>> {
  using timer = await startBareTimer(imageFlags());
  const pids = { ...bed.pids, [BARE_TIMER]: timer.pid };
  const before = Object.entries(pids).map(([name, pid]) => ({ name, pid, sample: idleSample(pid) }));
  await sleep(seconds * 1000);
  return new Map(
    before.map(({ name, pid, sample }) => [
      name,
      { ...idleRate(sample, idleSample(pid)), ...processFigures(pid) },
    ]),
  );
}

const FIGURES: readonly (readonly [figure: string, of: (rest: Rest) => number, digits: number])[] = [
  ['CPU, % of a core', ({ cpuPercent, childrenPercent }) => cpuPercent + childrenPercent, 2],
  ['wake-ups per second', ({ wakeUpsPerSecond }) => wakeUpsPerSecond, 1],
  ['CPU ms per wake-up', cpuMsPerWakeUp, 2],
  ['private MiB', ({ privateMiB }) => privateMiB, 1],
];

const valuesOf = (
  looks: readonly ReadonlyMap<string, Rest>[],
  name: string,
  of: (rest: Rest) => number,
): number[] => looks.flatMap((one) => one.get(name) ?? []).map(of);

const peersText = (peers: number): string => (peers === 1 ? '1 peer' : `${peers} peers`);

/** @param role the process that the goal is for */
export function foundOfSteps(steps: readonly Step[], role: string): Found {
  const measured = FIGURES.flatMap(([figure, of, digits]) =>
    steps.flatMap(({ peers, suffix, looks }) =>
      [...(looks[0]?.keys() ?? [])].map((name): Measured => ({
        contender: `${name}, ${peersText(peers)}${suffix}`,
        figure,
        values: valuesOf(looks, name, of),
        digits,
      })),
    ),
  );
  const last = steps.findLast(({ suffix }) => suffix === '');
  const [[, cpu]] = FIGURES as [(typeof FIGURES)[number]];
  const goal = {
    id: `idle-cpu-${role}-many`,
    what: `CPU of \`${role}\` at rest with ${peersText(last?.peers ?? 0)}, % of a core`,
    values: valuesOf(last?.looks ?? [], role, cpu),
    atMost: MOST_CPU_PERCENT,
  };
  return { measured, goals: [goal] };
}
