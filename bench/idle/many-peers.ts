/** What a role costs at rest with many peers: the same for each bed that can have them. */
import { setTimeout as sleep } from 'node:timers/promises';

import { imageFlags } from '../../lab/compiled-program.ts';
import type { Found, Given, Measured } from '../frame/bench.ts';
import { CPU, type Rest, REST_FIGURES, restOf } from './rest.ts';

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

/** Of one version. */
interface Looks {
  /** Of the names of its programs. */
  readonly suffix: string;
  /** Of all programs, for each round. */
  readonly rounds: readonly (readonly Rest[])[];
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
): Promise<Rest[][]> {
  const processes = Object.entries(bed.pids).map(([name, pid]) => ({ name, pid }));
  const all: Rest[][] = [];
  while (all.length < rounds) all.push(await restOf(processes, { seconds, flags: imageFlags() }));
  return all;
}

const valuesOf = (
  rounds: readonly (readonly Rest[])[],
  program: string,
  of: (rest: Rest) => number,
): number[] => rounds.flatMap((rests) => rests.filter(({ name }) => name === program)).map(of);

/** @param role the process that the goal is for */
export function foundAtRest(versions: readonly Looks[], role: string): Found {
  const measured = REST_FIGURES.flatMap(([figure, of, digits]) =>
    versions.flatMap(({ suffix, rounds }) =>
      (rounds[0] ?? []).map(({ name }): Measured => ({
        contender: `${name}${suffix}`,
        figure,
        values: valuesOf(rounds, name, of),
        digits,
      })),
    ),
  );
  const [, cpu] = CPU;
  const goal = {
    id: `idle-cpu-${role}-many`,
    what: `CPU of \`${role}\` at rest with many peers, % of a core`,
    values: valuesOf(versions[0]?.rounds ?? [], role, cpu),
    atMost: MOST_CPU_PERCENT,
  };
  return { measured, goals: [goal] };
}
