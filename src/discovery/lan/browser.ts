import type { Random } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ServiceCache } from './cache.ts';
import { SERVICE_NAME } from './instance.ts';
import type { LanLink } from './link.ts';
import { type LanQuestion, type LanRecord, queryPackets } from './wire.ts';

/** RFC 6762, 5.2: the first query after 20 to 120 ms, then 1 s, and every interval twice the one before. */
const FIRST_DELAY_MS = 20;
const FIRST_SPREAD_MS = 100;
const FIRST_INTERVAL_MS = 1000;
/** A flood of names must not make us send a flood of questions. */
const MAX_QUESTIONS = 60;
const QUESTIONS_PER_PACKET = 15;
const MAX_KNOWN_ANSWERS = 200;
/** Sweeps that are due nearer together become one. */
const MIN_SWEEP_MS = 25;

export interface BrowserOptions {
  clock: Clock;
  random: Random;
  cache: ServiceCache;
  links: () => Iterable<LanLink>;
  /** Longest time between two browse queries. */
  maxIntervalMs: number;
}

/** Asks on all links of one interface for instances, for what is missing of them, and for what is about to expire. */
export class Browser {
  readonly #options: BrowserOptions;
  #cancelQuery = (): void => undefined;
  #cancelSweep = (): void => undefined;
  #sweepAt = Infinity;

  constructor(options: BrowserOptions) {
    this.#options = options;
  }

  /** Begins to ask, also anew when a link was added. */
  start(): void {
    const { clock, random } = this.#options;
    this.#cancelQuery();
    this.#cancelQuery = clock.after(FIRST_DELAY_MS + random() * FIRST_SPREAD_MS, () =>
      this.#browse(FIRST_INTERVAL_MS),
    );
  }

  stop(): void {
    this.#cancelQuery();
    this.#cancelSweep();
  }

  receive(records: readonly LanRecord[], source: string): void {
    this.#sweepBy(this.#options.cache.receive(records, source));
  }

  #browse(nextMs: number): void {
    const { clock, cache, maxIntervalMs } = this.#options;
    this.#send([{ name: SERVICE_NAME, type: 'PTR' }], cache.knownAnswers(MAX_KNOWN_ANSWERS));
    const interval = Math.min(nextMs, maxIntervalMs);
    this.#cancelQuery = clock.after(interval, () => this.#browse(interval * 2));
  }

  #sweepBy(at: number): void {
    if (at >= this.#sweepAt) return;
    const { clock } = this.#options;
    this.#cancelSweep();
    this.#sweepAt = at;
    this.#cancelSweep = clock.after(Math.max(at - clock.monotonic(), MIN_SWEEP_MS), () => this.#sweep());
  }

  #sweep(): void {
    this.#sweepAt = Infinity;
    const { questions, nextAt } = this.#options.cache.sweep();
    const asked = questions.slice(0, MAX_QUESTIONS);
    for (let from = 0; from < asked.length; from += QUESTIONS_PER_PACKET) {
      this.#send(asked.slice(from, from + QUESTIONS_PER_PACKET), []);
    }
    this.#sweepBy(nextAt);
  }

  #send(questions: readonly LanQuestion[], known: readonly LanRecord[]): void {
    for (const link of this.#options.links()) {
      for (const packet of queryPackets({ questions, known })) void link.send(packet);
    }
  }
}
