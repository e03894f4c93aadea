/** P9: the agent begins anew while thousands of pods run, and nothing has changed. */
import { setTimeout as sleep } from 'node:timers/promises';

import { type Bench, type Found, type Goal, inTurn, type Measured } from '../frame/bench.ts';
import { ratios } from '../frame/goals.ts';
import type { Program } from '../frame/program.ts';
import { startIdle } from '../frame/stall.ts';
import { Bed, type Restartable, tenantOf, type Version, versionsOf } from './bed.ts';
import type { Mirror } from './contender.ts';
import { createMany } from './many-pods.ts';
import { PodWatch } from './pod-watch.ts';
import { IDLE, probeFlags, rawList, restart, type Restart, stallFile } from './restart.ts';

/** A pretended node has room for 250. */
const PODS_PER_NODE = 200;
const SPARE_PODS = 10;
const MIRRORED_TIMEOUT_MS = 1_800_000;
const PLACE = {
  name: 'agent',
  cluster: 'home',
  namespace: 'agent',
  node: 'agent',
  tenant: tenantOf('agent'),
} as const;

/** A role may hold so much, and so much more for each thousand pods. */
const ROLE_MIB = 40;
const MIB_PER_THOUSAND = 2;

interface Results {
  /** Without pods. */
  readonly none: ReadonlyMap<Version, Restart>;
  readonly full: ReadonlyMap<Version, readonly Restart[]>;
  readonly rawMs: readonly number[];
}

export const restartBench: Bench<{ pods: number; settle: number }> = {
  name: 'restart',
  title: 'the agent begins anew, and nothing has changed',
  what:
    'All pods have run on one virtual node for some time (`settle`, seconds). The agent is stopped and started; it is done when it has reconciled every pod and no key waits. ' +
    'The **raw list** reads the pods of both clusters with the same client, and drops them; the start of its process is not ' +
    'counted, that of the agent is. Writes are all that it has asked of both API servers since the start and for 30 s after, by their audit logs, without ' +
    'Leases and what says that the Node is Ready. The event loop is sampled every millisecond from when the program ' +
    'listens, so an idle one counts as about one; loading its code before that is a figure of its own. The **idle process** does nothing in the ' +
    'same time: its stalls are those of the machine. `agent, no pods` is measured once, before the pods are made, so that what is above it ' +
    'says less than the whole does.',
  parameters: { pods: 10_000, settle: 90 },
  limits: { settle: { least: 0 } },
  run: async ({ parameters: { pods, settle }, rounds, say, nodeFlags, before }) => {
    const foreignNodes = Math.ceil(pods / PODS_PER_NODE);
    const bed = await Bed.up({
      name: 'bench-anew',
      progress: say,
      nodeFlags,
      before,
      audit: true,
      foreignNodes,
      mostPods: pods + SPARE_PODS,
    });
    try {
      const names = versionsOf(before);
      const programs = new Map<Version, Restartable>();
      for (const name of names) programs.set(name, await bed.restartable(name, probeFlags(bed)));
      const found = await measure(bed, programs, { pods, settle, rounds, say });
      return foundOf(found, pods);
    } finally {
      await bed.down();
    }
  },
};

/** The program that is started takes over from the one before, in the order of their turns. */
async function measure(
  bed: Bed,
  programs: ReadonlyMap<Version, Restartable>,
  {
    pods,
    settle,
    rounds,
    say,
  }: { pods: number; settle: number; rounds: number; say: (line: string) => void },
): Promise<Results> {
  const none = new Map<Version, Restart>();
  const full = new Map<Version, Restart[]>([...programs.keys()].map((name) => [name, []]));
  const rawMs: number[] = [];
  const idle = startIdle(bed.lab.spec, stallFile(bed, IDLE));
  let running: Program | undefined;
  const anew = async (program: Restartable, count: number): Promise<Restart> => {
    await running?.stop();
    const found = await restart(bed, { agent: program, idle }, count);
    running = found.program;
    return found;
  };
  for (const [name, program] of programs) {
    // The first start makes the Node.
    await anew(program, 0);
    none.set(name, await anew(program, 0));
  }
  if (running === undefined) throw new Error('no program takes part');
  await fill(bed, { ...PLACE, program: running }, pods, say);
  await sleep(settle * 1000);
  for (let round = 1; round <= rounds; round++) {
    rawMs.push(rawList(bed, PLACE));
    for (const [name, program] of inTurn([...programs], round)) {
      const found = await anew(program, pods);
      full.get(name)?.push(found);
      say(`round ${round}, ${name}: ${found.ms.toFixed(0)} ms, ${found.writes} writes`);
    }
  }
  return { none, full, rawMs };
}

/** Makes the pods, and waits until all are Ready at home. */
async function fill(bed: Bed, mirror: Mirror, count: number, say: (line: string) => void): Promise<void> {
  const ready = new Set<string>();
  const watch = await PodWatch.start(bed, mirror, (key, pod) => {
    if (pod?.ready === true) ready.add(key);
    else ready.delete(key);
  });
  try {
    await createMany(bed, mirror, count);
    say(`${count} pods made, ${ready.size} of them Ready`);
    await bed.until(`${count} pods Ready`, MIRRORED_TIMEOUT_MS, () => ready.size >= count);
  } finally {
    await watch.stop();
  }
}

const FIGURES: readonly (readonly [figure: string, of: (restart: Restart) => number, digits: number])[] = [
  ['ms until every pod is reconciled', ({ ms }) => ms, 0],
  ['ms until it listens', ({ stall }) => stall.startMs, 0],
  ['ms until ready', ({ readyMs }) => readyMs, 0],
  ['writes', ({ writes }) => writes, 0],
  ['event loop ms, p99.9', ({ stall }) => stall.p999Ms, 1],
  ['event loop ms, longest', ({ stall }) => stall.longestMs, 1],
  ['own CPU ms', ({ cpuMs }) => cpuMs, 0],
  ['private MiB', ({ privateMiB }) => privateMiB, 1],
];

function foundOf({ none, full, rawMs }: Results, pods: number): Found {
  const agents = full.get('agent') ?? [];
  const measured: Measured[] = FIGURES.flatMap(([figure, of, digits]) => [
    ...[...full].map(([contender, each]) => ({ contender, figure, values: each.map(of), digits })),
    ...[...none].map(([name, one]) => ({
      contender: `${name}, no pods`,
      figure,
      values: [of(one)],
      digits,
    })),
  ]);
  for (const [contender, each] of full) {
    const less = none.get(contender)?.privateMiB ?? Number.NaN;
    const values = each.map(({ privateMiB }) => ((privateMiB - less) * 1000) / pods);
    measured.push({ contender, figure: 'private MiB for 1,000 pods, above none', values, digits: 2 });
  }
  measured.push({
    contender: 'idle process',
    figure: 'event loop ms, p99.9',
    values: agents.map(({ idle }) => idle.p999Ms),
    digits: 1,
  });
  measured.push({
    contender: 'raw list',
    figure: 'ms until every pod is reconciled',
    values: rawMs,
    digits: 0,
  });
  return { measured, goals: goalsOf(agents, { pods, rawMs }), remarks: [requestsText(agents)] };
}

function goalsOf(
  agents: readonly Restart[],
  { pods, rawMs }: { pods: number; rawMs: readonly number[] },
): Goal[] {
  return [
    { id: 'P9-writes', what: 'writes', values: agents.map(({ writes }) => writes), atMost: 0, digits: 0 },
    {
      id: 'P9-time',
      what: 'time until every pod is reconciled, of the raw list’s',
      values: ratios(
        agents.map(({ ms }) => ms),
        rawMs,
      ),
      atMost: 2,
    },
    {
      id: 'P9-start',
      what: 'ms until it listens, before it has asked anybody',
      values: agents.map(({ stall }) => stall.startMs),
      atMost: 300,
      digits: 0,
    },
    {
      id: 'P9-stall',
      what: 'ms that the event loop stalls, p99.9',
      values: agents.map(({ stall }) => stall.p999Ms),
      atMost: 20,
      digits: 1,
    },
    {
      id: 'P9-memory',
      what: `private MiB with all pods: ${ROLE_MIB}, and ${MIB_PER_THOUSAND} for each 1,000 of them`,
      values: agents.map(({ privateMiB }) => privateMiB),
      atMost: ROLE_MIB + (MIB_PER_THOUSAND * pods) / 1000,
      digits: 1,
    },
  ];
}

function requestsText(restarts: readonly Restart[]): string {
  const last = restarts.at(-1)?.requests ?? new Map<string, number>();
  const rows = [...last].toSorted(([, a], [, b]) => b - a).map(([key, count]) => `${key} ${count}`);
  return `Requests of the last restart, Leases and the Node aside: ${rows.join(', ')}.`;
}
