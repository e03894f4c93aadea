import type { NetworkDocument } from '../../api/peer-documents.ts';
import type { Heard } from './tunnel-spec.ts';

export interface InboxOptions {
  isPeered: (clusterID: string) => boolean;
  /** Who has no link says everything again on the next one. */
  isLinked: (clusterID: string) => boolean;
}

/** A peer is peered for us a moment later than we are for it; for so many at once its words are kept until then. */
const MAX_EARLY = 32;

/**
 * The last word of each peer. Lost at a restart without harm: it is said again on every new link. Of those with whom we
 * do not peer few are kept, and only while they are there.
 */
export class Inbox {
  readonly #options: InboxOptions;
  readonly #heard = new Map<string, NetworkDocument | null>();

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  get(clusterID: string): Heard {
    return this.#heard.get(clusterID);
  }

  get size(): number {
    return this.#heard.size;
  }

  /** Whether it is kept. */
  hear(clusterID: string, document: NetworkDocument | null): boolean {
    const { isPeered } = this.#options;
    if (!isPeered(clusterID)) {
      this.#heard.delete(clusterID);
      this.#sweep();
      if (document === null) return true;
      const early = [...this.#heard.keys()].filter((id) => !isPeered(id));
      if (early.length >= MAX_EARLY) return false;
    }
    this.#heard.set(clusterID, document);
    return true;
  }

  /** After a peering has ended: what it says while it is still linked may be for the next one. */
  forget(clusterID: string): void {
    const { isLinked } = this.#options;
    if (this.#heard.get(clusterID) === null || !isLinked(clusterID)) this.#heard.delete(clusterID);
  }

  #sweep(): void {
    const { isPeered, isLinked } = this.#options;
    for (const id of this.#heard.keys()) if (!isPeered(id) && !isLinked(id)) this.#heard.delete(id);
  }
}
