/**
 * What the data plane costs: the same pods and hops over wireguard-go with our plans and over wireguard-go set up by
 * hand without any rule of ours, in turns; with and without translation; and how long a change takes with up to 128 peers.
 * Needs root; everything is in network namespaces of its own.
 *
 * Usage: node bench/network.ts [--rounds 5] [--seconds 2] [--peers 128]
 */
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';

import { PlaneLab, planeLabProblem, type PlaneCluster } from '../test/support/network/plane-lab.ts';
import type { PlanePod } from '../test/support/network/plane-node.ts';
import { join, offload, PlaneSide } from '../test/support/network/plane-tunnels.ts';
import { shown, slope, spread, table } from './frame/statistics.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    peers: { type: 'string', default: '128' },
  },
});
const [rounds, seconds, most] = [Number(values.rounds), Number(values.seconds), Number(values.peers)];
const IPERF_PORT = 5201;

interface Way {
  name: string;
  from: PlanePod;
  /** As the first sees it. */
  to: string;
}

interface Figures {
  mbits: number;
  rttMs: number;
}

/** Two clusters, one pod each, and how one reaches the other. */
async function pair(
  lab: PlaneLab,
  name: string,
  identical: boolean,
): Promise<Way & { clusters: PlaneCluster[] }> {
  const ranges = (number: number): { pods: string; external: string } =>
    identical
      ? { pods: '10.244.0.0/16', external: '10.70.0.0/20' }
      : { pods: `10.${number}.0.0/16`, external: `10.${70 + number}.0.0/20` };
  const [one, other] = [await lab.cluster(`${name}1`, ranges(1)), await lab.cluster(`${name}2`, ranges(2))];
  const [from, target] = [await one.pod(), await other.pod()];
  target.spawn(['iperf3', '-s', '-p', String(IPERF_PORT)]);
  join(one.side, other.side);
  offload(one.side, other.side, target.address);
  return { name, from, to: one.side.sees(other.side, target.address), clusters: [one, other] };
}

/**
 * WireGuard and routes of the plan and nothing else of ours. The rules of the CNI and of kube-proxy stay, as on any
 * node; only the peer's pods are exempt from masquerading, or there would be no answer.
 */
async function byHand(one: PlaneCluster, other: PlaneCluster): Promise<void> {
  for (const [cluster, peer] of [
    [one, other],
    [other, one],
  ] as const) {
    const node = cluster.gatewayNode;
    const { privateKey } = cluster.gatewayPlan().wireguard ?? { privateKey: '' };
    const pods = peer.side.network.pods.join(',');
    const endpoint = ['endpoint', peer.side.endpoint];
    // wg opens the file anew, which it can do with a pipe only.
    const set = `cat | wg set ${node.link} listen-port 51820 private-key /dev/stdin`;
    await node.run(['sh', '-ec', set], privateKey);
    await node.run(['wg', 'set', node.link, 'peer', peer.side.publicKey, ...endpoint, 'allowed-ips', pods]);
    await node.ip(`link set ${node.link} mtu 1420 up`, `route add ${pods} dev ${node.link}`);
    for (const way of ['saddr', 'daddr'])
      await node.shell(`nft insert rule ip cni post ip ${way} ${pods} return`);
  }
}

async function measure({ from, to }: Way): Promise<Figures> {
  const printed = await from.run(['iperf3', '-J', '-t', String(seconds), '-c', to, '-p', String(IPERF_PORT)]);
  const { end } = JSON.parse(printed) as { end: { sum_received: { bits_per_second: number } } };
  const pings = await from.run(['busybox', 'ping', '-c', '400', '-i', '0.005', to]);
  const times = [...pings.matchAll(/time=([\d.]+)/g)].map(([, time]) => Number(time));
  return { mbits: end.sum_received.bits_per_second / 1e6, rttMs: spread(times).median };
}

/** Each round begins with another way, so that what the machine does besides meets all. */
async function measureAll(ways: readonly Way[], round: number, figures: readonly Figures[][]): Promise<void> {
  for (const [index, way] of [...ways.entries(), ...ways.entries()]
    .slice(round % ways.length)
    .slice(0, ways.length)) {
    const found = await measure(way);
    if (round > 0) figures[index]?.push(found);
  }
}

async function throughput(): Promise<void> {
  const lab = await PlaneLab.up();
  try {
    const hand = await pair(lab, 'h', false);
    const plain = await pair(lab, 'p', false);
    const translated = await pair(lab, 't', true);
    await byHand(...(hand.clusters as [PlaneCluster, PlaneCluster]));
    for (const cluster of [...plain.clusters, ...translated.clusters]) await cluster.apply();
    const ways: Way[] = [
      { ...hand, name: 'by hand' },
      { ...plain, name: 'planned, nothing rewritten' },
      { ...translated, name: 'planned, translated' },
    ];
    const figures = ways.map((): Figures[] => []);
    // The first round warms up.
    for (let round = 0; round <= rounds; round += 1) await measureAll(ways, round, figures);
    console.log(comparison(ways, figures));
  } finally {
    await lab.down();
  }
}

function comparison(ways: readonly Way[], figures: readonly Figures[][]): string {
  const [base = [], plain = []] = figures;
  const ratio = (found: readonly Figures[], to: readonly Figures[], what: keyof Figures): string =>
    shown(spread(found.map((figure, round) => figure[what] / (to[round]?.[what] ?? Number.NaN))), 2);
  const rows = ways.map(({ name }, index) => {
    const found = figures[index] ?? [];
    return [
      name,
      shown(spread(found.map(({ mbits }) => mbits)), 0),
      ratio(found, base, 'mbits'),
      ratio(found, plain, 'mbits'),
      shown(spread(found.map(({ rttMs }) => rttMs)), 2),
      ratio(found, base, 'rttMs'),
    ];
  });
  return table([['', 'Mbit/s', 'of by hand', 'of not rewritten', 'RTT ms', 'of by hand'], ...rows]);
}

/** A far end that is only keys and prefixes; all have the same. */
function simulated(number: number): PlaneSide {
  const key = execFileSync('wg', ['genkey'], { encoding: 'utf8' });
  const publicKey = execFileSync('wg', ['pubkey'], { encoding: 'utf8', input: key }).trim();
  const id = `${'abcdefghijklmnop'[number >> 4]}${'abcdefghijklmnop'[number & 15]}`.padEnd(26, 's');
  return new PlaneSide(
    id,
    {
      pods: ['10.244.0.0/18'],
      external: '10.70.0.0/24',
      gatewayAddress: '10.70.0.1',
      pools: [],
      nodes: [],
      vxlan: { vni: 1, port: 1 },
    },
    publicKey,
    `198.51.100.${number}:51820`,
  );
}

async function peers(): Promise<void> {
  const lab = await PlaneLab.up();
  try {
    const home = await lab.cluster('h', { external: '10.70.0.0/24' });
    const node = home.gatewayNode;
    await home.apply();
    const times: [number, number][] = [];
    for (let number = 1; number <= most; number += 1) {
      const peer = simulated(number - 1);
      join(home.side, peer);
      home.side.relation(peer).abroad.add(home.side.sees(peer, '10.244.0.9'));
      const isLast = number === most;
      const before = isLast ? await node.handles() : '';
      const began = performance.now();
      await node.set(home.gatewayPlan());
      times.push([number, performance.now() - began]);
      if (isLast) console.log(touched(before, await node.handles(), peer.id));
    }
    console.log(changeTable(times));
  } finally {
    await lab.down();
  }
}

/** Rules and chains keep their handles for as long as nobody touches them. */
function touched(before: string, after: string, id: string): string {
  const known = new Set(handles(before));
  const fresh = handles(after).filter((line) => !known.has(line));
  const others = fresh.filter((line) => !line.includes(id));
  return [
    `adding peer ${most}: ${fresh.length} new chains, sets and rules beside ${known.size}; not the new peer's: ${others.length}`,
    ...others.slice(0, 10),
  ].join('\n');
}

/** Each line with a handle, below the name of its chain. */
function handles(listed: string): string[] {
  let chain = '';
  return listed.split('\n').flatMap((line) => {
    if (/^\t(?:chain|set|map) /.test(line)) chain = line.trim();
    return line.includes('# handle') ? [`${chain} ${line.trim()}`] : [];
  });
}

function changeTable(times: readonly (readonly [number, number])[]): string {
  const tenth = Math.ceil(times.length / 8);
  const rows = Array.from({ length: Math.ceil(times.length / tenth) }, (_, index) => {
    const part = times.slice(index * tenth, (index + 1) * tenth);
    return [`${part[0]?.[0]} to ${part.at(-1)?.[0]}`, shown(spread(part.map(([, ms]) => ms)), 0)];
  });
  return `${table([['peers', 'ms to add one'], ...rows])}${slope(times).toFixed(2)} ms more for each peer`;
}

const problem = planeLabProblem();
if (problem !== undefined) throw new Error(problem);
await throughput();
await peers();
