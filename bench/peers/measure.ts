/** What many peers cost, as plain numbers. */
import { setTimeout as sleep } from 'node:timers/promises';

import type { Program } from '../frame/program.ts';
import { difference, type RequestCounts, requestCounts } from '../pods/api-requests.ts';
import type { PeersBed } from './bed.ts';

export interface PeersFigures {
  readonly peers: number;
  readonly processes: number;
  /** From the start of the processes until all Nodes are Ready. */
  readonly readySeconds: number;
  readonly startCpuSeconds: number;
  /** At rest, of all processes together. */
  readonly privateMiB: number;
  readonly sockets: number;
  /** Of one core. */
  readonly restCpuPercent: number;
  readonly homeRequestsPerMinute: number;
  readonly foreignRequestsPerMinute: number;
  /** Until all Nodes show what all VirtualNodes were changed to at once; the change itself is in it. */
  readonly changeSeconds: number;
  readonly changeCpuSeconds: number;
  /** The most frequent requests at rest, for people; with those of the control planes. */
  readonly most: string;
}

interface Wanted {
  readonly peers: number;
  /** One process of role `peers`, or one of role `peer` for each. */
  readonly isShared: boolean;
  readonly restSeconds: number;
}

type Counts = Readonly<Record<'home' | 'foreign', RequestCounts>>;

/** Requests a minute of the control planes themselves, which are in all counts. */
export async function background(
  bed: PeersBed,
  seconds: number,
): Promise<Record<'home' | 'foreign', number>> {
  await bed.setPeers(0, true);
  await sleep(SETTLE_MS);
  return rest(bed, seconds);
}

export async function measure(
  bed: PeersBed,
  { peers, isShared, restSeconds }: Wanted,
  without: Readonly<Record<'home' | 'foreign', number>>,
): Promise<PeersFigures> {
  await bed.setPeers(peers, isShared);
  const began = performance.now();
  const programs = isShared
    ? [await bed.startPeers()]
    : await Promise.all(Array.from({ length: peers }, async (_none, peer) => bed.startPeer(peer)));
  try {
    await bed.allReady(peers, programs);
    const readySeconds = (performance.now() - began) / 1000;
    const startCpuSeconds = cpuSeconds(programs);
    // What follows the start has ended by then, such as the first events and the next renewal of each Lease.
    await sleep(SETTLE_MS);
    const before = cpuSeconds(programs);
    const requests = await rest(bed, restSeconds);
    const restCpuPercent = ((cpuSeconds(programs) - before) / restSeconds) * 100;
    const figures = programs.map(({ figures }) => figures);
    const from = { at: performance.now(), cpu: cpuSeconds(programs) };
    await bed.offer(peers, 99, isShared);
    return {
      peers,
      processes: programs.length,
      readySeconds,
      startCpuSeconds,
      privateMiB: sum(figures.map(({ privateMiB }) => privateMiB)),
      sockets: sum(figures.map(({ sockets }) => sockets)),
      restCpuPercent,
      homeRequestsPerMinute: requests.home - without.home,
      foreignRequestsPerMinute: requests.foreign - without.foreign,
      changeSeconds: (performance.now() - from.at) / 1000,
      changeCpuSeconds: cpuSeconds(programs) - from.cpu,
      most: requests.most,
    };
  } finally {
    await bed.stopAll();
  }
}

const MOST = 8;
const SETTLE_MS = 20_000;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const cpuSeconds = (programs: readonly Program[]): number =>
  sum(programs.map(({ figures }) => figures.cpuMs)) / 1000;

interface Rest extends Record<'home' | 'foreign', number> {
  most: string;
}

async function rest(bed: PeersBed, seconds: number): Promise<Rest> {
  const before = await counts(bed);
  await sleep(seconds * 1000);
  const after = await counts(bed);
  const perMinute = (cluster: 'home' | 'foreign'): number =>
    (sum([...difference(before[cluster], after[cluster]).values()]) * 60) / seconds;
  const most = (['home', 'foreign'] as const).map((cluster) => {
    const found = [...difference(before[cluster], after[cluster])]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, MOST);
    const each = found.map(([what, count]) => `${what} ${((count * 60) / seconds).toFixed(0)}`);
    return `${cluster}: ${each.join(', ')}`;
  });
  return { home: perMinute('home'), foreign: perMinute('foreign'), most: most.join('; ') };
}

const counts = async (bed: PeersBed): Promise<Counts> => ({
  home: await requestCounts(bed.cluster('home').api),
  foreign: await requestCounts(bed.cluster('foreign').api),
});
