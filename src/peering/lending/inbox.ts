import type { TokenVerdict } from '../identity/join-tokens.ts';
import type { PeerIdentity } from '../ports.ts';
import type { AcceptanceDocument, DocumentChanges, RequestDocument } from '../protocol/documents.ts';

/** What a peer said last, in form and signature checked; null: it has nothing to say (any more). */
export interface Heard {
  readonly request?: RequestDocument | null;
  readonly acceptance?: AcceptanceDocument | null;
  /** Since when each is null; monotonic milliseconds. */
  readonly requestSince?: number;
  readonly acceptanceSince?: number;
  /** Who said so; proved by TLS. */
  readonly peer?: PeerIdentity;
  /** What became of the join token in that request, where it was refused. */
  readonly refusedToken?: TokenVerdict;
  /** End of the last token that was handed out, RFC 3339. */
  readonly credentialExpires?: string;
}

const NOTHING: Heard = {};

/**
 * The last word of each peer. Lost at a restart without harm: a peer says everything again on every new link, and
 * until it does, what is stored stands.
 */
export class Inbox {
  readonly #heard = new Map<string, Heard>();

  get(clusterID: string): Heard {
    return this.#heard.get(clusterID) ?? NOTHING;
  }

  /** Peers that ask for something. */
  *asking(): Iterable<string> {
    for (const [clusterID, { request }] of this.#heard) if (request) yield clusterID;
  }

  hear(peer: PeerIdentity, changes: Pick<DocumentChanges, 'request' | 'acceptance'>, nowMs: number): void {
    const { clusterID } = peer;
    const { refusedToken, ...before } = this.get(clusterID);
    const { request, acceptance } = changes;
    const again = request === undefined || request?.joinToken === before.request?.joinToken;
    this.#heard.set(clusterID, {
      ...before,
      peer,
      ...(again && refusedToken !== undefined && { refusedToken }),
      ...(request !== undefined && { request }),
      ...(request === null && before.request !== null && { requestSince: nowMs }),
      ...(acceptance !== undefined && { acceptance }),
      ...(acceptance === null && before.acceptance !== null && { acceptanceSince: nowMs }),
    });
  }

  note(clusterID: string, news: Pick<Heard, 'refusedToken' | 'credentialExpires'>): void {
    this.#heard.set(clusterID, { ...this.get(clusterID), ...news });
  }

  /** As if it had said that it wants nothing, long ago. */
  withdraw(clusterID: string): void {
    this.#heard.set(clusterID, { request: null });
  }

  forget(clusterID: string): void {
    this.#heard.delete(clusterID);
  }
}
