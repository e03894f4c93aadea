import type { Clock } from './clock.ts';

export interface DebounceOptions {
  clock: Clock;
  /** The shortest time between two calls. */
  intervalMs: number;
  /** Whether the first event calls at once. Otherwise its call comes at the end of the interval that it begins. */
  callsAtOnce: boolean;
}

/** Turns many events into few calls. The last event is never lost. */
export class Debounce {
  readonly #options: DebounceOptions;
  readonly #call: () => void;
  #cancel: (() => void) | undefined;
  #isDue = false;
  #holds = 0;

  constructor(options: DebounceOptions, call: () => void) {
    this.#options = options;
    this.#call = call;
  }

  trigger(): void {
    this.#isDue = true;
    this.#schedule();
  }

  /** Puts calls off until the returned function is called. */
  hold(): () => void {
    this.#holds++;
    return () => {
      this.#holds--;
      this.#schedule();
    };
  }

  /** No call comes after this, unless something triggers again. */
  stop(): void {
    this.#isDue = false;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #schedule(): void {
    if (!this.#isDue || this.#cancel !== undefined) return;
    if (this.#options.callsAtOnce) this.#run();
    else if (this.#holds === 0) this.#wait();
  }

  #wait(): void {
    const { clock, intervalMs } = this.#options;
    this.#cancel = clock.after(intervalMs, () => {
      this.#cancel = undefined;
      this.#run();
    });
  }

  #run(): void {
    if (!this.#isDue || this.#holds > 0) return;
    this.#isDue = false;
    // The interval begins before the call, which may itself trigger.
    if (this.#options.callsAtOnce) this.#wait();
    this.#call();
  }
}
