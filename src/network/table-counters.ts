import type { Basics } from '../lib/basics.ts';
import { errorMessage } from '../lib/errors.ts';

/** Counters of the host's rules by their comment. */
export type Counters = ReadonlyMap<string, { readonly packets: number }>;

interface TableCountersOptions extends Basics {
  list: () => Promise<Counters>;
}

/** Anybody may scrape at any rate, and each reading starts `nft`. */
const COUNT_MS = 10_000;

/** Counters of one table: read when somebody asks, and not by a timer, since only people want them. */
export class TableCounters {
  readonly #options: TableCountersOptions;
  #last: Promise<Counters> = Promise.resolve(new Map());
  /** Monotonic. */
  #readAt = -Infinity;
  #said = '';

  constructor(options: TableCountersOptions) {
    this.#options = options;
  }

  /** At most 10 s old. Empty where they cannot be read, so that other metrics are shown all the same. */
  readonly read = async (): Promise<Counters> => {
    const now = this.#options.clock.monotonic();
    if (now - this.#readAt >= COUNT_MS) {
      this.#readAt = now;
      this.#last = this.#list();
    }
    return this.#last;
  };

  async #list(): Promise<Counters> {
    const { list, log } = this.#options;
    try {
      const counters = await list();
      this.#said = '';
      return counters;
    } catch (error) {
      const said = errorMessage(error);
      if (said !== this.#said) log.warn('refused packets cannot be counted', { error: said });
      this.#said = said;
      return new Map();
    }
  }
}
