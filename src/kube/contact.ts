import type { Clock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/errors.ts';
import { Listeners } from '../lib/listeners.ts';

/** What we know about our connection to an API server. */
export interface ContactState {
  /** Monotonic ms of the last sign of life; -Infinity before the first. */
  readonly lastOkAt: number;
  /** Monotonic ms since when nothing succeeded; undefined while all is well. */
  readonly failingSince: number | undefined;
  /** The cause, in one line. */
  readonly error: string | undefined;
  /** The code of that error; also undefined if it is not one of our errors. */
  readonly code?: ErrorCode | undefined;
  /** HTTP status, if there was an answer. An API group that nobody serves gives a plain 404, which is not our NotFound. */
  readonly status?: number | undefined;
}

/** Derives a state from single outcomes. Tells listeners when it turns from good to bad or back, and of each new error. */
export class Contact {
  readonly #clock: Clock;
  readonly #changed = new Listeners();
  readonly onChange: Listeners['add'] = this.#changed.add;
  #state: ContactState = { lastOkAt: -Infinity, failingSince: undefined, error: undefined };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get state(): ContactState {
    return this.#state;
  }

  succeeded(): void {
    const { failingSince, lastOkAt } = this.#state;
    this.#state = { lastOkAt: this.#clock.monotonic(), failingSince: undefined, error: undefined };
    if (failingSince !== undefined || lastOkAt === -Infinity) this.#changed.tell();
  }

  failed(
    error: string,
    { code, status }: { code?: ErrorCode | undefined; status?: number | undefined } = {},
  ): void {
    const { lastOkAt, failingSince, error: before } = this.#state;
    this.#state = { lastOkAt, failingSince: failingSince ?? this.#clock.monotonic(), error, code, status };
    if (failingSince === undefined || before !== error) this.#changed.tell();
  }
}
