/**
 * What the data plane costs: the same pods and hops over wireguard-go with our plans, over wireguard-go set up by hand
 * without any rule of ours, and in clear, in turns; how long a change takes with up to 128 peers, and 1,000 prefixes.
 * Needs root; everything is in network namespaces of its own.
 *
 * Usage: node bench/network.ts [--rounds 5] [--seconds 2] [--peers 128] [--prefixes 1000] [--part ways|changes]
 *   [--memory 96MiB,64MiB]
 *
 * --memory: further ways, translated, each with such a limit for wireguard-go (GOMEMLIMIT), and one without.
 */
import { parseArgs } from 'node:util';

import { WIREGUARD_MEMORY } from '../src/deploy/gateway.ts';
import { PlaneLab, planeLabProblem } from '../test/support/network/plane-lab.ts';
import { addingPeers, applyingPrefixes, type Changes } from './network/changes.ts';
import {
  byHand,
  inTurns,
  planned,
  plannedBeside,
  type WayFigures,
  wayOf,
  type Wish,
  withoutTunnel,
} from './network/ways.ts';
import { shown, slope, spread, table } from './frame/statistics.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    peers: { type: 'string', default: '128' },
    prefixes: { type: 'string', default: '1000' },
    part: { type: 'string' },
    memory: { type: 'string' },
  },
});
const [rounds, seconds, peers, prefixes] = [values.rounds, values.seconds, values.peers, values.prefixes].map(
  Number,
) as [number, number, number, number];

/** By hand it runs as it is. */
const asShipped = { wireguard: { GOMEMLIMIT: WIREGUARD_MEMORY } };

/** The first is what the others are compared with. */
function wishes(): Wish[] {
  const limits = values.memory?.split(',') ?? [];
  const translated = { identical: true, set: planned };
  if (limits.length > 0) {
    return [
      { name: 'no limit', ...translated },
      ...limits.map((limit) => ({ name: limit, ...translated, wireguard: { GOMEMLIMIT: limit } })),
    ];
  }
  return [
    { name: 'by hand', set: byHand },
    { name: 'planned, nothing rewritten', set: planned, ...asShipped },
    { name: 'planned, translated', ...translated, ...asShipped },
    { name: `planned, ${prefixes} prefixes`, set: plannedBeside(prefixes), ...asShipped },
    { name: 'no tunnel', set: withoutTunnel, plain: true },
  ];
}

async function throughput(): Promise<void> {
  const lab = await PlaneLab.up();
  try {
    const ways = [];
    for (const wish of wishes()) ways.push(await wayOf(lab, wish));
    const figures = await inTurns(ways, { rounds, seconds });
    console.log(
      comparison(
        ways.map(({ name }) => name),
        figures,
      ),
    );
  } finally {
    await lab.down();
  }
}

function comparison(names: readonly string[], figures: readonly (readonly WayFigures[])[]): string {
  const base = figures[0] ?? [];
  const column = (found: readonly WayFigures[], what: keyof WayFigures, digits: number): string[] => [
    shown(spread(found.map((figure) => figure[what])), digits),
    shown(spread(found.map((figure, round) => figure[what] / (base[round]?.[what] ?? Number.NaN))), 2),
  ];
  const rows = names.map((name, index) => {
    const found = figures[index] ?? [];
    const [mbits, rtt] = [column(found, 'mbits', 0), column(found, 'rttMs', 2)];
    const [rss] = column(found, 'rssMiB', 0);
    return [name, ...mbits, ...rtt, ...column(found, 'cpuMsPerGbit', 0), rss ?? ''];
  });
  const of = `of ${names[0]}`;
  return table([['', 'Mbit/s', of, 'RTT ms', of, 'CPU ms/Gbit', of, 'RSS MiB'], ...rows]);
}

function changeTable({ changes, others }: Changes): string {
  const part = Math.ceil(changes.length / 8);
  const parts = Array.from({ length: Math.ceil(changes.length / part) }, (_, index) =>
    changes.slice(index * part, (index + 1) * part),
  );
  const rows = parts.map((few) => [
    `${few[0]?.peers} to ${few.at(-1)?.peers}`,
    shown(spread(few.map(({ ms }) => ms)), 0),
    shown(spread(few.map(({ planMs }) => planMs)), 1),
    mean(few.map(({ cpuMs }) => cpuMs)).toFixed(1),
  ]);
  const used = parts.map((few) => mean(few.map(({ cpuMs }) => cpuMs)));
  const more = slope(changes.map(({ peers: count, ms }) => [count, ms]));
  return [
    table([['peers', 'ms to add one', 'of it the plan', 'CPU ms of the host'], ...rows]),
    `${more.toFixed(2)} ms more for each peer; CPU of the last part to the first: ${((used.at(-1) ?? 0) / (used[0] ?? 0)).toFixed(2)}\n`,
    `chains, sets and rules of others that the last one touched: ${others.length}\n`,
    ...others.slice(0, 10).map((line) => `  ${line}\n`),
  ].join('');
}

const mean = (of: readonly number[]): number => of.reduce((sum, one) => sum + one, 0) / of.length;

async function allPrefixes(): Promise<void> {
  const times: [number, number][] = [];
  for (let round = 0; round < rounds; round += 1) {
    times.push([await applyingPrefixes(1), await applyingPrefixes(prefixes)]);
  }
  const [one, all] = [times.map(([ms]) => ms), times.map(([, ms]) => ms)];
  console.log(`ms to set 1 prefix: ${shown(spread(one), 0)}; ${prefixes} prefixes: ${shown(spread(all), 0)}`);
}

const problem = planeLabProblem();
if (problem !== undefined) throw new Error(problem);
if (values.part !== 'changes') await throughput();
if (values.part !== 'ways') {
  console.log(changeTable(await addingPeers(peers)));
  await allPrefixes();
}
