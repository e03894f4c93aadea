import type { SearchDomain } from '../../api/search-domain.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { Candidate } from '../source.ts';
import type { DomainLook } from './look.ts';
import { nameKey } from './message.ts';

/** Limits of what a zone's TTLs can make us do. */
export interface Pace {
  /** A TTL below this counts as this: a zone must not have us ask without pause. */
  minTtlMs: number;
  /** Longest time between two looks where the SearchDomain names none. */
  intervalMs: number;
}
export const DEFAULT_PACE: Pace = { minTtlMs: 10_000, intervalMs: 300_000 };

/** Looked again when so much of a TTL is over, so that what stays listed never expires meanwhile. */
const TTL_SHARE = 0.8;
/** A cluster lives for so many of the shortest TTLs at least: a zone with TTL 0 must not have it blink. */
const SHORTEST_LIFE = 3;

/** What is known from one SearchDomain: pure memory, told of each look. */
export class BrowsedDomain {
  readonly #name: string;
  readonly #pace: Pace;
  #spec: SearchDomain['spec'] | undefined;
  #instances = new Map<string, Candidate>();
  #dueAt = -Infinity;

  constructor(name: string, pace: Pace) {
    this.#name = name;
    this.#pace = pace;
  }

  /** Where the spec is another one, a look is due; with another domain or other servers nothing known holds. */
  asked(spec: SearchDomain['spec']): void {
    if (deepEqual(spec, this.#spec)) return;
    const { domain, servers } = this.#spec ?? {};
    if (!deepEqual({ domain, servers }, { domain: spec.domain, servers: spec.servers }))
      this.#instances = new Map();
    this.#dueAt = -Infinity;
    this.#spec = spec;
  }

  dueInMs(now: number): number {
    return Math.max(0, this.#dueAt - now);
  }

  /** Takes what a look at `now` found: what is no longer listed is gone, what was not answered stays till its TTL. */
  looked(
    look: DomainLook,
    { now, intervalMs = this.#pace.intervalMs }: { now: number; intervalMs?: number },
  ): void {
    const { minTtlMs } = this.#pace;
    const next = new Map<string, Candidate>();
    const ttls = [look.ttlSeconds ?? Infinity];
    for (const [instance, found] of look.instances) {
      const known = this.#instances.get(instance);
      if (found.kind === 'unanswered' && known !== undefined) next.set(instance, known);
      if (found.kind === 'unanswered') ttls.push(0);
      if (found.kind !== 'found') continue;
      ttls.push(found.ttlSeconds);
      const ttlMs = Math.min(found.ttlSeconds, look.ttlSeconds ?? Infinity) * 1000;
      const expiresAt = now + Math.max(minTtlMs * SHORTEST_LIFE, ttlMs);
      next.set(instance, { ...found.cluster, expiresAt, searchDomain: this.#name });
    }
    this.#instances = next;
    const ttlMs = Math.max(minTtlMs, Math.min(...ttls) * 1000);
    this.#dueAt = now + Math.min(intervalMs, ttlMs * TTL_SHARE);
  }

  /** By ClusterID, those that have not expired; of two instances for one cluster the first in the order of names. */
  candidates(now: number): Map<string, Candidate> {
    const byCluster = new Map<string, Candidate>();
    for (const [, candidate] of [...this.#instances].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      if (candidate.expiresAt <= now || byCluster.has(candidate.clusterID)) continue;
      byCluster.set(candidate.clusterID, candidate);
    }
    return byCluster;
  }

  /** When the next of them expires; Infinity where there is none. */
  nextExpiry(now: number): number {
    return Math.min(...[...this.candidates(now).values()].map(({ expiresAt }) => expiresAt));
  }
}

/** The domain as a resolver takes it. */
export const domainName = ({ domain }: SearchDomain['spec']): string => nameKey(domain.trim());
