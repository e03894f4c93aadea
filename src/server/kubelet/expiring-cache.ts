import type { Clock } from '../../lib/clock.ts';
import { TributaryError } from '../../lib/errors.ts';

interface ExpiringCacheOptions {
  clock: Clock;
  /** The entry that was stored longest ago goes first. */
  maxEntries: number;
  /** Questions under way: each holds a request, and strangers can make up any number of them. */
  maxPending: number;
}

interface Entry<Value> {
  value: Value;
  expires: number;
}

/** Answers with a time to live each. Equal questions asked at the same time are put once. */
export class ExpiringCache<Value> {
  readonly #options: ExpiringCacheOptions;
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #pending = new Map<string, Promise<Value>>();

  constructor(options: ExpiringCacheOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** A failed load is not remembered. Throws TooManyRequests where too many are under way. */
  async get(key: string, load: () => Promise<Value>, ttlMs: (value: Value) => number): Promise<Value> {
    const found = this.#entries.get(key);
    if (found !== undefined && found.expires > this.#options.clock.monotonic()) return found.value;
    this.#entries.delete(key);
    const running = this.#pending.get(key);
    if (running !== undefined) return running;
    if (this.#pending.size >= this.#options.maxPending)
      throw new TributaryError('TooManyRequests', `${this.#pending.size} questions are under way`);
    const loading = load();
    this.#pending.set(key, loading);
    try {
      const value = await loading;
      this.#store(key, value, ttlMs(value));
      return value;
    } finally {
      this.#pending.delete(key);
    }
  }

  #store(key: string, value: Value, ttlMs: number): void {
    const { clock, maxEntries } = this.#options;
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < maxEntries) break;
      this.#entries.delete(oldest);
    }
    this.#entries.set(key, { value, expires: clock.monotonic() + ttlMs });
  }
}
