import type { Random } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { PacketSource } from './guard.ts';
import type { LanQuery } from './wire.ts';

/** RFC 6762, 7.2: more known answers may be on their way. */
const MORE_DELAY_MS = 400;
const MORE_SPREAD_MS = 100;
const MAX_WAITING = 64;
const MAX_KNOWN = 1000;

export interface PendingQueriesOptions {
  clock: Clock;
  random: Random;
  answer: (query: LanQuery, from: PacketSource) => void;
}

/** Puts queries together whose known answers came in several packets. */
export class PendingQueries {
  readonly #options: PendingQueriesOptions;
  readonly #waiting = new Map<string, { query: LanQuery; cancel: () => void }>();

  constructor(options: PendingQueriesOptions) {
    this.#options = options;
  }

  add(query: LanQuery, from: PacketSource): void {
    const key = `${from.address} ${from.port}`;
    const before = this.#waiting.get(key);
    if (before === undefined && !query.truncated) {
      this.#options.answer(query, from);
      return;
    }
    if (before === undefined && this.#waiting.size >= MAX_WAITING) return;
    before?.cancel();
    const whole: LanQuery = {
      ...query,
      questions: [...(before?.query.questions ?? []), ...query.questions],
      known: [...(before?.query.known ?? []), ...query.known].slice(0, MAX_KNOWN),
    };
    const finish = (): void => {
      this.#waiting.delete(key);
      this.#options.answer(whole, from);
    };
    const { clock, random } = this.#options;
    this.#waiting.set(key, {
      query: whole,
      cancel: clock.after(MORE_DELAY_MS + random() * MORE_SPREAD_MS, finish),
    });
  }

  clear(): void {
    for (const { cancel } of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }
}
