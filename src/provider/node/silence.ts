import type { Clock } from '../../lib/clock.ts';

/** What takes so much longer than it was given was not slow: this process did not run. Milliseconds. */
const STOPPED_MS = 2_000;

/**
 * For how long another side has been silent while this process listened, in milliseconds. It counts by a clock that nobody sets,
 * and it begins anew after this process was stopped or suspended: what was said in that time has not been heard yet.
 */
export class Silence {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #ms = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  get ms(): number {
    return this.#ms;
  }

  /** There was an answer. */
  end(): void {
    this.#ms = 0;
  }

  /**
   * Counts what `part` takes.
   *
   * @param mostMs what it may take, milliseconds
   * @returns false if this process did not run for some of that time: then nothing is known
   */
  async during(mostMs: number, part: () => Promise<unknown>): Promise<boolean> {
    const began = this.#clock.monotonic();
    await part();
    const tookMs = this.#clock.monotonic() - began;
    const wasAwake = tookMs <= mostMs + STOPPED_MS;
    this.#ms = wasAwake ? this.#ms + tookMs : 0;
    return wasAwake;
  }
}
