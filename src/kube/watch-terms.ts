import type { Random } from '../lib/backoff.ts';
import type { WatchOptions } from './client.ts';

/** The API server closes each watch after a time in this range, so that load spreads over its replicas. */
const WATCH_SECONDS = { min: 300, max: 600 };
/** A watch that ended so much before its time was ended by something else. */
const EARLY_MS = 5000;

/**
 * For how long one watch after the other is asked for, and whether with bookmarks. An API server sends one of these a minute, and each
 * wakes this process. They are of use where a kind changes so often, beside what we watch, that the server has forgotten the version
 * from which a watch resumes after its time. That shows once, by a list that is needed then.
 */
export class WatchTerms {
  #bookmarks = false;
  #seconds = 0;
  #isResuming = false;

  next(random: Random): Required<Pick<WatchOptions, 'timeoutSeconds' | 'bookmarks'>> {
    const { min, max } = WATCH_SECONDS;
    this.#seconds = min + Math.floor(random() * (max - min));
    return { timeoutSeconds: this.#seconds, bookmarks: this.#bookmarks };
  }

  /** The last one ended without an error. Where a server that restarts has ended it, what that one forgets says nothing. */
  ended(livedMs: number): void {
    this.#isResuming = livedMs >= this.#seconds * 1000 - EARLY_MS;
  }

  heard(): void {
    this.#isResuming = false;
  }

  /** The server has forgotten the version from which we resume. */
  expired(): void {
    if (this.#isResuming) this.#bookmarks = true;
    this.#isResuming = false;
  }
}
