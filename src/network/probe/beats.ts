/** When a peer is asked, and how. Pure; times are monotonic where nothing else is said. */
import { type Random, spreadMs } from '../../lib/backoff.ts';
import { onGridMs } from '../../lib/grid.ts';

/**
 * Beats while nothing flows and all is well. The first comes later than else, but those after one that was missed come at once, so
 * that a peer is dead after 7 intervals at most, as else. They come at multiples of that time by the wall clock: so whoever has many
 * peers asks all at once, hears all answers, and is asked by all others, in one wake-up or in a few that follow each other at once.
 */
const QUIET_INTERVALS = 2;
/** While nothing flows, a beat looks at what fits through after so many intervals. Whoever listens sends no others. */
export const FULL_INTERVALS = 8;
/** What is due now may be seen a little early. */
export const EARLY_MS = 10;
/** Of the small probe, while nothing flows and the beat before had no answer: fewer beats are left than in a tunnel in use. */
const DOUBTFUL_COPIES = 2;

export interface BeatFacts {
  /** The time of the wall clock when the last beat began. */
  wallMs: number;
  intervalMs: number;
  random: Random;
  /** Whether anything but probes goes into the tunnel. */
  isFlowing: boolean;
  /** The peer is alive and has answered the last beat. */
  isCalm: boolean;
  /** Until when the other end asks in our place unless it asks again; undefined: it does not. */
  listensUntil: number | undefined;
}

export function nextBeatAt(began: number, facts: BeatFacts): number {
  const { wallMs, intervalMs, random, isFlowing, isCalm, listensUntil } = facts;
  if (isFlowing) return began + spreadMs(intervalMs * 1.2, random);
  if (!isCalm) return began + intervalMs;
  const gridMs = intervalMs * QUIET_INTERVALS;
  if (listensUntil === undefined) return began + onGridMs(wallMs, gridMs, gridMs);
  return Math.min(listensUntil, began + onGridMs(wallMs, intervalMs * FULL_INTERVALS, gridMs));
}

/**
 * For how many intervals a beat waits for its answer, and how many copies of the small probe it sends. While all is well, the next beat
 * shows that this one had no answer, and that counts twice: a timer of its own would wake the process each time.
 */
export function beatTerms({ isFlowing, isDoubtful }: { isFlowing: boolean; isDoubtful: boolean }): {
  intervals: number;
  copies: number;
} {
  if (isFlowing) return { intervals: 1, copies: 1 };
  return isDoubtful ? { intervals: 1, copies: DOUBTFUL_COPIES } : { intervals: QUIET_INTERVALS, copies: 1 };
}
