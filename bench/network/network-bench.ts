/** P14 and P18: what the data plane costs beside wireguard-go set up by hand, and what a change costs a gateway that has many peers. */
import { WIREGUARD_MEMORY } from '../../src/deploy/gateway.ts';
import {
  PlaneLab,
  planeLabProblem,
  type PlaneVersion,
  planeVersion,
} from '../../test/support/network/plane-lab.ts';
import type { Bench, Found, Goal, Measured } from '../frame/bench.ts';
import { ratios } from '../frame/goals.ts';
import { addingPeers, applyingPrefixes, type Changes } from './changes.ts';
import {
  byHand,
  inTurns,
  planned,
  plannedBeside,
  type WayFigures,
  wayOf,
  type Wish,
  withoutTunnel,
} from './ways.ts';

/** By hand it runs as it is. */
const asShipped = { wireguard: WIREGUARD_MEMORY };
const HAND = 'by hand';
const LIMITED = 'by hand, its memory as shipped';
const TRANSLATED = 'planned, translated';

const BEFORE = `${TRANSLATED}, before`;
/** As the manifest of commit 67a51f53 has it. */
const BEFORE_MEMORY = { wireguard: { GOMEMLIMIT: '384MiB' } };

const wishesFor = (prefixes: number, before: PlaneVersion | undefined): Wish[] => [
  { name: HAND, set: byHand },
  { name: LIMITED, set: byHand, ...asShipped },
  { name: 'planned, nothing rewritten', set: planned, ...asShipped },
  { name: TRANSLATED, identical: true, set: planned, ...asShipped },
  { name: `planned, ${prefixes} prefixes`, set: plannedBeside(prefixes), ...asShipped },
  { name: 'no tunnel', set: withoutTunnel, plain: true },
  ...(before === undefined
    ? []
    : [{ name: BEFORE, identical: true, version: before, set: planned, ...BEFORE_MEMORY }]),
];

const FIGURES: readonly (readonly [figure: string, of: (way: WayFigures) => number, digits: number])[] = [
  ['Mbit/s', ({ mbits }) => mbits, 0],
  ['RTT ms', ({ rttMs }) => rttMs, 2],
  ['CPU ms per Gbit', ({ cpuMsPerGbit }) => cpuMsPerGbit, 0],
  ['RSS MiB of wireguard-go', ({ rssMiB }) => rssMiB, 0],
];

export const networkBench: Bench<{ seconds: number; peers: number; prefixes: number }> = {
  name: 'network',
  title: 'the tunnel, and changes of a gateway with many peers',
  what:
    'Two pods in two clusters in network namespaces, one TCP connection. `by hand` is the same wireguard-go (the newest) with routes and nothing ' +
    'else; `translated` has identical pod ranges on both sides, so that every address is rewritten; `no tunnel` is the same path in clear. CPU is that of both ' +
    'wireguard-go and both ends, with what the kernel did for them. Then a gateway gets one peer after another.',
  parameters: { seconds: 2, peers: 128, prefixes: 1_000 },
  // Pretended peers are numbered by a byte, and the last of these numbers are of those that have the prefixes.
  limits: { peers: { most: 240 }, prefixes: { most: 4_000 } },
  problem: planeLabProblem,
  run: async ({ parameters: { seconds, peers, prefixes }, rounds, say, before, signal }) => {
    const version = before === undefined ? undefined : await planeVersion(before);
    const wishes = wishesFor(prefixes, version);
    const figures = await throughput(wishes, { rounds, seconds, signal });
    say('one peer after another');
    const changes: Changes[] = [];
    const changesBefore: Changes[] = [];
    const applied: { one: number; all: number }[] = [];
    for (let round = 0; round < rounds; round++) {
      changes.push(await addingPeers(peers, { signal }));
      if (version !== undefined) changesBefore.push(await addingPeers(peers, { signal, version }));
      applied.push({ one: await applyingPrefixes(1), all: await applyingPrefixes(prefixes) });
    }
    return {
      measured: [
        ...measuredOf(wishes, figures),
        ...changesOf(TRANSLATED, changes),
        ...(version === undefined ? [] : changesOf(BEFORE, changesBefore)),
        ...prefixesOf(prefixes, applied),
      ],
      goals: goalsOf(wishes, figures, changes),
      curves: [curveOf(changes)],
      remarks: [
        `Chains, sets and rules of other peers that the last peer touched: ${changes.at(-1)?.others.length ?? 0}.`,
      ],
    };
  },
};

async function throughput(
  wishes: readonly Wish[],
  how: { rounds: number; seconds: number; signal: AbortSignal },
): Promise<readonly (readonly WayFigures[])[]> {
  const lab = await PlaneLab.up();
  try {
    const ways = [];
    for (const wish of wishes) {
      how.signal.throwIfAborted();
      ways.push(await wayOf(lab, wish));
    }
    return await inTurns(ways, how);
  } finally {
    await lab.down();
  }
}

const measuredOf = (wishes: readonly Wish[], figures: readonly (readonly WayFigures[])[]): Measured[] =>
  FIGURES.flatMap(([figure, of, digits]) =>
    wishes.map(({ name }, index) => ({
      contender: name,
      figure,
      values: (figures[index] ?? []).map(of),
      digits,
    })),
  );

/** So many peers are the first and the last: a single one is too small for the clock of CPU time. */
const PART = 16;
const cpuOf = (changes: Changes['changes']): number =>
  changes.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / changes.length;
const firstOf = ({ changes }: Changes): number => cpuOf(changes.slice(0, PART));
const lastOf = ({ changes }: Changes): number => cpuOf(changes.slice(-PART));

const changesOf = (contender: string, runs: readonly Changes[]): Measured[] => [
  { contender, figure: `CPU ms to add one of the first ${PART} peers`, values: runs.map(firstOf) },
  { contender, figure: `CPU ms to add one of the last ${PART} peers`, values: runs.map(lastOf) },
];

const prefixesOf = (prefixes: number, applied: readonly { one: number; all: number }[]): Measured[] => [
  { contender: TRANSLATED, figure: 'ms to set 1 prefix', values: applied.map(({ one }) => one), digits: 0 },
  {
    contender: TRANSLATED,
    figure: `ms to set ${prefixes} prefixes`,
    values: applied.map(({ all }) => all),
    digits: 0,
  },
];

function goalsOf(
  wishes: readonly Wish[],
  figures: readonly (readonly WayFigures[])[],
  changes: readonly Changes[],
): Goal[] {
  const of = (name: string, figure: (way: WayFigures) => number): number[] =>
    (figures[wishes.findIndex((wish) => wish.name === name)] ?? []).map(figure);
  const against = (figure: (way: WayFigures) => number): number[] =>
    ratios(of(TRANSLATED, figure), of(HAND, figure));
  return [
    {
      id: 'P14',
      what: 'Mbit/s, translated, of by hand',
      values: against(({ mbits }) => mbits),
      atLeast: 0.97,
    },
    {
      id: 'P14-rtt',
      what: 'RTT, translated, of by hand',
      values: against(({ rttMs }) => rttMs),
      atMost: 1.05,
    },
    {
      id: 'P14-cpu',
      what: 'CPU per Gbit, translated, of by hand',
      values: against(({ cpuMsPerGbit }) => cpuMsPerGbit),
      atMost: 1.05,
    },
    {
      id: 'P18',
      what: 'CPU to add one of the last peers, of one of the first',
      values: changes.map((run) => lastOf(run) / firstOf(run)),
      atMost: 1.25,
    },
  ];
}

const curveOf = (runs: readonly Changes[]): NonNullable<Found['curves']>[number] => ({
  title: 'One peer more',
  x: 'peers of the gateway',
  y: 'ms until the host is as planned',
  lines: runs.map(({ changes }, index) => ({
    name: `round ${index + 1}`,
    points: changes.filter(({ peers }) => peers % 8 === 0).map(({ peers, ms }) => [peers, ms]),
  })),
});
