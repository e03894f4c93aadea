import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';

/** At most one line for each cause in this time, with the number of refusals so far. */
const QUIET_MS = 60_000;
const MAX_CAUSES = 64;

/** Logs why packets of strangers are refused. A flood of packets must not become a flood of lines. */
export class Refusals {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #saidAt = new Map<string, number>();
  readonly #counts = new Map<string, number>();

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** How many were refused since the start, by cause. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  add(cause: string, source: string): void {
    const why = this.#counts.has(cause) || this.#counts.size < MAX_CAUSES ? cause : 'other';
    const count = (this.#counts.get(why) ?? 0) + 1;
    this.#counts.set(why, count);
    const now = this.#clock.monotonic();
    if (now - (this.#saidAt.get(why) ?? -Infinity) < QUIET_MS) return;
    this.#saidAt.set(why, now);
    this.#log.warn('mDNS packet or announcement refused', { why, source, soFar: count });
  }
}
