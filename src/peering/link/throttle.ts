import type { Clock } from '../../lib/clock.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';
import type { Channel } from './channel.ts';

export interface Rates {
  messagesPerSecond: number;
  messagesAtOnce: number;
  bytesPerSecond: number;
  bytesAtOnce: number;
}

/** Far above what a peer of ours ever says, far below what would keep us busy. */
export const DEFAULT_RATES: Readonly<Rates> = {
  messagesPerSecond: 50,
  messagesAtOnce: 200,
  bytesPerSecond: 1024 * 1024,
  bytesAtOnce: 4 * 1024 * 1024,
};

/** Messages that cause more than an answer count as so many: a hello and a state may lead to writes. */
export const WEIGHTS = { hello: 25, state: 5 } as const;

/** Stops reading from a peer that says more than its share, until it has waited for what it took. */
export class Throttle {
  readonly #channel: Pick<Channel, 'pause' | 'resume'>;
  readonly #clock: Clock;
  readonly #messages: TokenBucket;
  readonly #bytes: TokenBucket;
  #cancel: (() => void) | undefined;

  constructor(channel: Pick<Channel, 'pause' | 'resume'>, clock: Clock, rates: Rates = DEFAULT_RATES) {
    this.#channel = channel;
    this.#clock = clock;
    this.#messages = new TokenBucket({
      clock,
      burst: rates.messagesAtOnce,
      perSecond: rates.messagesPerSecond,
    });
    this.#bytes = new TokenBucket({ clock, burst: rates.bytesAtOnce, perSecond: rates.bytesPerSecond });
  }

  /** Whether the peer has to wait; then its silence says nothing. */
  get paused(): boolean {
    return this.#cancel !== undefined;
  }

  took(bytes: number, messages = 1): void {
    const waitMs = Math.max(this.#messages.take(messages), this.#bytes.take(bytes));
    if (waitMs === 0) return;
    this.#cancel?.();
    this.#channel.pause();
    this.#cancel = this.#clock.after(waitMs, () => {
      this.#cancel = undefined;
      this.#channel.resume();
    });
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
