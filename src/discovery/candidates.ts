import type { PeeringWish } from '../api/foreign-cluster.ts';
import type { DiscoverySource } from '../api/peer-selector.ts';
import type { Clock } from '../lib/clock.ts';
import { deepEqual } from '../lib/equality.ts';
import type { Component } from '../lib/lifecycle.ts';
import { Listeners } from '../lib/listeners.ts';

/**
 * What an announcement says of a cluster, by whichever way it came. It is only a hint: TLS proves the ID when the endpoint is dialled.
 */
export interface Candidate {
  clusterID: string;
  clusterName?: string;
  /** `host:port`, `[v6]:port`; the most promising first. */
  endpoints: readonly string[];
  /** Protocol versions of the peering link. */
  protocols: readonly number[];
  /** When the candidate no longer counts, in milliseconds of the monotonic clock. */
  expiresAt: number;
  /** WAN: the domain that listed it. */
  searchDomain?: string;
  /** WAN: what that SearchDomain wants of clusters that are new. */
  outgoing?: PeeringWish;
}

/** One way of finding clusters. On the LAN it also announces this cluster. */
export interface CandidateSource extends Component {
  readonly source: DiscoverySource;
  /** What is seen now, without candidates that have expired or were withdrawn, and without this cluster. */
  candidates(): Iterable<Candidate>;
  /** Calls back with the ID of each candidate that came, changed or went. */
  onChange(listener: (clusterID: string) => void): () => void;
}

/** What we say of this cluster: nothing secret, and no more than is needed to dial it. */
export interface Announcement {
  clusterID: string;
  clusterName: string;
  /** Port of the peering endpoint. */
  port: number;
  protocols: readonly number[];
}

/** DNS-SD service type (RFC 6763, section 7). */
export const SERVICE_TYPE = '_tributary._tcp';

/** Candidates by ClusterID. Tells listeners when one comes, changes or goes. */
export class CandidateSet {
  readonly #clock: Clock;
  readonly #listeners = new Listeners<[clusterID: string]>();
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#listeners.add;
  #candidates: ReadonlyMap<string, Candidate> = new Map();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Candidates that have not expired. */
  values(): Candidate[] {
    const now = this.#clock.monotonic();
    return [...this.#candidates.values()].filter(({ expiresAt }) => expiresAt > now);
  }

  /** Keeps these candidates and no others. Listeners do not hear of one that only expires later than before. */
  replace(candidates: ReadonlyMap<string, Candidate>): void {
    const before = this.#candidates;
    this.#candidates = new Map(candidates);
    for (const clusterID of before.keys()) if (!candidates.has(clusterID)) this.#listeners.tell(clusterID);
    for (const [clusterID, candidate] of candidates) {
      const { expiresAt: _, ...known } = before.get(clusterID) ?? { expiresAt: 0 };
      const { expiresAt: __, ...said } = candidate;
      if (!deepEqual(known, said)) this.#listeners.tell(clusterID);
    }
  }
}
