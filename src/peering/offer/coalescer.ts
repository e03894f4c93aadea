import type { Clock } from '../../lib/clock.ts';

/** Turns many events into few calls: the first at once, then at most one in `intervalMs`, the last never lost. */
export class Coalescer {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #fire: () => void;
  #cancel: (() => void) | undefined;
  #isDue = false;

  constructor(clock: Clock, intervalMs: number, fire: () => void) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#fire = fire;
  }

  trigger(): void {
    this.#isDue = true;
    if (this.#cancel === undefined) this.#run();
  }

  /** No call comes after this, unless something triggers again. */
  stop(): void {
    this.#isDue = false;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #run(): void {
    this.#cancel = undefined;
    if (!this.#isDue) return;
    this.#isDue = false;
    // Before the call, which may itself lead to a trigger.
    this.#cancel = this.#clock.after(this.#intervalMs, () => this.#run());
    this.#fire();
  }
}
