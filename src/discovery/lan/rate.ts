import type { Clock } from '../../lib/clock.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';

export interface RateOptions {
  clock: Clock;
  /** What may come at once. */
  burst: number;
  /** What may come in the long run. */
  perSecond: number;
  /** Keys remembered; the one that was quiet the longest is forgotten first. */
  maxKeys: number;
}

/** A rate for each key, in bounded memory. */
export class RateLimit {
  readonly #options: RateOptions;
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(options: RateOptions) {
    this.#options = options;
  }

  /** False when the key has had its share. */
  take(key: string): boolean {
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.#options);
    // Put back at the end: a Map keeps the order in which keys were set.
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > this.#options.maxKeys)
      this.#buckets.delete(this.#buckets.keys().next().value ?? key);
    return bucket.tryTake(1);
  }
}
