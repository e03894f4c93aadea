import type { Clock } from './clock.ts';

/** So many losses are accepted at once; a normal drain of a foreign node stays below it. */
const BURST = 20;
/** After the burst, one more is accepted each time this has passed. */
const REFILL_MS = 2_000;
/** A turn that nobody has taken for so long is forgotten: its pod has been found again, or deleted. */
const FORGET_MS = 60_000;

/**
 * A token bucket for home pods that are ended. One pod that the foreign cluster evicted is believed. Hundreds at once are more
 * likely a wiped namespace or a restored backup over there, and a pause lets a person look before the home cluster starts
 * everything anew. A pod that has to wait gets a turn, so that a thousand lost pods do not all ask again every second.
 */
export class LossBudget {
  readonly #clock: Clock;
  /** By pod, when its turn is. Monotonic. */
  readonly #turns = new Map<string, number>();
  /** When the bucket will be full again, as in the generic cell rate algorithm. Monotonic. */
  #fullAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#fullAt = clock.monotonic();
  }

  /** 0 when the loss may be acted on now, else milliseconds to wait. The same pod keeps its turn. */
  take(pod: string): number {
    const now = this.#clock.monotonic();
    const turn = this.#turns.get(pod);
    if (turn !== undefined) {
      if (turn > now) return Math.ceil(turn - now);
      this.#turns.delete(pod);
      return 0;
    }
    const start = Math.max(this.#fullAt, now);
    this.#fullAt = start + REFILL_MS;
    const waitMs = Math.ceil(this.#fullAt - BURST * REFILL_MS - now);
    if (waitMs <= 0) return 0;
    this.#forget(now);
    this.#turns.set(pod, now + waitMs);
    return waitMs;
  }

  #forget(now: number): void {
    for (const [pod, turn] of this.#turns) if (now - turn > FORGET_MS) this.#turns.delete(pod);
  }
}
