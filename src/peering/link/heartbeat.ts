import type { Clock } from '../../lib/clock.ts';

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

/** Asks now and then whether the other end is there, and measures how long the answer takes. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #cancel = (): void => undefined;
  #pingedAt: number | undefined;
  #missed = 0;
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

  /** Schedules one ping at a time: a process that stood still for long counts one miss and not many. */
  #schedule(): void {
    const { clock, intervalMs, misses, isDeaf, dead } = this.#options;
    this.#cancel = clock.after(intervalMs, () => {
      if (this.#pingedAt !== undefined && !isDeaf()) this.#missed++;
      if (this.#missed >= misses) return dead();
      this.#ping();
      this.#schedule();
    });
  }
}
