import { addTo, amountOf, formatAmount, isOfNodes, parseAmounts, type Sums } from '../../api/amounts.ts';
import { CLOCK_SKEW_MS, MAX_LABELS, OFFER_LIMITS } from '../../api/limits.ts';
import type { NodeShape, Offer } from '../../api/offer.ts';
import type { ResourceList } from '../../api/wire.ts';
import { canonicalText } from '../../lib/canonical-json.ts';
import * as read from '../../lib/untrusted.ts';
import { verifySignature } from '../identity/identity.ts';
import type { PeerIdentity } from '../ports.ts';
import type { OfferDocument } from '../protocol/documents.ts';
import { classesAt, featureAt, imageAt, labelsAt, shapeAt, versionAt } from './items.ts';
import * as terms from './terms.ts';

/** Longest life of an offer. */
export const MAX_OFFER_SECONDS = 604_800;

export interface OfferContext {
  /** Whoever is at the other end of the link. */
  provider: PeerIdentity;
  /** Our own ClusterID. */
  consumer: string;
  /** Of the newest offer that we have from this provider. */
  lastGeneration: number | undefined;
  /** Its signature; with it, the same offer sent again is told from another one under its number. */
  lastSignature?: string;
  nowMs: number;
}

/**
 * An offer as a peer sent it, checked in every part: returns the fields that we know and nothing else. Throws Invalid
 * with one line that names the field. Fields that this version does not know are left out, but they are signed with
 * the rest; so the signature is verified here, over what was received, and not again over what is stored.
 */
export function checkOffer(document: OfferDocument, context: OfferContext): Offer {
  const { offer: received, signature } = read.objectAt('offer document', document);
  const json = read.objectAt('offer', received);
  const parties = checkedParties(json, context);
  const proof = read.textAt('signature', signature, 88);
  if (!verifySignature(context.provider.publicKey, 'offer', canonicalText(json), proof)) {
    read.refuse('signature', 'is not that of the provider over this offer');
  }
  const offer = { ...parties, ...checkedTimes(json, context), ...checkedTerms(json) };
  refuseReplay(offer.generation, proof, context);
  refuseInflation(offer.resources, offer.shapes);
  return offer;
}

function checkedParties(
  json: read.Json,
  { provider, consumer }: OfferContext,
): Pick<Offer, 'provider' | 'consumer' | 'generation'> {
  const from = read.textAt('provider', read.own(json, 'provider'), 26);
  if (from !== provider.clusterID) {
    read.refuse('provider', `is ${read.quoted(from)}, but the link proves ${provider.clusterID}`);
  }
  const to = read.textAt('consumer', read.own(json, 'consumer'), 26);
  if (to !== consumer) read.refuse('consumer', `is ${read.quoted(to)}, but we are ${consumer}`);
  return {
    provider: from,
    consumer: to,
    generation: terms.generationAt('generation', read.own(json, 'generation')),
  };
}

function checkedTimes(json: read.Json, { nowMs }: OfferContext): Pick<Offer, 'issued' | 'expires'> {
  const issued = terms.timeAt('issued', read.own(json, 'issued'));
  const expires = terms.timeAt('expires', read.own(json, 'expires'));
  const [from, to] = [Date.parse(issued), Date.parse(expires)];
  if (from > nowMs + CLOCK_SKEW_MS) read.refuse('issued', `lies ahead: ${issued}; compare the clocks`);
  if (to <= from) read.refuse('expires', `does not lie after issued: ${expires}`);
  if (to - from > MAX_OFFER_SECONDS * 1000) {
    read.refuse('expires', `is more than ${MAX_OFFER_SECONDS} s after issued: ${expires}`);
  }
  if (to + CLOCK_SKEW_MS <= nowMs) read.refuse('expires', `has passed: ${expires}`);
  return { issued, expires };
}

type Terms = Omit<Offer, 'provider' | 'consumer' | 'generation' | 'issued' | 'expires'>;

function checkedTerms(json: read.Json): Terms {
  const { shapes, images, declaredFeatures: features } = OFFER_LIMITS;
  const [version, declared] = [read.own(json, 'kubernetesVersion'), read.own(json, 'declaredFeatures')];
  return {
    resources: terms.resourcesAt('resources', read.own(json, 'resources')),
    shapes: read.listAt('shapes', read.own(json, 'shapes'), { most: shapes, item: shapeAt }),
    classes: classesAt('classes', read.own(json, 'classes')),
    labels: labelsAt('labels', read.own(json, 'labels'), MAX_LABELS),
    images: read.setAt('images', read.own(json, 'images'), { most: images, item: imageAt }),
    prices: terms.pricesAt('prices', read.own(json, 'prices')),
    namespaces: terms.namespacesAt('namespaces', read.own(json, 'namespaces')),
    podSecurity: terms.podSecurityAt('podSecurity', read.own(json, 'podSecurity')),
    keepForSeconds: terms.keepForSecondsAt('keepForSeconds', read.own(json, 'keepForSeconds')),
    ...(version !== undefined && { kubernetesVersion: versionAt('kubernetesVersion', version) }),
    ...(declared !== undefined && {
      declaredFeatures: read.setAt('declaredFeatures', declared, { most: features, item: featureAt }),
    }),
  };
}

function refuseReplay(
  generation: number,
  signature: string,
  { lastGeneration, lastSignature }: OfferContext,
): void {
  if (lastGeneration === undefined || generation > lastGeneration) return;
  if (generation < lastGeneration) {
    read.refuse('generation', `is ${generation}, a replay: ${lastGeneration} was seen already`);
  }
  // An Ed25519 signature is over the text, so the same signature means the same offer.
  if (lastSignature !== undefined && lastSignature !== signature) {
    read.refuse('generation', `${generation} has been used for another offer`);
  }
}

/** A total that the nodes behind it cannot hold attracts pods that will never run. */
function refuseInflation(resources: ResourceList, shapes: readonly NodeShape[]): void {
  const held: Sums = new Map();
  for (const { count, resources: each } of shapes) addTo(held, parseAmounts(each), BigInt(count));
  for (const [resource, milli] of parseAmounts(resources)) {
    const most = amountOf(held, resource);
    if (milli <= most || !isOfNodes(resource)) continue;
    read.refuse(
      `resources[${read.quoted(resource)}]`,
      `is ${formatAmount(resource, milli)}, but all shapes together hold ${formatAmount(resource, most)}`,
    );
  }
}
