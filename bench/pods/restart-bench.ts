/** P9: the agent begins anew while thousands of pods run, and nothing has changed. */
import type { Bench, Found, Goal, Measured } from '../frame/bench.ts';
import { ratios } from '../frame/goals.ts';
import type { Program } from '../frame/program.ts';
import { Bed, tenantOf } from './bed.ts';
import type { Mirror } from './contender.ts';
import { createMany } from './many-pods.ts';
import { PodWatch } from './pod-watch.ts';
import { probeFlags, rawList, restart, type Restart } from './restart.ts';

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

interface Round {
  readonly rawMs: number;
  readonly agent: Restart;
}

export const restartBench: Bench<{ pods: number }> = {
  name: 'restart',
  title: 'the agent begins anew, and nothing has changed',
  what:
    'All pods run on one virtual node. The agent is stopped and started; it is done when it has reconciled every pod and no key waits. ' +
    'The **raw list** reads the pods of both clusters with the same client, in pages, and drops them; the start of its process is not ' +
    'counted, that of the agent is. Writes are all that both API servers have stored or refused since the start and for 15 s after, without ' +
    'Leases and the Node. The event loop is sampled every millisecond, so an idle one counts as about one.',
  parameters: { pods: 10_000 },
  run: async ({ parameters: { pods }, rounds, say, nodeFlags }) => {
    const foreignNodes = Math.ceil(pods / PODS_PER_NODE);
    const bed = await Bed.up({
      name: 'bench-anew',
      progress: say,
      nodeFlags,
      foreignNodes,
      mostPods: pods + SPARE_PODS,
    });
    try {
      const agent = await bed.restartableAgent(probeFlags(bed));
      const first = agent.start();
      await bed.nodeReady(PLACE.node, first);
      await first.stop();
      const none = await restart(bed, agent, 0);
      await fill(bed, { ...PLACE, program: none.program }, pods, say);
      let running: Program = none.program;
      const all: Round[] = [];
      for (let round = 1; round <= rounds; round++) {
        await running.stop();
        const rawMs = rawList(bed, PLACE);
        const found = await restart(bed, agent, pods);
        running = found.program;
        all.push({ rawMs, agent: found });
        say(
          `round ${round}: ${found.ms.toFixed(0)} ms, raw list ${rawMs.toFixed(0)} ms, ${found.writes} writes`,
        );
      }
      return foundOf(all, none, pods);
    } finally {
      await bed.down();
    }
  },
};

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
  ['ms until ready', ({ readyMs }) => readyMs, 0],
  ['writes', ({ writes }) => writes, 0],
  ['event loop ms, p99.9', ({ stall }) => stall.p999Ms, 1],
  ['event loop ms, longest', ({ stall }) => stall.longestMs, 1],
  ['own CPU ms', ({ cpuMs }) => cpuMs, 0],
  ['private MiB', ({ privateMiB }) => privateMiB, 1],
];

function foundOf(rounds: readonly Round[], none: Restart, pods: number): Found {
  const agents = rounds.map(({ agent }) => agent);
  const rawMs = rounds.map(({ rawMs }) => rawMs);
  const measured: Measured[] = FIGURES.flatMap(([figure, of, digits]) => [
    { contender: 'agent', figure, values: agents.map(of), digits },
    { contender: 'agent without pods', figure, values: [of(none)], digits },
  ]);
  measured.push({
    contender: 'raw list',
    figure: 'ms until every pod is reconciled',
    values: rawMs,
    digits: 0,
  });
  const goals: Goal[] = [
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
      id: 'P9-stall',
      what: 'ms that the event loop stalls, p99.9',
      values: agents.map(({ stall }) => stall.p999Ms),
      atMost: 20,
      digits: 1,
    },
    {
      id: 'P9-memory',
      what: 'private MiB for 1,000 pods, above none',
      values: agents.map(({ privateMiB }) => ((privateMiB - none.privateMiB) * 1000) / pods),
      atMost: 2,
    },
  ];
  return { measured, goals, remarks: [requestsText(agents)] };
}

function requestsText(restarts: readonly Restart[]): string {
  const last = restarts.at(-1)?.requests ?? new Map<string, number>();
  const rows = [...last].toSorted(([, a], [, b]) => b - a).map(([key, count]) => `${key} ${count}`);
  return `Requests of the last restart, Leases and the Node aside: ${rows.join(', ')}.`;
}
