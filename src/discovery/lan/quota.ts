/** A place for one thing that is kept. */
export interface Place {
  /** What has the place was confirmed: it is the youngest of its source again. */
  touch(): void;
  release(): void;
}

interface Entry {
  source: string;
  evict: () => void;
}

/**
 * A limited number of places, shared fairly by the sources of what is kept. When all are taken, the source that holds the most loses
 * the place that was confirmed the longest ago. So a flood displaces itself and nobody else. Where every source holds one place, a
 * newcomer is refused: those that were there first, and are confirmed again and again, stay.
 */
export class Quota {
  readonly #limit: number;
  readonly #bySource = new Map<string, Set<Entry>>();
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#size;
  }

  /** Undefined where there is no place. `evict` is called when the place is taken away; it need not release it. */
  admit(source: string, evict: () => void): Place | undefined {
    if (this.#size >= this.#limit && !this.#makeRoom()) return undefined;
    const entry: Entry = { source, evict };
    this.#add(entry);
    return {
      touch: () => {
        if (this.#remove(entry)) this.#add(entry);
      },
      release: () => void this.#remove(entry),
    };
  }

  #makeRoom(): boolean {
    let most: Set<Entry> = new Set();
    for (const entries of this.#bySource.values()) if (entries.size > most.size) most = entries;
    const [oldest] = most;
    if (oldest === undefined || most.size < 2) return false;
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
