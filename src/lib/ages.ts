import type { Clock } from './clock.ts';
import { remember } from './remember.ts';

/** The oldest of more is forgotten, and counts by the wall clock once more. */
const MOST = 4096;
const YEAR_MS = 365 * 86_400_000;

/**
 * How long ago things began, for what ends or moves something because of it. When they began is a wall-clock time that an object
 * bears. It is compared with the wall clock once, when it is first seen; from then on the monotonic clock counts, so that a
 * wall clock that is set ends nothing. Only after a restart the wall clock counts again.
 */
export class Ages {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  /** By subject and time: when it began, by the monotonic clock. */
  readonly #began = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  /**
   * Milliseconds since `sinceMs` (milliseconds since the epoch), never negative: a time in the future is of a clock that was wrong, and
   * counts from now. NaN for NaN. `subject`: what began then.
   */
  ageMs(subject: string, sinceMs: number): number {
    if (Number.isNaN(sinceMs)) return Number.NaN;
    const key = `${subject} ${sinceMs}`;
    const now = this.#clock.monotonic();
    const began = this.#began.get(key) ?? now - Math.max(0, this.#clock.now() - sinceMs);
    remember(this.#began, key, began, MOST);
    return now - began;
  }

  /** Milliseconds until `atMs` (milliseconds since the epoch), at most a year; negative when it is over. */
  leftMs(subject: string, atMs: number): number {
    return YEAR_MS - this.ageMs(subject, atMs - YEAR_MS);
  }
}
