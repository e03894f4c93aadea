import type { PeerIdentity } from '../ports.ts';
import type { DocumentChanges } from '../protocol/documents.ts';
import type { Heard } from './facts.ts';

const NOTHING: Heard = {};

/** The providers' last words. Memory only: they are sent again on every new link. */
export class Hearing {
  readonly #heard = new Map<string, Heard>();

  of(clusterID: string): Heard {
    return this.#heard.get(clusterID) ?? NOTHING;
  }

  ids(): Iterable<string> {
    return this.#heard.keys();
  }

  /** Kinds that the changes do not name stay as they were. */
  take(peer: PeerIdentity, changes: Pick<DocumentChanges, 'offer' | 'grant'>): void {
    const { offer, grant } = this.of(peer.clusterID);
    const now = { offer, grant, ...defined(changes) };
    this.#heard.set(peer.clusterID, { ...defined(now), publicKey: peer.publicKey });
  }

  refuse({ clusterID, publicKey }: PeerIdentity, refusal: string): void {
    this.#heard.set(clusterID, { ...this.of(clusterID), publicKey, refusal });
  }

  /** Nothing is wanted of that provider, and no link can bring more. */
  forget(clusterID: string): void {
    this.#heard.delete(clusterID);
  }
}

function defined({ offer, grant }: { offer?: Heard['offer']; grant?: Heard['grant'] }): Heard {
  return { ...(offer !== undefined && { offer }), ...(grant !== undefined && { grant }) };
}
