import { timestamp, withCondition } from '../../api/conditions.ts';
import type { WantedCondition } from '../../api/conditions.ts';
import type { SearchDomain, SearchDomainStatus } from '../../api/search-domain.ts';
import { SEARCH_DOMAIN_CONDITIONS, SEARCH_DOMAIN_REASONS } from '../../api/search-domain.ts';
import { deepEqual } from '../../lib/equality.ts';
import { MAX_INSTANCES } from './look.ts';
import type { DomainLook } from './look.ts';

/** What came of a look at a domain, and when (wall clock): a list, or why there is none. */
export type LookResult = { at: number } & ({ look: DomainLook } | { failure: string; isInvalid: boolean });

/** `lastLook` alone is worth no write more often than this. */
const LAST_LOOK_MS = 60_000;
const SHOWN = 3;

/** The status to write; the one that is there where nothing worth a write differs. */
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

/** True: all that the zone lists was taken. */
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
