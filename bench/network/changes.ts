/** What one change costs a gateway that has many peers. */
import { PlaneLab, type PlaneVersion } from '../../test/support/network/plane-lab.ts';
import { join } from '../../test/support/network/plane-tunnels.ts';
import { simulated, withPrefixes } from './ways.ts';

export interface Change {
  /** That the gateway has after it. */
  readonly peers: number;
  /** Until the host is as planned, with the making of the plan. */
  readonly ms: number;
  /** Of the plan alone. */
  readonly planMs: number;
  /** CPU time of the host's side, with nft; in steps of 10 ms, so only a mean of several says something. */
  readonly cpuMs: number;
}

export interface Changes {
  readonly changes: readonly Change[];
  /** Chains, sets and rules of the last change that are not the new peer's. */
  readonly others: readonly string[];
}

export interface ChangesOptions {
  readonly signal: AbortSignal;
  /** Default: ours. */
  readonly version?: PlaneVersion | undefined;
}

/** One peer more with each change. */
export async function addingPeers(most: number, { signal, version }: ChangesOptions): Promise<Changes> {
  const lab = await PlaneLab.up();
  try {
    const home = await lab.cluster('h', { external: '10.70.0.0/24', ...(version && { version }) });
    const node = home.gatewayNode;
    const bare = await node.timedSet(home.gatewayPlan());
    let used = bare.cpuMs;
    const changes: Change[] = [];
    for (let peers = 1; ; peers += 1) {
      signal.throwIfAborted();
      const peer = simulated(peers - 1);
      join(home.side, peer);
      home.side.relation(peer).abroad.add(home.side.sees(peer, '10.244.0.9'));
      const before = peers === most ? await node.handles() : '';
      const began = performance.now();
      const plan = home.gatewayPlan();
      const planMs = performance.now() - began;
      const { ms, cpuMs } = await node.timedSet(plan);
      changes.push({ peers, ms: planMs + ms, planMs, cpuMs: cpuMs - used });
      used = cpuMs;
      if (peers === most) return { changes, others: touched(before, await node.handles(), peer.id) };
    }
  } finally {
    await lab.down();
  }
}

/** How long a gateway takes from nothing to so many prefixes, in milliseconds. */
export async function applyingPrefixes(count: number): Promise<number> {
  const lab = await PlaneLab.up();
  try {
    const home = await lab.cluster('h', { external: '10.70.0.0/24' });
    await home.apply();
    for (const peer of withPrefixes(count)) join(home.side, peer);
    const began = performance.now();
    const plan = home.gatewayPlan();
    const planMs = performance.now() - began;
    return planMs + (await home.gatewayNode.timedSet(plan)).ms;
  } finally {
    await lab.down();
  }
}

/** Rules and chains keep their handles for as long as nobody touches them. */
function touched(before: string, after: string, id: string): string[] {
  const known = new Set(handles(before));
  return handles(after).filter((line) => !known.has(line) && !line.includes(id));
}

/** Each line with a handle, below the name of its chain. */
function handles(listed: string): string[] {
  let chain = '';
  return listed.split('\n').flatMap((line) => {
    if (/^\t(?:chain|set|map) /.test(line)) chain = line.trim();
    return line.includes('# handle') ? [`${chain} ${line.trim()}`] : [];
  });
}
