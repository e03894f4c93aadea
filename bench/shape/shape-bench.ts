/** What the nodes of a provider cost its role `cluster`, and those who borrow from it. */
import type { Bench, Found, Goal } from '../frame/bench.ts';
import { bend } from '../frame/statistics.ts';
import { ShapeBed } from './bed.ts';
import { measureStep, type Step } from './measure.ts';

/** Steps by which the number grows, as shares of the largest. */
const SHARES = [0.01, 0.3, 1];
/** What one more of the last nodes may cost, in what one of those before costs: more would be faster than linear. */
const MOST_GROWTH = 1.25;

export const shapeBench: Bench<{ nodes: number; seconds: number; heartbeat: number; flap: number }> = {
  name: 'shape',
  title: 'a provider with a thousand nodes',
  what:
    'rome borrows from milan, whose nodes are only objects; the benchmark plays their kubelets, each of which writes its node’s status every ' +
    '`heartbeat` seconds. Then some nodes besides lose their Ready and have it again, a change every `flap` seconds. Each of both takes ' +
    '`seconds`. Measured is the role `cluster` of milan, what it writes of its offer, and what a watch of offers in rome brings.',
  parameters: { nodes: 1_000, seconds: 60, heartbeat: 30, flap: 5 },
  // Fewer would be the same number in two steps.
  limits: { nodes: { least: 4 } },
  problem: () => (process.getuid?.() === 0 ? undefined : 'networks of the clusters need root'),
  run: async ({
    parameters: { nodes, seconds, heartbeat, flap },
    rounds,
    nodeFlags,
    say,
  }): Promise<Found> => {
    const how = { heartbeatMs: heartbeat * 1000, flapMs: flap * 1000, forMs: seconds * 1000 };
    const runs: Step[][] = [];
    for (let round = 1; round <= rounds; round++) {
      const bed = await ShapeBed.up(nodeFlags, say);
      try {
        const steps: Step[] = [];
        for (const share of SHARES) {
          const step = await measureStep(bed, steps.at(-1)?.nodes ?? 0, Math.ceil(nodes * share), how);
          say(`${step.nodes} nodes: ${JSON.stringify(step)}`);
          steps.push(step);
        }
        runs.push(steps);
      } finally {
        await bed.down();
      }
    }
    return found(runs);
  },
};

const FIGURES: readonly (readonly [figure: string, of: (step: Step) => number, digits: number])[] = [
  ['private MiB', ({ privateMiB }) => privateMiB, 1],
  ['s until further nodes are in the offer', ({ growMs }) => growMs / 1000, 1],
  ['new offers meanwhile', ({ growOffers }) => growOffers, 0],
  ['CPU ms a minute', ({ rest }) => rest.cpuMsPerMinute, 0],
  ['heartbeats', ({ rest }) => rest.heartbeats, 0],
  ['requests a minute', ({ rest }) => rest.requestsPerMinute, 1],
  ['new offers', ({ rest }) => rest.offers, 0],
  ['writes of PeeringRequests', ({ rest }) => rest.writes, 0],
  ['bytes of offers that home’s watch brings', ({ rest }) => rest.watchedBytes, 0],
  ['event loop ms, p99.9', ({ rest }) => rest.stall.p999Ms, 1],
  ['event loop ms, longest', ({ rest }) => rest.stall.longestMs, 1],
  ['CPU ms a minute, some flap', ({ flapping }) => flapping.cpuMsPerMinute, 0],
  ['changes of nodes that flap', ({ flapping }) => flapping.flaps, 0],
  ['requests a minute, some flap', ({ flapping }) => flapping.requestsPerMinute, 1],
  ['new offers, some flap', ({ flapping }) => flapping.offers, 0],
  ['writes of PeeringRequests, some flap', ({ flapping }) => flapping.writes, 0],
  ['bytes of offers that home’s watch brings, some flap', ({ flapping }) => flapping.watchedBytes, 0],
  ['event loop ms, longest, some flap', ({ flapping }) => flapping.stall.longestMs, 1],
];

export function found(runs: readonly (readonly Step[])[]): Found {
  const counts = runs[0]?.map(({ nodes }) => nodes) ?? [];
  const at = (index: number, of: (step: Step) => number): number[] =>
    runs.flatMap((steps) => steps.slice(index, index + 1).map(of));
  return {
    measured: FIGURES.flatMap(([figure, of, digits]) =>
      counts.map((count, index) => ({ contender: `${count} nodes`, figure, values: at(index, of), digits })),
    ),
    goals: goalsOf(runs),
    curves: [
      {
        title: 'Nodes of a provider',
        x: 'nodes',
        y: 'private MiB of role cluster',
        lines: [
          { name: 'cluster', points: (runs[0] ?? []).map(({ nodes, privateMiB }) => [nodes, privateMiB]) },
        ],
      },
    ],
  };
}

function goalsOf(runs: readonly (readonly Step[])[]): Goal[] {
  const last = (of: (step: Step) => number): number[] => runs.flatMap((steps) => steps.slice(-1).map(of));
  return [
    {
      id: 'shape-writes',
      what: 'new offers and writes of them while all nodes only send heartbeats',
      values: last(({ rest }) => rest.offers + rest.writes),
      atMost: 0,
      digits: 0,
    },
    {
      id: 'shape-memory',
      what: 'private memory for a further node, from the second step on, of that before',
      values: runs.map((steps) => bend(steps.map(({ nodes, privateMiB }) => [nodes, privateMiB]))),
      atMost: MOST_GROWTH,
    },
    {
      id: 'shape-cpu',
      what: 'CPU of a further node at rest, from the second step on, of that before',
      values: runs.map((steps) => bend(steps.map(({ nodes, rest }) => [nodes, rest.cpuMsPerMinute]))),
      atMost: MOST_GROWTH,
    },
  ];
}
