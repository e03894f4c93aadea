/** What a role costs at rest with many peers: the same for each bed that can have them. */
import { setTimeout as sleep } from 'node:timers/promises';

import { imageFlags } from '../../lab/compiled-program.ts';
import type { Found, Given, Measured } from '../frame/bench.ts';
import { processFigures, type ProcessFigures } from '../frame/process-figures.ts';
import { BARE_TIMER, startBareTimer } from './bare-timer.ts';
import { cpuMsPerWakeUp, idleRate, idleSample, type IdleRate } from './figures.ts';

/** Of a core. */
const MOST_CPU_PERCENT = 1;

/** Seconds. `settle`: how long everything rests before the first look. */
export interface ManyPeersParameters extends Readonly<Record<string, number>> {
  readonly peers: number;
  readonly seconds: number;
  readonly settle: number;
}

/** What starts compiles its functions one after the other, for twenty minutes. */
export const MANY_PEERS: ManyPeersParameters = { peers: 32, seconds: 40, settle: 1500 };

export interface ManyPeersBed {
  /** The processes whose rest is measured, by name. */
  readonly pids: Readonly<Record<string, number>>;
  /** Returns when so many peers are joined. */
  join(count: number): Promise<void>;
  down(): Promise<void>;
}

interface Rest extends IdleRate, ProcessFigures {}
/** Of one version. */
interface Looks {
  /** Of the names of its programs. */
  readonly suffix: string;
  /** By program, for each round. */
  readonly rounds: readonly ReadonlyMap<string, Rest>[];
}

/** @param up is given the folder of another checkout for `before`, which runs after it in a bed of its own */
export async function restWithPeers(
  up: (checkout?: string) => Promise<ManyPeersBed>,
  { parameters: { peers, seconds, settle }, rounds, before, say, signal }: Given<ManyPeersParameters>,
): Promise<Looks[]> {
  const versions = [
    { suffix: '', checkout: undefined },
    ...(before === undefined ? [] : [{ suffix: ', before', checkout: before }]),
  ];
  const all: Looks[] = [];
  for (const { suffix, checkout } of versions) {
    const bed = await up(checkout);
    try {
      await bed.join(peers);
      say(`${peers} peers are joined${suffix}`);
      await sleep(settle * 1000, undefined, { signal });
      all.push({ suffix, rounds: await looks(bed, { rounds, seconds }) });
    } finally {
      await bed.down();
    }
  }
  return all;
}

async function looks(
  bed: ManyPeersBed,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<Map<string, Rest>[]> {
  const all: Map<string, Rest>[] = [];
  while (all.length < rounds) all.push(await look(bed, seconds));
  return all;
}

async function look(bed: ManyPeersBed, seconds: number): Promise<Map<string, Rest>> {
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

/** @param role the process that the goal is for */
export function foundAtRest(versions: readonly Looks[], role: string): Found {
  const measured = FIGURES.flatMap(([figure, of, digits]) =>
    versions.flatMap(({ suffix, rounds }) =>
      [...(rounds[0]?.keys() ?? [])].map((name): Measured => ({
        contender: `${name}${suffix}`,
        figure,
        values: valuesOf(rounds, name, of),
        digits,
      })),
    ),
  );
  const [[, cpu]] = FIGURES as [(typeof FIGURES)[number]];
  const goal = {
    id: `idle-cpu-${role}-many`,
    what: `CPU of \`${role}\` at rest with many peers, % of a core`,
    values: valuesOf(versions[0]?.rounds ?? [], role, cpu),
    atMost: MOST_CPU_PERCENT,
  };
  return { measured, goals: [goal] };
}
