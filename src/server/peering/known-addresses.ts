import { isIP } from 'node:net';

import type { Clock } from '../../lib/clock.ts';
import { splitEndpoint } from '../../lib/endpoint.ts';
import { remember } from '../../lib/remember.ts';

/** Where a cluster is, as `host:port`. */
export interface NamedEndpoint {
  readonly clusterID: string;
  readonly endpoint: string;
}

interface KnownAddressesOptions {
  clock: Clock;
  /** Clusters that we deal with. */
  isKnown: (clusterID: string) => boolean;
  /** What is known of where clusters are, by something that no stranger can say. */
  named: () => Iterable<NamedEndpoint>;
}

/** A cluster that comes from more addresses than these is behind something that changes them. */
const MOST_OF_ONE = 8;
const MOST_CALLERS = 512;
/** It is asked for each connection, and strangers decide how many there are. */
const KEEP_MS = 2_000;

/** Addresses of clusters that we deal with: those that were named, and those from which they have proved who they are. */
export class KnownAddresses {
  readonly #options: KnownAddressesOptions;
  /** By ClusterID, the latest at the end. */
  readonly #proved = new Map<string, readonly string[]>();
  #addresses: ReadonlySet<string> = new Set();
  #until = -Infinity;

  constructor(options: KnownAddressesOptions) {
    this.#options = options;
  }

  learn(clusterID: string, address: string): void {
    const known = this.#proved.get(clusterID) ?? [];
    if (known.at(-1) === address) return;
    const others = known.filter((other) => other !== address);
    remember(this.#proved, clusterID, [...others, address].slice(-MOST_OF_ONE), MOST_CALLERS);
    this.#until = -Infinity;
  }

  has(address: string): boolean {
    const now = this.#options.clock.monotonic();
    if (now >= this.#until) {
      this.#addresses = this.#collect();
      this.#until = now + KEEP_MS;
    }
    return this.#addresses.has(address);
  }

  #collect(): Set<string> {
    const { isKnown, named } = this.#options;
    const found = new Set<string>();
    for (const [clusterID, addresses] of this.#proved) {
      if (isKnown(clusterID)) addresses.forEach((address) => found.add(address));
    }
    for (const { clusterID, endpoint } of named()) {
      const host = splitEndpoint(endpoint)?.host ?? '';
      // A name would have to be resolved; its address is learned when that cluster comes.
      if (isIP(host) !== 0 && isKnown(clusterID)) found.add(host);
    }
    return found;
  }
}
