/** How a leader renews for whom nobody waits. Pure; docs/decisions/0110-fewer-wake-ups.md gives the reasons. */

/** Times of a Lease, in milliseconds. */
export interface RenewalTimes {
  durationMs: number;
  /** A leader steps down if it could not renew for so long. */
  renewDeadlineMs: number;
  /** Longest time from one renewal to the next. */
  renewMs: number;
}

/** Shares of the usual duration. */
export interface RenewalShares {
  duration: number;
  term: number;
  renewal: number;
}

/** @param durationMs the usual one */
export const loneTimes = (durationMs: number, { duration, term, renewal }: RenewalShares): RenewalTimes => ({
  durationMs: durationMs * duration,
  renewDeadlineMs: durationMs * term,
  renewMs: durationMs * renewal,
});

/** A candidate may have gone: how often one is asked to say again that it waits. */
const ASK_MS = 5 * 60_000;

export interface RivalFacts {
  /** Monotonic, as all times here. */
  nowMs: number;
  /** When candidates were asked last; undefined: never by this leader. */
  askedAtMs: number | undefined;
  /** How long one may take to answer. */
  answerMs: number;
  hasCandidate: boolean;
}

/**
 * What the next renewal is: `usual`, `ask` (the same, and whoever waits is to say so again), or `lone`. Nobody is alone before
 * candidates had time to be heard.
 */
export function nextRenewal({
  nowMs,
  askedAtMs,
  answerMs,
  hasCandidate,
}: RivalFacts): 'usual' | 'ask' | 'lone' {
  if (askedAtMs === undefined) return 'ask';
  const sinceMs = nowMs - askedAtMs;
  if (hasCandidate) return sinceMs < ASK_MS ? 'usual' : 'ask';
  return sinceMs < answerMs ? 'usual' : 'lone';
}
