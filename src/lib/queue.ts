import { type Random, fullJitterMs, systemRandom } from './backoff.ts';
import type { Clock } from './clock.ts';

export interface QueueOptions {
  clock: Clock;
  random?: Random | undefined;
  /** First ceiling of `addRateLimited`; doubles with each failure. Default 100 ms. */
  backoffBaseMs?: number;
  /** Default 60 s. */
  backoffCapMs?: number;
  /** Keys that may hold each other up, as those of one namespace do whose server is slow. Default: one group for each key. */
  share?: Share | undefined;
}

export interface Share {
  /** How many keys are taken at a time at most. */
  workers: number;
  groupOf: (key: string) => string;
}

/**
 * A group gets another key only while it has fewer than so many times the workers that are free: three quarters of all at most, the next one
 * three quarters of the rest. Of 64, a worker is left to others while three groups are slow.
 */
const GREED = 3;

type Lane = 'fast' | 'slow';
const LANES: readonly Lane[] = ['fast', 'slow'];

interface Waiting {
  readonly key: string;
  readonly since: number;
  lane: Lane;
}

interface Delayed {
  readonly at: number;
  readonly lane: Lane;
  readonly cancel: () => void;
}

/** Of so many keys taken while both lanes wait, one comes from the slow lane, so that it never starves. */
const SLOW_SHARE = 8;

/**
 * Keys that want work, each at most once, first come first served. A key handed out by `take` is not handed out
 * again until `done`; added meanwhile, it comes back after that. The slow lane is for resyncs: its keys give way
 * to changes.
 */
export class KeyedQueue {
  readonly #options: QueueOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #lanes = { fast: new Fifo('fast'), slow: new Fifo('slow') };
  readonly #running = new Map<string, Lane | undefined>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, number>();
  /** By group: how many run. */
  readonly #runningOf = new Map<string, number>();
  /** By group: those whose turn it was while the group had its share. */
  readonly #parked = { fast: new Map<string, Fifo>(), slow: new Map<string, Fifo>() };
  readonly #takers: ((key: string | undefined) => void)[] = [];
  readonly #idle: (() => void)[] = [];
  #fastInARow = 0;
  #closed = false;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /** Keys that wait, without those running or delayed. */
  get depth(): number {
    return this.#waiting.size;
  }

  get running(): number {
    return this.#running.size;
  }

  get delayed(): number {
    return this.#delayed.size;
  }

  /** How long the longest-waiting key has waited. */
  get oldestAgeMs(): number {
    const oldest = Math.min(
      ...LANES.flatMap((lane) => [this.#lanes[lane], ...this.#parked[lane].values()]).map(
        (entries) => entries.head()?.since ?? Infinity,
      ),
    );
    return oldest === Infinity ? 0 : this.#options.clock.monotonic() - oldest;
  }

  add(key: string): void {
    this.#add(key, 'fast');
  }

  addSlow(key: string): void {
    this.#add(key, 'slow');
  }

  /** Adds the key in `delayMs`, or earlier where it is already due earlier. */
  addAfter(key: string, delayMs: number, lane: Lane = 'fast'): void {
    if (this.#closed) return;
    if (delayMs <= 0) {
      this.#add(key, lane);
      return;
    }
    const { clock } = this.#options;
    const at = clock.monotonic() + delayMs;
    const known = this.#delayed.get(key);
    if (known !== undefined && known.at <= at) return;
    known?.cancel();
    const cancel = clock.after(delayMs, () => {
      this.#delayed.delete(key);
      this.#add(key, lane);
    });
    this.#delayed.set(key, { at, lane, cancel });
  }

  /** Adds the key after a delay that grows with each call since the last `forget`, at least `leastMs`; returns the delay. */
  addRateLimited(key: string, leastMs = 0): number {
    const failures = this.failures(key);
    this.#failures.set(key, failures + 1);
    const {
      backoffBaseMs: baseMs = 100,
      backoffCapMs: capMs = 60_000,
      random = systemRandom,
    } = this.#options;
    const delayMs = Math.max(leastMs, fullJitterMs(failures, { baseMs, capMs, random }));
    this.addAfter(key, delayMs);
    return delayMs;
  }

  /** The key is well again: its next failure starts with a short delay. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, as soon as there is one; undefined once the queue is closed. Each key taken needs a `done`. */
  async take(): Promise<string | undefined> {
    if (this.#closed) return undefined;
    const next = this.#next();
    if (next !== undefined) return next;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.#takers.push(resolve);
    return promise;
  }

  done(key: string): void {
    const dirty = this.#running.get(key);
    this.#running.delete(key);
    this.#count(key, -1);
    if (dirty !== undefined) this.#add(key, dirty);
    if (LANES.some((lane) => this.#parked[lane].size > 0)) this.#serve();
    if (this.#running.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Forgets what waits, takes nothing more, and resolves when all keys that run are done. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#waiting.clear();
    this.#lanes.fast.clear();
    this.#lanes.slow.clear();
    for (const lane of LANES) this.#parked[lane].clear();
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    for (const resolve of this.#takers.splice(0)) resolve(undefined);
    if (this.#running.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle.push(resolve);
    await promise;
  }

  #add(key: string, lane: Lane): void {
    if (this.#closed) return;
    if (this.#running.has(key)) {
      if (this.#running.get(key) !== 'fast') this.#running.set(key, lane);
      return;
    }
    const known = this.#waiting.get(key);
    if (known === undefined) {
      const entry: Waiting = { key, lane, since: this.#options.clock.monotonic() };
      this.#waiting.set(key, entry);
      this.#lanes[lane].push(entry);
      this.#serve();
    } else if (known.lane === 'slow' && lane === 'fast') {
      known.lane = 'fast';
      this.#lanes.fast.push(known);
    }
  }

  #serve(): void {
    while (this.#takers.length > 0) {
      const next = this.#next();
      if (next === undefined) return;
      this.#takers.shift()?.(next);
    }
  }

  #next(): string | undefined {
    const isSlowDue = this.#fastInARow >= SLOW_SHARE;
    for (const lane of isSlowDue ? LANES.toReversed() : LANES) {
      const entry = this.#unparked(lane) ?? this.#turn(lane);
      if (entry === undefined) continue;
      this.#fastInARow = lane === 'fast' && this.#isSlowWaiting ? this.#fastInARow + 1 : 0;
      this.#waiting.delete(entry.key);
      this.#running.set(entry.key, undefined);
      this.#count(entry.key, 1);
      return entry.key;
    }
    return undefined;
  }

  get #isSlowWaiting(): boolean {
    return this.#lanes.slow.head() !== undefined || this.#parked.slow.size > 0;
  }

  /** The next of a lane whose group has not had its share; those that are passed over are parked. */
  #turn(lane: Lane): Waiting | undefined {
    for (let entry = this.#lanes[lane].shift(); entry !== undefined; entry = this.#lanes[lane].shift()) {
      const group = this.#options.share?.groupOf(entry.key);
      if (group === undefined || this.#hasRoom(group)) return entry;
      const parked = this.#parked[lane].get(group) ?? new Fifo(lane);
      this.#parked[lane].set(group, parked);
      parked.push(entry);
    }
    return undefined;
  }

  #unparked(lane: Lane): Waiting | undefined {
    for (const [group, entries] of this.#parked[lane]) {
      if (!this.#hasRoom(group)) continue;
      const entry = entries.shift();
      if (entries.head() === undefined) this.#parked[lane].delete(group);
      if (entry !== undefined) return entry;
    }
    return undefined;
  }

  #hasRoom(group: string): boolean {
    const { share } = this.#options;
    if (share === undefined) return true;
    const free = share.workers - this.#running.size;
    return (this.#runningOf.get(group) ?? 0) < GREED * free;
  }

  #count(key: string, by: number): void {
    const group = this.#options.share?.groupOf(key);
    if (group === undefined) return;
    const count = (this.#runningOf.get(group) ?? 0) + by;
    if (count > 0) this.#runningOf.set(group, count);
    else this.#runningOf.delete(group);
  }
}

/** First in, first out, in constant time. An entry that has changed lanes is skipped when its turn comes. */
class Fifo {
  readonly #lane: Lane;
  #entries: Waiting[] = [];
  #start = 0;

  constructor(lane: Lane) {
    this.#lane = lane;
  }

  push(entry: Waiting): void {
    this.#entries.push(entry);
  }

  head(): Waiting | undefined {
    while (this.#start < this.#entries.length) {
      const entry = this.#entries[this.#start];
      if (entry?.lane === this.#lane) return entry;
      this.#start++;
    }
    this.clear();
    return undefined;
  }

  shift(): Waiting | undefined {
    const entry = this.head();
    if (entry === undefined) return undefined;
    this.#start++;
    // Cut off what is used up once it is the larger part: constant time on average.
    if (this.#start > 64 && this.#start * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#start);
      this.#start = 0;
    }
    return entry;
  }

  clear(): void {
    this.#entries = [];
    this.#start = 0;
  }
}
