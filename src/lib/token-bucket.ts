import type { Clock } from './clock.ts';
import { remember } from './remember.ts';

export interface TokenBucketOptions {
  clock: Clock;
  /** What may be taken at once after a rest. */
  burst: number;
  perSecond: number;
}

/** A rate with bursts. Taking more than there is makes a debt, which must be waited for. */
export class TokenBucket {
  readonly #options: TokenBucketOptions;
  #tokens: number;
  #at: number;

  constructor(options: TokenBucketOptions) {
    this.#options = options;
    this.#tokens = options.burst;
    this.#at = options.clock.monotonic();
  }

  /** Takes so many; returns how long (ms) the taker has to wait before it takes more, 0 within the rate. */
  take(amount: number): number {
    this.#refill();
    this.#tokens -= amount;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#options.perSecond) * 1000;
  }

  /** How long (ms) until so many are there; 0: now. */
  waitMs(amount: number): number {
    this.#refill();
    return Math.max(0, ((amount - this.#tokens) / this.#options.perSecond) * 1000);
  }

  /** Takes so many if they are there. */
  tryTake(amount: number): boolean {
    this.#refill();
    if (this.#tokens < amount) return false;
    this.#tokens -= amount;
    return true;
  }

  #refill(): void {
    const { clock, burst, perSecond } = this.#options;
    const now = clock.monotonic();
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#at) / 1000) * perSecond);
    this.#at = now;
  }
}

/** A bucket for each key, in bounded memory. */
export class TokenBuckets {
  readonly #options: TokenBucketOptions & { maxKeys: number };
  readonly #buckets = new Map<string, TokenBucket>();

  /** More than `maxKeys` are not remembered: the key that was quiet the longest is forgotten, and has its burst again. */
  constructor(options: TokenBucketOptions & { maxKeys: number }) {
    this.#options = options;
  }

  of(key: string): TokenBucket {
    const bucket = this.#buckets.get(key) ?? new TokenBucket(this.#options);
    remember(this.#buckets, key, bucket, this.#options.maxKeys);
    return bucket;
  }
}
