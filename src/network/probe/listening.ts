/** What is due now may be seen a little early. */
const EARLY_MS = 10;
/**
 * Whoever listens asks by itself when it was not asked for so many intervals. That counts as the first beat without an answer, so the peer
 * is dead after 7 intervals at most all the same.
 */
const UNASKED_INTERVALS = 2.5;

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

  /** Whether the other end has asked until now and does not any more, or does not hear us. True once. */
  hasEnded(nowMs: number): boolean {
    const until = this.lastsUntil;
    const hasEnded = until !== undefined && nowMs + EARLY_MS >= until;
    if (hasEnded) this.end();
    return hasEnded;
  }

  end(): void {
    this.#askedAt = undefined;
    this.#isDoubtful = false;
  }
}
