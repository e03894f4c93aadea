/** P8: many peers of one home, in one process and in one process each. */
import type { Bench, Curve, Goal, Measured } from '../frame/bench.ts';
import { median } from '../frame/statistics.ts';
import { PeersBed } from './bed.ts';
import { background, measure, type PeersFigures } from './measure.ts';

/** Of the largest number, in ascending order. */
const SHARES = [1 / 128, 1 / 16, 1 / 4, 1];

const FIGURES: readonly (readonly [what: string, of: (figures: PeersFigures) => number, digits: number])[] = [
  ['s until all Nodes are Ready', ({ readySeconds }) => readySeconds, 1],
  ['CPU s until then', ({ startCpuSeconds }) => startCpuSeconds, 2],
  ['private MiB at rest', ({ privateMiB }) => privateMiB, 1],
  ['sockets', ({ sockets }) => sockets, 0],
  ['% of a core at rest', ({ restCpuPercent }) => restCpuPercent, 2],
  ['requests a minute at home, at rest', ({ homeRequestsPerMinute }) => homeRequestsPerMinute, 0],
  ['requests a minute over there, at rest', ({ foreignRequestsPerMinute }) => foreignRequestsPerMinute, 0],
  ['s until a change of all offers is in all Nodes', ({ changeSeconds }) => changeSeconds, 1],
  ['CPU s for that', ({ changeCpuSeconds }) => changeCpuSeconds, 2],
];

const contenderOf = ({ peers, processes }: PeersFigures): string =>
  processes === 1 && peers > 1 ? `${peers} in one process` : `${peers} in ${processes} of role peer`;

export const peersBench: Bench<{ peers: number; alone: number; rest: number }> = {
  name: 'peers',
  title: 'many peers of one home',
  what:
    'Role `peers` serves the virtual nodes of many foreign clusters in one process; beside it, one process of role `peer` for each. The foreign ' +
    'clusters are pretended by one real API server, in which each has a namespace, an account and a token of its own; so connections, ' +
    'requests and memory at home are as with real ones. No pods run. The control planes’ own requests are taken off.',
  parameters: { peers: 128, alone: 8, rest: 60 },
  // A single one is in the steps of role `peers` already.
  limits: { alone: { least: 0 } },
  run: async ({ parameters: { peers, alone, rest }, rounds, nodeFlags, say }) => {
    const bed = await PeersBed.up({ peers, nodeFlags, say });
    try {
      const without = await background(bed, rest);
      const counts = [...new Set(SHARES.map((share) => Math.max(1, Math.round(peers * share))))];
      const all: PeersFigures[][] = [];
      for (let round = 0; round < rounds; round++) {
        const found: PeersFigures[] = [];
        for (const count of counts) found.push(await measured({ peers: count, isShared: count > 1 }));
        if (alone > 1) found.push(await measured({ peers: alone, isShared: false }));
        all.push(found);
      }
      return { measured: measuredOf(all), goals: goalsOf(all), curves: curvesOf(all) };

      async function measured(wanted: { peers: number; isShared: boolean }): Promise<PeersFigures> {
        const figures = await measure(bed, { ...wanted, restSeconds: rest }, without);
        say(
          `${contenderOf(figures)}: ${FIGURES.map(([what, of, digits]) => `${of(figures).toFixed(digits)} ${what}`).join(', ')}`,
        );
        say(`  a minute at rest: ${figures.most}`);
        return figures;
      }
    } finally {
      await bed.down();
    }
  },
};

function measuredOf(rounds: readonly PeersFigures[][]): Measured[] {
  return (rounds[0] ?? []).flatMap((first, index) =>
    FIGURES.map(([figure, of, digits]) => ({
      contender: contenderOf(first),
      figure,
      digits,
      values: rounds.map((round) => of(round[index] ?? first)),
    })),
  );
}

const sharedOf = (round: readonly PeersFigures[]): PeersFigures[] =>
  round.filter(({ processes, peers }) => processes === 1 && peers > 1);

/** What one more takes, between two numbers of peers in one process. */
function each(
  [less, more]: readonly [PeersFigures | undefined, PeersFigures | undefined],
  of: (figures: PeersFigures) => number,
): number {
  if (less === undefined || more === undefined) return Number.NaN;
  return (of(more) - of(less)) / (more.peers - less.peers);
}

function goalsOf(rounds: readonly PeersFigures[][]): Goal[] {
  const shared = rounds.map(sharedOf);
  const one = (of: (figures: PeersFigures) => number): number[] =>
    shared.map((round) => each([round.at(0), round.at(-1)], of));
  /** The second half of the way beside the first: more than 1 is faster than linear. */
  const growth = (of: (figures: PeersFigures) => number): number[] =>
    shared.map((round) => each([round.at(1), round.at(2)], of) / each([round.at(0), round.at(1)], of));
  const requests = ({ homeRequestsPerMinute, foreignRequestsPerMinute }: PeersFigures): number =>
    (homeRequestsPerMinute + foreignRequestsPerMinute) / 60;
  return [
    {
      id: 'P8',
      what: 'private MiB for one more peer',
      values: one(({ privateMiB }) => privateMiB),
      atMost: 2,
    },
    { id: 'P8-requests', what: 'requests/s at rest for one more peer', values: one(requests), atMost: 0.5 },
    {
      id: 'P8-sockets',
      what: 'sockets for one more peer: a connection, and the kubelet API that listens',
      values: one(({ sockets }) => sockets),
      atMost: 2.1,
    },
    {
      id: 'P8-cpu',
      what: 'CPU s until Ready for one more peer, from the second half of the peers on, of the same before',
      values: growth(({ startCpuSeconds }) => startCpuSeconds),
      atMost: 1.25,
    },
  ];
}

function curvesOf(rounds: readonly PeersFigures[][]): Curve[] {
  const line = (of: (figures: PeersFigures) => number): (readonly [number, number])[] =>
    sharedOf(rounds[0] ?? []).map((figures, index) => [
      figures.peers,
      median(rounds.map((round) => of(sharedOf(round)[index] ?? figures))),
    ]);
  const curve = (y: string, of: (figures: PeersFigures) => number): Curve => ({
    title: `${y}, by peers in one process`,
    x: 'peers',
    y,
    lines: [{ name: 'one process', points: line(of) }],
  });
  return [
    curve('private MiB', ({ privateMiB }) => privateMiB),
    curve('CPU s until all are Ready', ({ startCpuSeconds }) => startCpuSeconds),
  ];
}
