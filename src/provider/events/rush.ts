import type { Clock } from '../../lib/clock.ts';

/** So many pods that come, start or begin to go within such a span are a rush. A rollout of some ten pods is none. */
const MANY = 80;
const SPAN_MS = 5_000;
/** It is over when for so long there was none. */
const CALM_MS = 10_000;
/** For no longer than this is anything held back. */
const LONGEST_MS = 60_000;

export interface RushOptions {
  clock: Clock;
  /** Told of each key that was held back, when its time has come. */
  release: (key: string) => void;
}

/**
 * State before news: while pods come, start and go by the dozen, what is not urgent is held back. In such a burst everybody is short of
 * processor time, and each event costs an API server as much as the status of a pod.
 */
export class Rush {
  readonly #options: RushOptions;
  /** When the last ones came, started or went, monotonic ms; a ring. */
  readonly #stirs: number[] = [];
  #next = 0;
  #until = -Infinity;
  /** By key, the oldest first: since when, monotonic ms. */
  readonly #held = new Map<string, number>();
  #isTimed = false;

  constructor(options: RushOptions) {
    this.#options = options;
  }

  /** A pod comes, starts or begins to go. */
  stir(): void {
    const now = this.#options.clock.monotonic();
    const earlier = this.#stirs[this.#next] ?? -Infinity;
    this.#stirs[this.#next] = now;
    this.#next = (this.#next + 1) % MANY;
    if (now - earlier < SPAN_MS) this.#until = now + CALM_MS;
  }

  /** Returns whether the key is held back from now on, or still is. */
  hold(key: string): boolean {
    const now = this.#options.clock.monotonic();
    if (now >= this.#until) return this.#held.has(key);
    if (!this.#held.has(key)) this.#held.set(key, now);
    this.#time(now);
    return true;
  }

  #time(now: number): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    const [oldest = now] = this.#held.values();
    const dueMs = Math.min(this.#until, oldest + LONGEST_MS) - now;
    this.#options.clock.after(Math.max(1, dueMs), () => this.#look());
  }

  #look(): void {
    this.#isTimed = false;
    const now = this.#options.clock.monotonic();
    const isOver = now >= this.#until;
    for (const [key, since] of this.#held) {
      if (!isOver && now - since < LONGEST_MS) break;
      this.#held.delete(key);
      this.#options.release(key);
    }
    if (this.#held.size > 0) this.#time(now);
  }
}
