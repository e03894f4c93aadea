import type { Clock } from '../lib/clock.ts';
import { deepEqual } from '../lib/equality.ts';
import type { Candidate } from './source.ts';

/** Candidates by ClusterID, and who is told when one comes, changes or goes. */
export class CandidateSet {
  readonly #clock: Clock;
  readonly #listeners = new Set<(clusterID: string) => void>();
  #candidates: ReadonlyMap<string, Candidate> = new Map();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Those that have not expired. */
  values(): Candidate[] {
    const now = this.#clock.monotonic();
    return [...this.#candidates.values()].filter(({ expiresAt }) => expiresAt > now);
  }

  /** These and no others. A candidate that merely lives longer than it would have is no news. */
  replace(candidates: ReadonlyMap<string, Candidate>): void {
    const before = this.#candidates;
    this.#candidates = new Map(candidates);
    for (const clusterID of before.keys()) if (!candidates.has(clusterID)) this.#notify(clusterID);
    for (const [clusterID, candidate] of candidates) {
      const { expiresAt: _, ...known } = before.get(clusterID) ?? { expiresAt: 0 };
      const { expiresAt: __, ...said } = candidate;
      if (!deepEqual(known, said)) this.#notify(clusterID);
    }
  }

  onChange(listener: (clusterID: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #notify(clusterID: string): void {
    for (const listener of this.#listeners) listener(clusterID);
  }
}
