import type { Clock } from '../../lib/clock.ts';
import { onGridMs } from '../../lib/grid.ts';

export interface HeartbeatOptions {
  clock: Clock;
  /** Between two pings. */
  intervalMs: number;
  /** How many in a row may stay without a sign of life. */
  misses: number;
  ping: () => void;
  /** The peer cannot be heard because of us. */
  isDeaf: () => boolean;
  dead: () => void;
}

/** All links of a process share a grid, so that many wake it hardly more often than one. Part of the interval. */
const GRID = 0.5;
/** One of so many pings is sent even if the other end asks: how long an answer takes is shown. */
const MEASURED = 12;

/**
 * Asks now and then whether the other end is there, and measures how long the answer takes. While the other end asks, that is a sign
 * of life as good, and one of both is enough. When it does not any more, that is the first miss.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #cancel = (): void => undefined;
  #pingedAt: number | undefined;
  #missed = 0;
  /** Since the last beat. */
  #wasAsked = false;
  /** The other end asks instead of us. */
  #listens = false;
  #beats = 0;
  #rttMs: number | undefined;
  readonly #probes = new Set<(alive: boolean) => void>();

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  get rttMs(): number | undefined {
    return this.#rttMs;
  }

  start(): void {
    this.#ping();
    this.#schedule();
  }

  stop(): void {
    this.#cancel();
    this.#settle(false);
  }

  /** Whether it answers within `ms`, beginning now. */
  async probe(ms: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const cancel = this.#options.clock.after(ms, () => resolve(false));
    this.#probes.add(resolve);
    this.#ping();
    try {
      return await promise;
    } finally {
      cancel();
      this.#probes.delete(resolve);
    }
  }

  pong(): void {
    if (this.#pingedAt !== undefined) this.#rttMs = this.#options.clock.monotonic() - this.#pingedAt;
    this.#pingedAt = undefined;
    this.#missed = 0;
    this.#settle(true);
  }

  /** The other end has asked. */
  asked(): void {
    this.#wasAsked = true;
  }

  /** Called when something has come that is no answer to a ping. */
  heard(): void {
    this.#missed = 0;
  }

  #settle(alive: boolean): void {
    for (const resolve of this.#probes) resolve(alive);
    this.#probes.clear();
  }

  #ping(): void {
    this.#pingedAt ??= this.#options.clock.monotonic();
    this.#options.ping();
  }

  /** Schedules one beat at a time: a process that stood still for long counts one miss and not many. */
  #schedule(): void {
    const { clock, intervalMs } = this.#options;
    this.#cancel = clock.after(onGridMs(clock.monotonic(), intervalMs, intervalMs * GRID), () =>
      this.#beat(),
    );
  }

  #beat(): void {
    const { misses, isDeaf, dead } = this.#options;
    const wasAsked = this.#wasAsked;
    this.#wasAsked = false;
    const isMiss = this.#pingedAt !== undefined || (this.#listens && !wasAsked);
    if (isMiss && !isDeaf()) this.#missed++;
    if (this.#missed >= misses) return dead();
    this.#beats += 1;
    this.#listens = wasAsked && !isMiss && this.#beats % MEASURED !== 0;
    if (!this.#listens) this.#ping();
    this.#schedule();
  }
}
