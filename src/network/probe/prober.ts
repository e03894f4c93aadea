import { type Random, systemRandom } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import { PeerProbe, type ProbeResult, type ProbeTarget } from './peer-probe.ts';
import { ProbeClient } from './probe-client.ts';
import type { ProbeSockets } from './sockets.ts';

export interface ProberOptions {
  clock: Clock;
  sockets: ProbeSockets;
  /** Largest packet of the WireGuard link, in bytes. */
  mtu: number;
  /** What the kernel knows of the path to an endpoint; see `HostNetwork.pathMtu`. */
  pathMtu: (address: string) => Promise<number | undefined>;
  /** Whether anything but probes goes into the tunnels; see traffic.ts. Default: always. */
  isFlowing?: () => boolean;
  /** Between two probes of a peer. Default 1000. */
  intervalMs?: number;
  random?: Random;
}

const INTERVAL_MS = 1000;
/** How often the kernel's path MTU is read while packets flow. A flow that has lost a batch must not wait long: its own timers grow, and so would the gap. */
const LOOK = { leastMs: 250, perPeerMs: 8 };

/** Measures the way through the tunnels: whether a peer's gateway answers, how fast, and packets of which size. */
export class Prober implements Component {
  readonly name = 'prober';
  readonly #options: ProberOptions;
  readonly #asker: ProbeClient;
  readonly #probes = new Map<string, PeerProbe>();
  readonly #listeners = new Listeners<[clusterID: string]>();
  /** Calls back when `alive` or `mtu` of a peer has changed. */
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#listeners.add;
  readonly #misses = new Listeners<[clusterID: string]>();
  /** Calls back when a peer that has answered does not. */
  readonly onMiss: Listeners<[clusterID: string]>['add'] = this.#misses.add;
  #running = false;

  constructor(options: ProberOptions) {
    this.#options = options;
    this.#asker = new ProbeClient(options.clock, options.sockets);
  }

  start(_signal: AbortSignal): void {
    this.#running = true;
    for (const probe of this.#probes.values()) probe.start();
  }

  stop(): void {
    this.#running = false;
    this.setTargets([]);
  }

  /** Takes all targets. A peer that is not among them any more is forgotten. */
  setTargets(targets: readonly ProbeTarget[]): void {
    const wanted = new Map(targets.map((target) => [target.clusterID, target]));
    for (const [clusterID, probe] of this.#probes) {
      if (isSameGateway(wanted.get(clusterID), probe.target)) continue;
      probe.stop();
      this.#probes.delete(clusterID);
    }
    for (const target of targets) this.#setTarget(target);
    this.#asker.keep(targets);
  }

  /** A probe has come from that address; `isHeard`: its sender had an answer to the one before. */
  readonly asked = (address: string, isHeard: boolean): void => {
    for (const probe of this.#probes.values()) if (probe.target.address === address) probe.asked(isHeard);
  };

  /** Results of the peers of which it is known whether they answer. After a start that takes the time of the first probes. */
  results(): ReadonlyMap<string, ProbeResult> {
    const results = new Map<string, ProbeResult>();
    for (const [clusterID, probe] of this.#probes) {
      const result = probe.result();
      if (result !== undefined) results.set(clusterID, result);
    }
    return results;
  }

  /** Whether every peer has answered its last probe. */
  get isCalm(): boolean {
    return [...this.#probes.values()].every(({ isCalm }) => isCalm);
  }

  #setTarget(target: ProbeTarget): void {
    const known = this.#probes.get(target.clusterID);
    if (known !== undefined) return known.changed(target);
    const { clock, mtu, pathMtu, intervalMs = INTERVAL_MS, random = systemRandom } = this.#options;
    const { isFlowing = () => true } = this.#options;
    const probe = new PeerProbe(target, {
      clock,
      asker: this.#asker,
      mtu,
      pathMtu,
      intervalMs,
      random,
      lookMs: () => Math.max(LOOK.leastMs, LOOK.perPeerMs * this.#probes.size),
      isFlowing,
      changed: () => this.#listeners.tell(target.clusterID),
      missed: () => this.#misses.tell(target.clusterID),
    });
    this.#probes.set(target.clusterID, probe);
    if (this.#running) probe.start();
  }
}

const isSameGateway = (a: ProbeTarget | undefined, b: ProbeTarget): boolean =>
  a?.address === b.address && a.source === b.source && a.as === b.as;
