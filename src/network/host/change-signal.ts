import type { Clock } from '../../lib/clock.ts';

const QUIET_MS = 100;

/** Many changes in a short time are one: calls back at most every 100 ms, and not while it is held. */
export class ChangeSignal {
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #cancel: (() => void) | undefined;
  #isMarked = false;
  #holds = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  /** The returned function takes it back. */
  add(listener: () => void): () => void {
    // A new one each time, so that one function may be added twice.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  mark(): void {
    this.#isMarked = true;
    this.#schedule();
  }

  /** Until the returned function is called: our own writes, of which the callbacks come once, after the last. */
  hold(): () => void {
    this.#holds++;
    return () => {
      this.#holds--;
      this.#schedule();
    };
  }

  clear(): void {
    this.#cancel?.();
    this.#listeners.clear();
  }

  #schedule(): void {
    if (!this.#isMarked || this.#holds > 0 || this.#cancel !== undefined) return;
    this.#cancel = this.#clock.after(QUIET_MS, () => {
      this.#cancel = undefined;
      if (this.#holds > 0 || !this.#isMarked) return;
      this.#isMarked = false;
      for (const listener of this.#listeners) listener();
    });
  }
}
