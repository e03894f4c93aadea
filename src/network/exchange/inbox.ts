import type { NetworkDocument } from '../../api/peer-documents.ts';
import type { Heard } from './tunnel-spec.ts';

export interface InboxOptions {
  isPeered: (clusterID: string) => boolean;
  /** A peer without a link says everything again on the next link. */
  isLinked: (clusterID: string) => boolean;
}

/** A peer may be peered with us a moment before we are with it. The documents of so many such clusters are kept until then. */
const MAX_EARLY = 32;

/**
 * The last document of each peer. A restart loses it without harm, since it is said again on every new link. Of clusters that are not
 * peered with us only a few are kept, and only while they have a link.
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

  /** Returns whether the document is kept. */
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

  /** Called after a peering has ended. What a peer that still has a link has said may be meant for the next peering, and stays. */
  forget(clusterID: string): void {
    const { isLinked } = this.#options;
    if (this.#heard.get(clusterID) === null || !isLinked(clusterID)) this.#heard.delete(clusterID);
  }

  #sweep(): void {
    const { isPeered, isLinked } = this.#options;
    for (const id of this.#heard.keys()) if (!isPeered(id) && !isLinked(id)) this.#heard.delete(id);
  }
}
