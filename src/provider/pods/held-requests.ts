import type { Clock } from '../../lib/clock.ts';

/**
 * When a refused request may be sent to the foreign cluster again. Our own status write wakes the key at once, and the message
 * of a quota changes with every pod that comes or goes: without this, a full foreign cluster would be asked as fast as it
 * answers. Forgotten at a restart, which costs one request a pod.
 */
export class HeldRequests {
  readonly #clock: Clock;
  /** By key; monotonic. */
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  hold(key: string, delayMs: number): void {
    this.#until.set(key, this.#clock.monotonic() + delayMs);
  }

  /** 0 when it may be asked for now. */
  waitMs(key: string): number {
    const until = this.#until.get(key);
    if (until === undefined) return 0;
    const waitMs = Math.ceil(until - this.#clock.monotonic());
    if (waitMs > 0) return waitMs;
    this.#until.delete(key);
    return 0;
  }

  forget(key: string): void {
    this.#until.delete(key);
  }
}
