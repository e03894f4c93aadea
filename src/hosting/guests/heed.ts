import type { Clock } from '../../lib/clock.ts';
import { remember } from '../../lib/remember.ts';

/** A request that was refused because a budget is spent. */
export interface Refused {
  peer: string;
  /** What it is about: the same for each try. */
  key: string;
  bytes: number;
  waitMs: number;
  /** More different objects than this cannot be wanted in earnest. */
  mostKeys: number;
  /** So many bytes in a window are too much to be a mistake. */
  mostBytes: number;
}

interface Heard {
  sinceMs: number;
  heedlessBytes: number;
  /** Until when to wait, by key. */
  waits: Map<string, number>;
}

const WINDOW_MS = 60_000;
/** A refused request costs an API server something, however small it is. */
const LEAST_BYTES = 16 * 1024;
/** A home may look again somewhat early, when something has changed there. */
const SLACK = 0.5;
const MOST_PEERS = 1000;
const MOST_KEYS = 20_000;

/**
 * Whether peers heed what they are told. A home whose budget is spent is told how long to wait, and waits, with as many objects as
 * it has. What comes again too early, or is about more objects than the peer may have, comes from somebody who does not want to wait.
 */
export class Heed {
  readonly #clock: Clock;
  readonly #peers = new Map<string, Heard>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether this peer does not heed. */
  refused({ peer, key, bytes, waitMs, mostKeys, mostBytes }: Refused): boolean {
    const nowMs = this.#clock.monotonic();
    const heard = this.#heard(peer, nowMs);
    const untilMs = heard.waits.get(key);
    const isEarly = untilMs !== undefined && nowMs < untilMs;
    const isOneTooMany = untilMs === undefined && heard.waits.size >= Math.min(mostKeys, MOST_KEYS);
    if (isEarly || isOneTooMany) heard.heedlessBytes += Math.max(bytes, LEAST_BYTES);
    if (!isOneTooMany && !isEarly) heard.waits.set(key, nowMs + waitMs * SLACK);
    return heard.heedlessBytes > mostBytes;
  }

  forget(peer: string): void {
    this.#peers.delete(peer);
  }

  #heard(peer: string, nowMs: number): Heard {
    const known = this.#peers.get(peer);
    if (known !== undefined && nowMs - known.sinceMs < WINDOW_MS) return known;
    const waits = new Map([...(known?.waits ?? [])].filter(([, untilMs]) => untilMs > nowMs));
    const fresh = { sinceMs: nowMs, heedlessBytes: 0, waits };
    remember(this.#peers, peer, fresh, MOST_PEERS);
    return fresh;
  }
}
