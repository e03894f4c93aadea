import type { Random } from '../../lib/backoff.ts';

/** A record's life on the monotonic clock. */
export interface Timed {
  receivedAt: number;
  expiresAt: number;
  /** Milliseconds; that of the record, also where its end was brought forward. */
  ttlMs: number;
  /** When it is asked for next, to keep it; Infinity when no more. */
  askAt: number;
  asked: number;
}

/** RFC 6762, 5.2: at 80, 85, 90 and 95 % of its life, each up to 2 % later so that hosts do not ask together. */
const REFRESH_AT = [0.8, 0.85, 0.9, 0.95];
const REFRESH_SPREAD = 0.02;
/** RFC 6762, 10.1 and 10.2: goodbye and cache flush take effect after a second. */
const GRACE_MS = 1000;

export function timed(ttlSeconds: number, now: number, random: Random): Timed {
  const ttlMs = ttlSeconds * 1000;
  const life = { receivedAt: now, expiresAt: now + ttlMs, ttlMs, askAt: Infinity, asked: 0 };
  life.askAt = nextAsk(life, random);
  return life;
}

/** It was asked for once more. */
export function wasAsked(life: Timed, random: Random): void {
  life.asked++;
  life.askAt = nextAsk(life, random);
}

function nextAsk({ receivedAt, ttlMs, asked }: Timed, random: Random): number {
  const at = REFRESH_AT[asked];
  return at === undefined ? Infinity : receivedAt + (at + random() * REFRESH_SPREAD) * ttlMs;
}

/** Brings the end forward: goodbye, or replaced by others. */
export function endSoon(life: Timed, now: number): void {
  life.expiresAt = Math.min(life.expiresAt, now + GRACE_MS);
  life.askAt = Infinity;
}

/** Replaced by a record that was received now; what came in the same second belongs to the same answer. */
export const isFlushed = (life: Timed, now: number): boolean => life.receivedAt < now - GRACE_MS;
