/** A place for one thing that is kept. */
export interface Place {
  /** What has the place was confirmed, or used: it is the youngest of its source again. */
  touch(): void;
  release(): void;
}

interface Entry {
  source: string;
  touchedMs: number;
  evict: () => void;
}

/** What a newcomer finds where all places are taken. */
export interface Rivals {
  /** Places of the source that holds the most. */
  most: number;
  /** Places of the newcomer's source. */
  own: number;
  /** For how long nobody has touched the place that would be taken away, the oldest of that source. */
  untouchedMs: number;
}

export interface QuotaRule {
  /** Milliseconds that never go back. */
  now: () => number;
  /** Whether the oldest place of the source that holds the most is taken away for the newcomer. */
  givesWay: (rivals: Rivals) => boolean;
}

/**
 * A flood displaces itself and nobody else. Where every source holds one place, a newcomer is refused: those that were there first, and
 * are confirmed again and again, stay.
 */
const NEWEST: QuotaRule = { now: () => 0, givesWay: ({ most }) => most > 1 };

/**
 * A limited number of places, shared fairly by the sources of what is kept. When all are taken, the source that holds the most loses
 * the place that was touched the longest ago, if the rule says so; else the newcomer is refused.
 */
export class Quota {
  readonly #limit: number;
  readonly #rule: QuotaRule;
  /** Of each source, those that were touched the longest ago come first. */
  readonly #bySource = new Map<string, Set<Entry>>();
  #size = 0;

  constructor(limit: number, rule: QuotaRule = NEWEST) {
    this.#limit = limit;
    this.#rule = rule;
  }

  get size(): number {
    return this.#size;
  }

  /** Undefined where there is no place. `evict` is called when the place is taken away; it need not release it. */
  admit(source: string, evict: () => void): Place | undefined {
    if (this.#size >= this.#limit && !this.#makeRoom(source)) return undefined;
    const entry: Entry = { source, evict, touchedMs: this.#rule.now() };
    this.#add(entry);
    return {
      touch: () => {
        if (!this.#remove(entry)) return;
        entry.touchedMs = this.#rule.now();
        this.#add(entry);
      },
      release: () => void this.#remove(entry),
    };
  }

  #makeRoom(newcomer: string): boolean {
    let most: Set<Entry> = new Set();
    for (const entries of this.#bySource.values()) if (entries.size > most.size) most = entries;
    const [oldest] = most;
    if (oldest === undefined) return false;
    const rivals = {
      most: most.size,
      own: this.#bySource.get(newcomer)?.size ?? 0,
      untouchedMs: this.#rule.now() - oldest.touchedMs,
    };
    if (!this.#rule.givesWay(rivals)) return false;
    this.#remove(oldest);
    oldest.evict();
    return true;
  }

  #add(entry: Entry): void {
    const entries = this.#bySource.get(entry.source) ?? new Set();
    this.#bySource.set(entry.source, entries.add(entry));
    this.#size++;
  }

  #remove(entry: Entry): boolean {
    const entries = this.#bySource.get(entry.source);
    if (entries?.delete(entry) !== true) return false;
    if (entries.size === 0) this.#bySource.delete(entry.source);
    this.#size--;
    return true;
  }
}
