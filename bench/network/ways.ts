/** Ways from one pod to another, over wireguard-go and without it, and what one look at a way measures. */
import { generateKey } from '../../src/network/host/wireguard/wireguard.ts';
import type { PlaneCluster, PlaneLab, PlaneVersion } from '../../test/support/network/plane-lab.ts';
import type { PlanePod } from '../../test/support/network/plane-node.ts';
import { join, offload, PlaneSide } from '../../test/support/network/plane-tunnels.ts';
import { cpuMs, processFigures } from '../frame/process-figures.ts';
import { median } from '../frame/statistics.ts';

const IPERF_PORT = 5201;
/** Of each way, one every 5 ms; then it is the turn of the next. */
const PINGS = 40;
/** Both in a round. What the machine does besides changes from second to second, and a way through a tunnel costs a few percent only. */
const PING_TURNS = 15;
const TRANSFER_TURNS = 3;

export interface Way {
  readonly name: string;
  readonly from: PlanePod;
  /** As `from` sees it. */
  readonly to: string;
  readonly clusters: readonly [PlaneCluster, PlaneCluster];
  /** Without any tunnel. */
  readonly plain?: boolean;
}

/** One look at one way. */
export interface WayFigures {
  readonly mbits: number;
  readonly rttMs: number;
  /**
   * CPU time of both wireguard-go and of both ends of the connection, with what the kernel did for them, for each Gbit
   * that arrived. Threads of the kernel are left out: they also work for others.
   */
  readonly cpuMsPerGbit: number;
  /** The larger of both wireguard-go after the transfer; 0 where there are none. */
  readonly rssMiB: number;
}

export interface Wish {
  readonly name: string;
  /** Both have the same ranges, so that all addresses are translated. */
  readonly identical?: boolean;
  /** Environment of wireguard-go. */
  readonly wireguard?: Readonly<Record<string, string>>;
  /** Default: ours. */
  readonly version?: PlaneVersion;
  readonly set: (...clusters: readonly [PlaneCluster, PlaneCluster]) => Promise<void>;
  readonly plain?: boolean;
}

let pairs = 0;

/** Two clusters with one pod each, joined by the wish. */
export async function wayOf(lab: PlaneLab, wish: Wish): Promise<Way> {
  const letter = 'abcdefghijklmnop'[pairs];
  const number = pairs * 2;
  pairs += 1;
  const { wireguard, version } = wish;
  const more = { ...(wireguard && { wireguard }), ...(version && { version }) };
  const ranges = (index: number): { pods: string; external: string } =>
    wish.identical === true
      ? { pods: '10.244.0.0/16', external: '10.70.0.0/20' }
      : { pods: `10.${1 + number + index}.0.0/16`, external: `10.${70 + number + index}.0.0/20` };
  const one = await lab.cluster(`${letter}1`, { ...ranges(0), ...more });
  const other = await lab.cluster(`${letter}2`, { ...ranges(1), ...more });
  const [from, target] = [await one.pod(), await other.pod()];
  target.spawn(['iperf3', '-s', '-p', String(IPERF_PORT)]);
  join(one.side, other.side);
  offload(one.side, other.side, target.address);
  await wish.set(one, other);
  const to = one.side.sees(other.side, target.address);
  return { name: wish.name, from, to, clusters: [one, other], plain: wish.plain === true };
}

/**
 * WireGuard and routes of the plan and nothing else of ours. The rules of the CNI and of kube-proxy stay, as on any
 * node; only the peer's pods are exempt from masquerading, or there would be no answer.
 */
export async function byHand(one: PlaneCluster, other: PlaneCluster): Promise<void> {
  for (const [cluster, peer] of bothWays(one, other)) {
    const node = cluster.gatewayNode;
    const { privateKey } = cluster.gatewayPlan().wireguard ?? { privateKey: '' };
    const pods = peer.side.network.pods.join(',');
    const endpoint = ['endpoint', peer.side.endpoint];
    // wg opens the file anew, which it can do with a pipe only.
    const set = `cat | wg set ${node.link} listen-port 51820 private-key /dev/stdin`;
    await node.run(['sh', '-ec', set], privateKey);
    await node.run(['wg', 'set', node.link, 'peer', peer.side.publicKey, ...endpoint, 'allowed-ips', pods]);
    await node.ip(`link set ${node.link} mtu 1420 up`, `route add ${pods} dev ${node.link}`);
    await withoutMasquerade(cluster, pods);
  }
}

/** The ceiling: the same hops, from node to node in clear. */
export async function withoutTunnel(one: PlaneCluster, other: PlaneCluster): Promise<void> {
  for (const [cluster, peer] of bothWays(one, other)) {
    const pods = peer.side.network.pods.join(',');
    await cluster.gatewayNode.ip(`route add ${pods} via ${peer.gatewayNode.facts.address}`);
    await withoutMasquerade(cluster, pods);
  }
}

export async function planned(one: PlaneCluster, other: PlaneCluster): Promise<void> {
  for (const cluster of [one, other]) await cluster.apply();
}

/** As planned, beside further peers that have so many prefixes together. */
export const plannedBeside =
  (prefixes: number) =>
  async (one: PlaneCluster, other: PlaneCluster): Promise<void> => {
    for (const cluster of [one, other]) {
      for (const peer of withPrefixes(prefixes)) join(cluster.side, peer);
      await cluster.apply();
    }
  };

/** A peer takes at most so many prefixes of another. */
const MOST_OF_A_PEER = 250;

/** Peers that are only keys and prefixes, all different from each other. */
export function withPrefixes(count: number): PlaneSide[] {
  const all = Array.from({ length: count }, (_, index) => `10.${200 + (index >> 8)}.${index & 255}.0/24`);
  return Array.from({ length: Math.ceil(count / MOST_OF_A_PEER) }, (_, index) =>
    simulated(240 + index, all.slice(index * MOST_OF_A_PEER, (index + 1) * MOST_OF_A_PEER)),
  );
}

/** A byte as a part of a ClusterID, which has few digits. */
export const lettersOf = (number: number): string =>
  `${'abcdefghijklmnop'[number >> 4]}${'abcdefghijklmnop'[number & 15]}`;

/** A far end that is only a key and prefixes. */
export function simulated(number: number, pods: string[] = ['10.244.0.0/18']): PlaneSide {
  const id = lettersOf(number).padEnd(26, 's');
  const network = {
    pods,
    external: '10.70.0.0/24',
    gatewayAddress: '10.70.0.1',
    pools: [],
    nodes: [],
    vxlan: { vni: 1, port: 1 },
  };
  return new PlaneSide(id, network, generateKey().publicKey, `198.51.100.${number}:51820`);
}

const bothWays = (one: PlaneCluster, other: PlaneCluster): [PlaneCluster, PlaneCluster][] => [
  [one, other],
  [other, one],
];

async function withoutMasquerade({ gatewayNode }: PlaneCluster, pods: string): Promise<void> {
  for (const way of ['saddr', 'daddr'])
    await gatewayNode.shell(`nft insert rule ip cni post ip ${way} ${pods} return`);
}

interface Iperf {
  end: {
    sum_received: { bytes: number; seconds: number };
    cpu_utilization_percent: { host_total: number; remote_total: number };
  };
}

interface Transfer {
  bytes: number;
  seconds: number;
  /** Of all that took part. */
  cpuMs: number;
  /** The larger of both wireguard-go. */
  rssMiB: number;
}

async function transfer(way: Way, seconds: number): Promise<Transfer> {
  const { from, to } = way;
  const tunnels = way.plain === true ? [] : way.clusters.map(({ gatewayNode }) => gatewayNode.wireguardPid);
  const used = (): number => tunnels.reduce((sum, pid) => sum + cpuMs(pid), 0);
  const before = used();
  const printed = await from.run(['iperf3', '-J', '-t', String(seconds), '-c', to, '-p', String(IPERF_PORT)]);
  const inTunnel = used() - before;
  const { sum_received: received, cpu_utilization_percent: ends } = (JSON.parse(printed) as Iperf).end;
  const inEnds = (ends.host_total + ends.remote_total) * 10 * received.seconds;
  return {
    bytes: received.bytes,
    seconds: received.seconds,
    cpuMs: inTunnel + inEnds,
    rssMiB: Math.max(0, ...tunnels.map((pid) => processFigures(pid).rssMiB)),
  };
}

async function pings({ from, to }: Way): Promise<number[]> {
  const printed = await from.run(['busybox', 'ping', '-c', String(PINGS), '-i', '0.005', to]);
  return [...printed.matchAll(/time=([\d.]+)/g)].map(([, time]) => Number(time));
}

/**
 * So many rounds, and one before them that warms up. Each has several turns, which begin with another way each, so that what the machine
 * does besides meets all. Resolves to the figures of each way, by round.
 */
export async function inTurns(
  ways: readonly Way[],
  { rounds, seconds, signal }: { rounds: number; seconds: number; signal: AbortSignal },
): Promise<WayFigures[][]> {
  const figures = ways.map((): WayFigures[] => []);
  for (let round = 0; round <= rounds; round += 1) {
    const from = { round, signal };
    const transfers = await turns(ways, TRANSFER_TURNS, from, async (way) => transfer(way, seconds));
    const times = await turns(ways, PING_TURNS, from, pings);
    if (round === 0) continue;
    for (const [index, found] of transfers.entries())
      figures[index]?.push(figuresOf(found, times[index]?.flat() ?? []));
  }
  return figures;
}

function figuresOf(transfers: readonly Transfer[], times: readonly number[]): WayFigures {
  const sum = (of: (one: Transfer) => number): number => transfers.reduce((total, one) => total + of(one), 0);
  const bits = sum(({ bytes }) => bytes) * 8;
  return {
    mbits: bits / sum(({ seconds }) => seconds) / 1e6,
    rttMs: median(times),
    cpuMsPerGbit: (sum(({ cpuMs }) => cpuMs) * 1e9) / bits,
    rssMiB: Math.max(...transfers.map(({ rssMiB }) => rssMiB)),
  };
}

/** So many looks at each way, in the order of the ways. */
async function turns<T>(
  ways: readonly Way[],
  count: number,
  { round, signal }: { round: number; signal: AbortSignal },
  look: (way: Way) => Promise<T>,
): Promise<T[][]> {
  const found = ways.map((): T[] => []);
  for (let turn = 0; turn < count; turn += 1) {
    const first = (round + turn) % ways.length;
    for (const index of [...ways.keys().drop(first), ...ways.keys().take(first)]) {
      signal.throwIfAborted();
      const way = ways[index];
      if (way !== undefined) found[index]?.push(await look(way));
    }
  }
  return found;
}
