import type { Clock } from '../../src/lib/clock.ts';
import { settle, work } from './settle.ts';

export { settle };

/**
 * How long to wait in real time, milliseconds, if no timer is due and nothing seems to run: other threads may work, for
 * example to make keys, and other programs may keep them from it.
 */
const THREADS_MS = 20_000;

interface Timer {
  at: number;
  callback: () => void;
}

/**
 * A clock that stands still until it is advanced. Timers fire in the order of their times; the work that a timer
 * starts runs before the next one fires.
 */
export class FakeClock implements Clock {
  readonly #timers = new Set<Timer>();
  #monotonic = 0;
  #wallOffset: number;

  constructor(startAt: number = Date.UTC(2026, 0, 1)) {
    this.#wallOffset = startAt;
  }

  now(): number {
    return this.#wallOffset + this.#monotonic;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#monotonic + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  async sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = this.after(delayMs, resolve);
    const abort = (): void => reject(signal?.reason as Error);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      cancel();
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Timers that wait, sleepers among them. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Lets `ms` pass: every timer due fires at its own time. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await settle();
    while (await this.#step(end));
    this.#monotonic = end;
  }

  /** Lets time pass, from timer to timer, until the condition holds; fails after `limitMs` and says what was missed. */
  async until(what: string, condition: () => boolean | Promise<boolean>, limitMs = 10_000): Promise<void> {
    const end = this.#monotonic + limitMs;
    let idleSince: number | undefined;
    await settle();
    for (let at = this.#monotonic; !(await condition()); at = this.#monotonic) {
      // A condition may let time pass by itself.
      if (this.#monotonic > at && this.#monotonic < end) continue;
      if (await this.#step(end)) {
        idleSince = undefined;
        continue;
      }
      if (this.pending > 0) this.#monotonic = Math.max(this.#monotonic, end);
      idleSince ??= performance.now();
      if (performance.now() - idleSince > THREADS_MS) throw new Error(`not within ${limitMs} ms: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 1));
      await settle();
    }
  }

  /** Lets time pass, from timer to timer, until the work has ended; fails after `limitMs`. */
  async during<T>(what: string, promise: Promise<T>, limitMs = 600_000): Promise<T> {
    let isOver = false;
    const end = (): void => void (isOver = true);
    promise.then(end, end);
    await this.until(what, () => isOver, limitMs);
    return promise;
  }

  /** Advances to the next timer that is due by `end` and lets its work run; false if there is none. */
  async #step(end: number): Promise<boolean> {
    // Otherwise requests that are on their way would time out.
    if (!work.isDone) await settle();
    const timer = this.#next(end);
    if (timer === undefined) return false;
    this.#monotonic = Math.max(this.#monotonic, timer.at);
    this.#timers.delete(timer);
    timer.callback();
    await settle();
    return true;
  }

  /** The process does not run for so long: whatever is due meanwhile is called when time passes again. */
  stop(ms: number): void {
    this.#monotonic += ms;
  }

  /** Sets the wall clock forward or back without any time passing, as an administrator would. */
  jump(ms: number): void {
    this.#wallOffset += ms;
  }

  #next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  }
}
