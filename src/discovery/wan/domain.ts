import { timestamp, type WantedCondition, withCondition } from '../../api/conditions.ts';
import {
  SEARCH_DOMAIN_CONDITIONS,
  SEARCH_DOMAIN_REASONS,
  type SearchDomain,
  type SearchDomainStatus,
} from '../../api/search-domain.ts';
import type { Candidate } from '../candidates.ts';
import { deepEqual } from '../../lib/equality.ts';
import { type DomainLook, MAX_INSTANCES } from './look.ts';
import { nameKey } from './message.ts';

/** Limits of what a zone's TTLs can make us do. */
export interface Pace {
  /** A TTL below this counts as this: a zone must not have us ask without pause. */
  minTtlMs: number;
  /** Longest time between two looks where the SearchDomain names none. */
  intervalMs: number;
}
export const DEFAULT_PACE: Pace = { minTtlMs: 10_000, intervalMs: 300_000 };

/** The share of a TTL after which we look again, so that what stays listed never expires meanwhile. */
const TTL_SHARE = 0.8;
/** A cluster lives for at least so many of the shortest TTLs: with TTL 0 in the zone it must not come and go. */
const SHORTEST_LIFE = 3;

/** `lastLook` alone is written no more often than this. */
const LAST_LOOK_MS = 60_000;
const SHOWN = 3;

/** What is known from one SearchDomain. It does no I/O, and is told of each look. */
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

  /** A look is due when the spec has changed. With another domain or other servers, all that was known is dropped. */
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

  /** Takes what a look at `now` found. What is no longer listed is gone; what was not answered stays until its TTL has passed. */
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

  /** Candidates that have not expired, by ClusterID. Of two instances for one cluster, the first by name counts. */
  candidates(now: number): Map<string, Candidate> {
    const byCluster = new Map<string, Candidate>();
    for (const [, candidate] of [...this.#instances].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      if (candidate.expiresAt <= now || byCluster.has(candidate.clusterID)) continue;
      byCluster.set(candidate.clusterID, candidate);
    }
    return byCluster;
  }

  /** When the next candidate expires. Infinity where there is none. */
  nextExpiry(now: number): number {
    return Math.min(...[...this.candidates(now).values()].map(({ expiresAt }) => expiresAt));
  }
}

/** The domain as a resolver takes it. */
export const domainName = ({ domain }: SearchDomain['spec']): string => nameKey(domain.trim());

/** The result of a look at a domain and its time (wall clock): a list, or why there is none. */
export type LookResult = { at: number } & ({ look: DomainLook } | { failure: string; isInvalid: boolean });

/** The status to write. It is the status that is there, where no difference is worth a write. */
export function domainStatus(
  { status = {}, metadata: { generation } }: SearchDomain,
  result: LookResult,
  clusters: readonly string[],
): SearchDomainStatus {
  const ofGeneration = generation === undefined ? {} : { observedGeneration: generation };
  const condition = { ...browsed(result), type: SEARCH_DOMAIN_CONDITIONS.browsed, ...ofGeneration };
  const next: SearchDomainStatus = {
    ...status,
    ...ofGeneration,
    clusters: clusters.toSorted(),
    conditions: [...withCondition(status.conditions ?? [], condition, result.at)],
  };
  if ('failure' in result) return next;
  const age = result.at - Date.parse(status.lastLook ?? '');
  const isFresh = Math.abs(age) < LAST_LOOK_MS;
  if (isFresh && deepEqual(next, status)) return status;
  return { ...next, lastLook: timestamp(result.at) };
}

/** The condition is True when all that the zone lists was taken. */
function browsed(result: LookResult): Pick<WantedCondition, 'status' | 'reason' | 'message'> {
  if ('failure' in result) {
    const { invalid, noServer } = SEARCH_DOMAIN_REASONS;
    return {
      status: 'False',
      reason: result.isInvalid ? invalid : noServer,
      message: result.failure,
    };
  }
  const { instances, surplus } = result.look;
  const missed = [...instances.values()].flatMap((one) => (one.kind === 'found' ? [] : [one]));
  if (surplus > 0) {
    const message = `the domain lists ${instances.size + surplus} clusters; the first ${MAX_INSTANCES} by name are taken`;
    return { status: 'False', reason: SEARCH_DOMAIN_REASONS.tooMany, message };
  }
  if (missed.length > 0) {
    const isRefused = missed.some(({ kind }) => kind === 'refused');
    const shown = missed.slice(0, SHOWN).map(({ why }) => why);
    const more = missed.length > SHOWN ? `; and ${missed.length - SHOWN} more` : '';
    return {
      status: 'False',
      reason: isRefused ? SEARCH_DOMAIN_REASONS.malformed : SEARCH_DOMAIN_REASONS.noServer,
      message: `${missed.length} of ${instances.size} listed: ${shown.join('; ')}${more}`,
    };
  }
  return { status: 'True', reason: SEARCH_DOMAIN_REASONS.ok, message: `${instances.size} listed` };
}
