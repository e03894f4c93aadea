import type { Clock } from '../../lib/clock.ts';

/**
 * How long there has been no link to the other cluster, by the monotonic clock. A machine that slept finds its wall clock hours
 * ahead, and must have its time to dial before that counts as a loss. What passed before this program began is known by the wall
 * clock alone.
 */
export class Silence {
  readonly #clock: Clock;
  /** Monotonic; undefined while there is a link. */
  #since: number | undefined;
  #hasLooked = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Milliseconds; undefined while there is a link.
   *
   * @param contactLost when the link was lost, as it was written down
   */
  lookMs(isLinked: boolean, contactLost: string | undefined): number | undefined {
    const before = this.#hasLooked ? Number.NaN : Date.parse(contactLost ?? '');
    this.#hasLooked = true;
    if (isLinked) {
      this.#since = undefined;
      return undefined;
    }
    const now = this.#clock.monotonic();
    const passed = Number.isNaN(before) ? 0 : Math.max(0, this.#clock.now() - before);
    this.#since ??= now - passed;
    return now - this.#since;
  }
}
