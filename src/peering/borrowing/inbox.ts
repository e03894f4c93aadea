import type { AdvertisementSpec } from '../../api/advertisement.ts';
import type { EventRecorder, EventSubject } from '../../kube/events.ts';
import type { Basics } from '../../lib/basics.ts';
import { errorMessage, hasCode, TributaryError } from '../../lib/errors.ts';
import { LastWords } from '../../lib/last-words.ts';
import { isSignedBy } from '../contract.ts';
import { checkOffer } from '../offer/check.ts';
import type { OwnIdentity, PeerIdentity } from '../ports.ts';
import type { DocumentChanges, GrantDocument, OfferDocument } from '../protocol/documents.ts';
import type { ReceivedDocuments } from './facts.ts';
import { BORROWING_EVENTS } from './status.ts';

interface ProviderInboxOptions extends Basics {
  identity: OwnIdentity;
  events: EventRecorder;
  /** The offer that the provider's Advertisement holds. */
  keptOffer: (clusterID: string) => Pick<AdvertisementSpec, 'offer' | 'signature'> | undefined;
  /** What people look at to learn of that provider. */
  subjectOf: (clusterID: string) => EventSubject | undefined;
}

/** What each provider has said last, as far as it was right. */
export class ProviderInbox {
  readonly #options: ProviderInboxOptions;
  readonly #received = new LastWords<ReceivedDocuments>();

  constructor(options: ProviderInboxOptions) {
    this.#options = options;
  }

  of(clusterID: string): ReceivedDocuments {
    return this.#received.of(clusterID);
  }

  ids(): Iterable<string> {
    return this.#received.ids();
  }

  /** Nothing is wanted of that provider, and no link can bring more. */
  forget(clusterID: string): void {
    this.#received.forget(clusterID);
  }

  /**
   * Takes what is right, each document by itself: what is wrong with one is no reason to miss the other. A kind that
   * `changes` does not name stays as it was. Returns what is wrong, for the provider to read.
   */
  take(peer: PeerIdentity, { offer, grant }: Pick<DocumentChanges, 'offer' | 'grant'>): string[] {
    const problems = [
      grant === undefined ? undefined : this.#tryTo(peer, () => ({ grant: checkedGrant(peer, grant) })),
      offer === undefined ? undefined : this.#tryTo(peer, () => ({ offer: this.#checkedOffer(peer, offer) })),
    ];
    return problems.filter((problem) => problem !== undefined);
  }

  #tryTo(peer: PeerIdentity, check: () => Pick<ReceivedDocuments, 'offer' | 'grant'>): string | undefined {
    try {
      const checked = check();
      const { refusal: _refusal, ...before } = this.of(peer.clusterID);
      this.#received.replace(peer.clusterID, { ...before, ...checked, publicKey: peer.publicKey });
      return undefined;
    } catch (error) {
      if (!hasCode(error, 'Invalid')) throw error;
      this.#refuse(peer, errorMessage(error));
      return errorMessage(error);
    }
  }

  /** What is in place stays as it is. */
  #refuse({ clusterID, publicKey }: PeerIdentity, refusal: string): void {
    const { events, log, subjectOf } = this.#options;
    const before = this.of(clusterID);
    this.#received.update(clusterID, { publicKey, refusal });
    if (before.refusal === refusal) return;
    log.warn('refused what a provider sent', { peer: clusterID, error: refusal });
    const subject = subjectOf(clusterID);
    if (subject !== undefined) events.event(subject, 'Warning', BORROWING_EVENTS.invalid, refusal);
  }

  /** Against the newest offer that we know of, so that an older one that is sent again is refused. */
  #checkedOffer(peer: PeerIdentity, document: OfferDocument | null): OfferDocument | null {
    if (document === null) return null;
    const { identity, clock, keptOffer } = this.#options;
    const kept = keptOffer(peer.clusterID);
    const received = this.of(peer.clusterID).offer ?? undefined;
    const isNewer = kept === undefined || (received?.offer.generation ?? 0) >= kept.offer.generation;
    const last = isNewer ? (received ?? kept) : kept;
    const offer = checkOffer(document, {
      provider: peer,
      consumer: identity.clusterID,
      lastGeneration: last?.offer.generation,
      ...(last && { lastSignature: last.signature }),
      nowMs: clock.now(),
    });
    return { offer, signature: document.signature };
  }
}

/** Whether the contract is the one that we mean is seen later; that its signature is the provider's is checked now. */
function checkedGrant(peer: PeerIdentity, grant: GrantDocument | null): GrantDocument | null {
  const { contract } = grant ?? {};
  if (contract !== undefined && !isSignedBy(peer, contract.text, contract.signature)) {
    throw new TributaryError('Invalid', 'the signature of the contract is not that of the provider');
  }
  return grant;
}
