/** What role `gateway` and its wireguard-go cost at rest with many peers. */
import { setTimeout as sleep } from 'node:timers/promises';

import { imageFlags } from '../../lab/compiled-program.ts';
import { planeLabProblem } from '../../test/support/network/plane-lab.ts';
import type { Bench, Found, Measured } from '../frame/bench.ts';
import { processFigures, type ProcessFigures } from '../frame/process-figures.ts';
import { BARE_TIMER, startBareTimer } from '../idle/bare-timer.ts';
import { cpuMsPerWakeUp, idleRate, idleSample, type IdleRate } from '../idle/figures.ts';
import { TunnelsBed } from './bed.ts';

/** Steps by which the number of peers grows, as shares of the largest. */
const SHARES = [1 / 32, 1 / 4, 1];
/** Of a core, with the most peers. */
const MOST_CPU_PERCENT = 1;

interface Rest extends IdleRate, ProcessFigures {}
interface Step {
  readonly peers: number;
  /** Of the names of its programs. */
  readonly suffix: string;
  /** By program, for each round. */
  readonly looks: readonly ReadonlyMap<string, Rest>[];
}

export const tunnelsBench: Bench<{ peers: number; seconds: number; settle: number }> = {
  name: 'tunnels',
  title: 'a gateway at rest with many peers',
  what:
    'Role `gateway` as a program on a real API server, in a network namespace, and peers that each have a namespace and a wireguard-go of their own. In half of the ' +
    'tunnels home asks, in the others the peer does, by their keys. Nothing but probes flows. All peers and the API server share the cores with what is measured; `bare timer` shows ' +
    'what a wake-up costs then. `before` runs after it, in the same bed.',
  parameters: { peers: 32, seconds: 40, settle: 300 },
  limits: { peers: { most: 120 }, settle: { least: 0 } },
  problem: planeLabProblem,
  run: async ({ parameters: { peers, seconds, settle }, rounds, say, before, signal }) => {
    const versions = [
      { suffix: '', checkout: undefined },
      ...(before === undefined ? [] : [{ suffix: ', before', checkout: before }]),
    ];
    const steps: Step[] = [];
    for (const { suffix, checkout } of versions) {
      const bed = await TunnelsBed.up('bench-tunnel', checkout);
      try {
        for (const count of new Set(SHARES.map((share) => Math.max(1, Math.round(peers * share))))) {
          await bed.grow(count);
          say(`tunnels that are ready${suffix}: ${count}`);
          await sleep(settle * 1000, undefined, { signal });
          steps.push({ peers: count, suffix, looks: await looks(bed, { rounds, seconds }) });
        }
      } finally {
        await bed.down();
      }
    }
    return found(steps);
  },
};

async function looks(
  bed: TunnelsBed,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<Map<string, Rest>[]> {
  const all: Map<string, Rest>[] = [];
  while (all.length < rounds) all.push(await look(bed, seconds));
  return all;
}

async function look(bed: TunnelsBed, seconds: number): Promise<Map<string, Rest>> {
  using timer = await startBareTimer(imageFlags());
  const { gateway, wireguard } = bed.pids;
  const pids = { gateway, 'wireguard-go': wireguard, [BARE_TIMER]: timer.pid };
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

function found(steps: readonly Step[]): Found {
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
    id: 'idle-cpu-gateway-many',
    what: `CPU of \`gateway\` at rest with ${peersText(last?.peers ?? 0)}, % of a core`,
    values: valuesOf(last?.looks ?? [], 'gateway', cpu),
    atMost: MOST_CPU_PERCENT,
  };
  return { measured, goals: [goal] };
}
