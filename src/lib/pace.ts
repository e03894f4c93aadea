import type { Clock } from './clock.ts';
import { remember } from './remember.ts';
import { TokenBucket } from './token-bucket.ts';

export interface PaceLimits {
  /** So many turns of one key follow each other without a wait. */
  free: number;
  /** The first wait after those; each further one is twice as long, as long as the key does not rest. */
  baseMs: number;
  /** In so long one turn is forgiven: where a key never rests, its turns come as far apart. */
  quietMs: number;
}

export interface PaceOptions extends PaceLimits {
  clock: Clock;
  /** All keys together, in units of the cost of a turn: identities may be free, and each would have turns of its own. */
  all?: { burst: number; perSecond: number };
  /** Keys that are remembered. One that is forgotten has its free turns again. Default 4096. */
  maxKeys?: number;
}

interface Entry {
  /** What was taken and is not forgiven yet. */
  level: number;
  /** When `level` was right. Monotonic, as all times here. */
  at: number;
  /** Waits in a row. */
  waits: number;
  notBefore: number;
  /** The turn that it has and has not taken yet, and what was paid for it. */
  turn?: { at: number; cost: number };
}

const MAX_KEYS = 4096;
const MAX_DOUBLINGS = 20;

/**
 * Says when something may be done that another side causes: a write, mostly. Changes that come now and then are not held up;
 * of those that never end, one is let through at a time, further and further apart, until it is quiet for a while. Who waits
 * keeps its turn, and turns are given in the order in which they are asked for, so nobody who asks later comes first.
 *
 * It keeps no changes. Whoever waits does what is right then, so the last word is done, and those between are not.
 */
export class Pace {
  readonly #options: PaceOptions;
  readonly #all: TokenBucket | undefined;
  readonly #entries = new Map<string, Entry>();

  constructor(options: PaceOptions) {
    this.#options = options;
    this.#all = options.all && new TokenBucket({ clock: options.clock, ...options.all });
  }

  /**
   * 0: it is the key's turn now, and it is taken. Otherwise how long to wait before asking again, in milliseconds.
   *
   * @param cost how many ordinary turns it is worth; larger for what is large
   */
  turn(key: string, cost = 1): number {
    const now = this.#options.clock.monotonic();
    const entry = this.#entry(key, now);
    const { turn } = entry;
    if (turn !== undefined) {
      if (now < turn.at) return Math.ceil(turn.at - now);
      delete entry.turn;
      // It may have grown while it waited.
      this.#charge(entry, Math.max(0, cost - turn.cost), now);
      return 0;
    }
    const waitMs = Math.max(entry.notBefore - now, this.#all?.take(cost) ?? 0);
    if (waitMs > 0) entry.turn = { at: now + waitMs, cost };
    this.#note(entry, cost, now + Math.max(0, waitMs));
    return Math.max(0, Math.ceil(waitMs));
  }

  /** Its free turns begin anew. */
  forget(key: string): void {
    this.#entries.delete(key);
  }

  #entry(key: string, now: number): Entry {
    const entry = this.#entries.get(key) ?? { level: 0, at: now, waits: 0, notBefore: now };
    remember(this.#entries, key, entry, this.#options.maxKeys ?? MAX_KEYS);
    return entry;
  }

  #charge(entry: Entry, cost: number, now: number): void {
    if (cost === 0) return;
    this.#all?.take(cost);
    this.#note(entry, cost, now);
  }

  /** A turn at that time, and when the next one may come. */
  #note(entry: Entry, cost: number, atMs: number): void {
    const { free, baseMs, quietMs } = this.#options;
    const rested = Math.max(0, entry.level - Math.max(0, atMs - entry.at) / quietMs);
    if (rested < free / 2) entry.waits = 0;
    entry.level = rested + cost;
    entry.at = atMs;
    const excess = entry.level - free;
    if (excess <= 0) {
      entry.notBefore = atMs;
      return;
    }
    const growing = baseMs * 2 ** Math.min(entry.waits++, MAX_DOUBLINGS);
    entry.notBefore = atMs + Math.min(growing, excess * quietMs);
  }
}
