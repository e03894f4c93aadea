import { addTo, amountOf, formatAmount, isOfNodes, parseAmounts, type Sums } from '../../api/amounts.ts';
import { CLOCK_SKEW_MS, OFFER_LIMITS } from '../../api/limits.ts';
import type { NodeShape, Offer } from '../../api/offer.ts';
import type { ResourceList } from '../../api/wire.ts';
import { canonicalText } from '../../lib/canonical-json.ts';
import { anyObject, list, opaque, quoted, record, refuse, set } from '../../lib/untrusted.ts';
import { verifySignature } from '../identity/identity.ts';
import type { PeerIdentity } from '../ports.ts';
import type { OfferDocument } from '../protocol/documents.ts';
import * as terms from './terms.ts';

/** Longest life of an offer. */
export const MAX_OFFER_SECONDS = 604_800;

export interface OfferContext {
  /** The peer at the other end of the link. */
  provider: PeerIdentity;
  /** Our own ClusterID. */
  consumer: string;
  /** The number of the newest offer that we have from this provider. */
  lastGeneration: number | undefined;
  /** Its signature. It tells the same offer, sent again, from another offer under the same number. */
  lastSignature?: string;
  nowMs: number;
}

const offerParties = record({
  provider: terms.clusterID,
  consumer: terms.clusterID,
  generation: terms.generation,
});

const offerTimes = record({ issued: terms.time, expires: terms.time });

const offerTerms = record(
  {
    resources: terms.resources,
    shapes: list(terms.shape, OFFER_LIMITS.shapes),
    classes: terms.classes,
    labels: terms.labels,
    images: set(terms.image, OFFER_LIMITS.images),
    prices: terms.prices,
    namespaces: terms.namespaces,
    podSecurity: terms.podSecurity,
    keepForSeconds: terms.keepForSeconds,
  },
  {
    kubernetesVersion: terms.version,
    declaredFeatures: set(terms.feature, OFFER_LIMITS.declaredFeatures),
    defaultRequests: terms.defaultRequests,
    podOverhead: terms.resources,
  },
);

const offerDocument = record({ offer: anyObject, signature: opaque(88) });

/**
 * Checks every part of an offer that a peer has sent, and returns the fields that we know and nothing else. Throws
 * Invalid with one line that names the field. Fields that this version does not know are left out although they are
 * signed with the others; so the signature is verified here, over what was received, and not again over what is stored.
 */
export function checkOffer(document: OfferDocument, context: OfferContext): Offer {
  const { offer: received, signature } = offerDocument(document, 'offer document');
  const parties = checkedParties(received, context);
  if (!verifySignature(context.provider.publicKey, 'offer', canonicalText(received), signature)) {
    refuse('signature', 'is not that of the provider over this offer');
  }
  const offer = { ...parties, ...checkedTimes(received, context), ...offerTerms(received, 'offer') };
  refuseReplay(offer.generation, signature, context);
  refuseInflation(offer.resources, offer.shapes);
  return offer;
}

function checkedParties(
  received: unknown,
  { provider, consumer }: OfferContext,
): Pick<Offer, 'provider' | 'consumer' | 'generation'> {
  const parties = offerParties(received, 'offer');
  if (parties.provider !== provider.clusterID) {
    refuse('offer.provider', `is ${quoted(parties.provider)}, but the link proves ${provider.clusterID}`);
  }
  if (parties.consumer !== consumer) {
    refuse('offer.consumer', `is ${quoted(parties.consumer)}, but we are ${consumer}`);
  }
  return parties;
}

function checkedTimes(received: unknown, { nowMs }: OfferContext): Pick<Offer, 'issued' | 'expires'> {
  const { issued, expires } = offerTimes(received, 'offer');
  const [from, to] = [Date.parse(issued), Date.parse(expires)];
  if (from > nowMs + CLOCK_SKEW_MS) refuse('offer.issued', `lies ahead: ${issued}; compare the clocks`);
  if (to <= from) refuse('offer.expires', `does not lie after issued: ${expires}`);
  if (to - from > MAX_OFFER_SECONDS * 1000) {
    refuse('offer.expires', `is more than ${MAX_OFFER_SECONDS} s after issued: ${expires}`);
  }
  if (to + CLOCK_SKEW_MS <= nowMs) refuse('offer.expires', `has passed: ${expires}`);
  return { issued, expires };
}

function refuseReplay(
  generation: number,
  signature: string,
  { lastGeneration, lastSignature }: OfferContext,
): void {
  if (lastGeneration === undefined || generation > lastGeneration) return;
  if (generation < lastGeneration) {
    refuse('offer.generation', `is ${generation}, a replay: ${lastGeneration} was seen already`);
  }
  // An Ed25519 signature is over the text, so the same signature means the same offer.
  if (lastSignature !== undefined && lastSignature !== signature) {
    refuse('offer.generation', `${generation} has been used for another offer`);
  }
}

/** Refuses a total that the nodes behind it cannot hold: it would attract pods that never run. */
function refuseInflation(resources: ResourceList, shapes: readonly NodeShape[]): void {
  const held: Sums = new Map();
  for (const { count, resources: each } of shapes) addTo(held, parseAmounts(each), BigInt(count));
  for (const [resource, milli] of parseAmounts(resources)) {
    const most = amountOf(held, resource);
    if (milli <= most || !isOfNodes(resource)) continue;
    refuse(
      `offer.resources[${quoted(resource)}]`,
      `is ${formatAmount(resource, milli)}, but all shapes together hold ${formatAmount(resource, most)}`,
    );
  }
}
