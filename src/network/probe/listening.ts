import { EARLY_MS } from './beats.ts';

/** Whoever listens asks by itself when it was not asked for so many intervals: two questions of the other end are missing then. */
const UNASKED_INTERVALS = 4.5;
/**
 * For how many intervals without an answer it counts that the other end asks no more, or says that it does not hear us: so the peer is dead 7
 * intervals after its last sign of life at most, as it is to one that asks.
 */
const MISSES = { unasked: 3, unheard: 2 };

/**
 * What the questions of the other end tell one that listens in its place. A question whose sender had an answer to the one before
 * proves both directions. All times are monotonic.
 */
export class Listening {
  readonly #intervalMs: number;
  /** When the other end last asked, having heard us. Undefined: it does not ask. */
  #askedAt: number | undefined;
  /** It does not hear us any more. */
  #isDoubtful = false;

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs;
  }

  asked(isHeard: boolean, nowMs: number): void {
    if (isHeard) this.#askedAt = nowMs;
    else if (this.#askedAt !== undefined) this.#isDoubtful = true;
  }

  /** When we ask by ourselves unless something comes before; undefined: we ask in any case. */
  get lastsUntil(): number | undefined {
    if (this.#askedAt === undefined) return undefined;
    return this.#isDoubtful ? this.#askedAt : this.#askedAt + UNASKED_INTERVALS * this.#intervalMs;
  }

  /** As how many beats without an answer it counts that the other end has asked until now and does not any more, or does not hear us. Not 0 once. */
  missesAt(nowMs: number): number {
    const until = this.lastsUntil;
    if (until === undefined || nowMs + EARLY_MS < until) return 0;
    const misses = this.#isDoubtful ? MISSES.unheard : MISSES.unasked;
    this.end();
    return misses;
  }

  end(): void {
    this.#askedAt = undefined;
    this.#isDoubtful = false;
  }
}
