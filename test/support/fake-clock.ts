import type { Clock } from '../../src/lib/clock.ts';

interface Timer {
  at: number;
  callback: () => void;
}

/** A clock that stands still until told. Timers fire in order of their time; work they wake is let run between. */
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
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) {
      this.#monotonic = Math.max(this.#monotonic, timer.at);
      this.#timers.delete(timer);
      timer.callback();
      await settle();
    }
    this.#monotonic = end;
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

/** Lets promises and I/O callbacks that are ready run. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
