/** P2: pods that come at a steady pace, and what the virtual node adds to the start of each. */
import { type Bench, type Found, type Goal, inTurn, type Measured } from '../frame/bench.ts';
import { differences } from '../frame/goals.ts';
import { cpuMs } from '../frame/process-figures.ts';
import { percentile } from '../frame/statistics.ts';
import { Bed } from './bed.ts';
import { mirrors, type Mirror } from './contender.ts';
import { StartTimes } from './latencies.ts';
import { createSteadily, removeAll } from './many-pods.ts';
import { PodWatch } from './pod-watch.ts';

interface Steady {
  readonly added: readonly number[];
  readonly pods: number;
  readonly ownCpuMs: number;
  /** Of this process, whose watches must not be what limits. */
  readonly watchCpuMs: number;
}

type Results = ReadonlyMap<string, readonly Steady[]>;

const READY_TIMEOUT_MS = 120_000;

export const steadyBench: Bench<{ perSecond: number; seconds: number; warmUp: number }> = {
  name: 'steady',
  title: 'pods at a steady pace, and what is added to the start of each',
  what:
    'Pods are made at home at a fixed pace, bound to the virtual node from the start, whatever becomes of those before. Of each pod, ' +
    'watches of both clusters tell the **added latency**: from its binding at home until it exists over there, and from Ready over there ' +
    'to Ready at home. What the foreign cluster does in between is not counted. The **null mirror** is the least that a virtual node can do.',
  parameters: { perSecond: 20, seconds: 30, warmUp: 100 },
  limits: { warmUp: { least: 0 } },
  run: async ({ parameters, rounds, say, ...given }) => {
    const { perSecond, seconds, warmUp } = parameters;
    const bed = await Bed.up({ name: 'bench-steady', progress: say, ...given });
    try {
      const contenders = await mirrors(bed, given);
      await bed.quiet();
      for (const contender of contenders) await steady(bed, contender, { count: warmUp, perSecond });
      const results = new Map<string, Steady[]>(contenders.map(({ name }) => [name, []]));
      for (let round = 1; round <= rounds; round++) {
        for (const contender of inTurn(contenders, round)) {
          const result = await steady(bed, contender, { count: perSecond * seconds, perSecond });
          results.get(contender.name)?.push(result);
          const [p50, p99] = [0.5, 0.99].map((share) => percentile(result.added, share).toFixed(1));
          say(`round ${round}, ${contender.name}: p50 ${p50} ms, p99 ${p99} ms`);
        }
      }
      return found(results);
    } finally {
      await bed.down();
    }
  },
};

async function steady(
  bed: Bed,
  contender: Mirror,
  wanted: { count: number; perSecond: number },
): Promise<Steady> {
  const times = new StartTimes();
  const watches = await Promise.all([
    PodWatch.start(bed, contender, (_key, pod) => {
      if (pod !== undefined) times.home(pod.homeUid, pod.ready, performance.now());
    }),
    PodWatch.start(bed, { cluster: 'foreign', namespace: contender.tenant }, (_key, pod) => {
      if (pod !== undefined) times.remote(pod.homeUid, pod.ready, performance.now());
    }),
  ]);
  try {
    await bed.quiet();
    const before = { own: cpuMs(contender.program.pid), watch: process.cpuUsage() };
    await createSteadily(bed, contender, wanted);
    const what = `${wanted.count} pods Ready on both sides (${contender.name})`;
    await bed.until(what, READY_TIMEOUT_MS, () => times.complete >= wanted.count);
    const { user, system } = process.cpuUsage(before.watch);
    const ownCpuMs = cpuMs(contender.program.pid) - before.own;
    return { added: times.added(), pods: wanted.count, ownCpuMs, watchCpuMs: (user + system) / 1000 };
  } finally {
    await Promise.all(watches.map(async (watch) => watch.stop()));
    await removeAll(bed, contender);
  }
}

type Figure = (result: Steady) => number;

const p =
  (share: number): Figure =>
  (result) =>
    percentile(result.added, share);

const FIGURES: readonly (readonly [figure: string, of: Figure, digits: number])[] = [
  ['added ms, p50', p(0.5), 1],
  ['added ms, p99', p(0.99), 1],
  ['added ms, p99.9', p(0.999), 1],
  ['own CPU ms per pod', ({ ownCpuMs, pods }) => ownCpuMs / pods, 2],
  ['CPU ms per pod of the benchmark itself', ({ watchCpuMs, pods }) => watchCpuMs / pods, 2],
];

function found(results: Results): Found {
  const measured = FIGURES.flatMap(([figure, of, digits]) =>
    [...results].map(([contender, each]): Measured => ({ contender, figure, values: each.map(of), digits })),
  );
  return { measured, goals: [goal('P2-p50', 0.5, 8, results), goal('P2-p99', 0.99, 40, results)] };
}

function goal(id: string, share: number, atMost: number, results: Results): Goal {
  const of = (name: string): number[] => (results.get(name) ?? []).map(p(share));
  const what = `added ms, ${id.slice('P2-'.length)}, above the null mirror’s`;
  return { id, what, values: differences(of('agent'), of('null mirror')), atMost, digits: 1 };
}
