import type { Clock } from '../../lib/clock.ts';

/** Losses that end home pods at once; a normal drain of a foreign node stays below it. */
const BURST = 20;
/** After the burst, one more each so many milliseconds. */
const REFILL_MS = 2_000;

/**
 * A token bucket on ended home pods. One pod that the provider evicted is a fact; hundreds at once are more likely a
 * wiped namespace or a restored backup over there, where a pause lets a person look before the home cluster starts
 * everything anew.
 */
export class LossBudget {
  readonly #clock: Clock;
  #tokens = BURST;
  #refilledAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#refilledAt = clock.monotonic();
  }

  /** 0 when the loss may be acted on now, else milliseconds to wait. */
  take(): number {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(BURST, this.#tokens + (now - this.#refilledAt) / REFILL_MS);
    this.#refilledAt = now;
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      return 0;
    }
    return Math.ceil((1 - this.#tokens) * REFILL_MS);
  }
}
