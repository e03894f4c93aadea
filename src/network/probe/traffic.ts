import type { Clock } from '../../lib/clock.ts';

interface TrafficOptions {
  clock: Clock;
  /** Packets that were sent into the WireGuard link, by anybody. Undefined: not known. */
  linkPackets: () => number | undefined;
  /** How many of them are probes and answers to probes. */
  probePackets: () => number;
}

/** The count is read no more often. */
const READ_MS = 250;
/** How long after the last packet a tunnel still counts as in use. */
const LASTS_MS = 5000;

/** Whether anything but probes goes into the tunnels. While nothing does, nobody waits for what probes find out about sizes. */
export class Traffic {
  readonly #options: TrafficOptions;
  /** Packets of others until now. */
  #others: number | undefined;
  #link = 0;
  /** Monotonic. */
  #readAt = -Infinity;
  #seenAt = -Infinity;

  constructor(options: TrafficOptions) {
    this.#options = options;
  }

  /** True also where it is not known. */
  readonly isFlowing = (): boolean => {
    const now = this.#options.clock.monotonic();
    if (now - this.#readAt >= READ_MS) {
      this.#readAt = now;
      if (this.#look()) this.#seenAt = now;
    }
    return now - this.#seenAt < LASTS_MS;
  };

  #look(): boolean {
    const { linkPackets, probePackets } = this.#options;
    const link = linkPackets();
    const before = this.#others;
    if (link === undefined) {
      this.#others = undefined;
      return true;
    }
    const others = link - probePackets();
    // A link that was made anew counts anew.
    const isSame = before !== undefined && link >= this.#link;
    this.#link = link;
    this.#others = isSame ? Math.max(others, before) : others;
    return !isSame || others > before;
  }
}
