import { timestamp } from '../../api/conditions.ts';
import type { NamespaceOffer, Offer } from '../../api/offer.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import { parseMilli } from '../../lib/quantity.ts';
import { MAX_OFFER_SECONDS } from '../offer/check.ts';

/** What is lent today, before it is numbered and dated. */
export type DraftOffer = Omit<Offer, 'generation' | 'issued' | 'expires'>;

/** Where offers come from: the free resources of this cluster, see src/peering/offer/stock-offers.ts. */
export interface OfferSource {
  /** Throws Invalid for quantities of the policy that cannot be read. */
  terms(consumer: string, policy: SharingPolicy, namespaces: readonly NamespaceOffer[]): DraftOffer;
  /** Whether the difference is worth telling. With a threshold of 0 every difference is. */
  differs(before: Offer, now: DraftOffer, thresholdPercent: number): boolean;
  /** Requests of the peer's pods here. */
  used(consumer: string): ResourceList;
  /** Calls back when what is free or used may have changed. */
  onChange(listener: () => void): () => void;
}

const DEFAULT_OFFER_SECONDS = 3600;
const DEFAULT_THRESHOLD_PERCENT = 10;

export interface OfferState {
  /** The offer of today, if it bears our signature. */
  before: Offer | undefined;
  draft: DraftOffer;
  policy: SharingPolicy;
  /** The policy has changed since `before` was made, so that any difference counts. */
  policyChanged: boolean;
  nowMs: number;
}

/** The same offer where it still holds, else a new one under a higher number. */
export function nextOffer(source: Pick<OfferSource, 'differs'>, state: OfferState): Offer {
  const { before, draft, policy, policyChanged, nowMs } = state;
  const { offerSeconds = DEFAULT_OFFER_SECONDS, thresholdPercent = DEFAULT_THRESHOLD_PERCENT } = policy.spec;
  const threshold = policyChanged ? 0 : thresholdPercent;
  if (before !== undefined && nowMs < renewalOf(before) && !source.differs(before, draft, threshold)) {
    return before;
  }
  const issuedMs = Math.floor(nowMs / 1000) * 1000;
  const seconds = Math.min(Math.max(offerSeconds, 1), MAX_OFFER_SECONDS);
  return {
    ...draft,
    // By the clock, so that the numbers go on rising when the PeeringRequest was deleted and its status with it.
    generation: Math.max((before?.generation ?? 0) + 1, Math.floor(nowMs)),
    issued: timestamp(issuedMs),
    expires: timestamp(issuedMs + seconds * 1000),
  };
}

/** When an offer is to be replaced by a fresh one: at two thirds of its life. Milliseconds since the epoch. */
export function renewalOf({ issued, expires }: Pick<Offer, 'issued' | 'expires'>): number {
  const from = Date.parse(issued);
  return from + ((Date.parse(expires) - from) * 2) / 3;
}

/** Nothing of anything. */
export const isEmpty = ({ resources }: Pick<Offer, 'resources'>): boolean =>
  Object.values(resources).every((amount) => parseMilli(amount) === 0n);

/**
 * What a peer may use: as agreed, but never more than is lent today, whether or not it has signed the smaller offer
 * yet. A resource that is no longer offered counts zero.
 */
export function amountsOf(agreed: ResourceList, lent: ResourceList): ResourceList {
  return Object.fromEntries(
    Object.entries(agreed).map(([resource, amount]) => {
      const most = lent[resource] ?? '0';
      return [resource, parseMilli(amount) > parseMilli(most) ? most : amount];
    }),
  );
}

/** What is used beyond what was agreed, as `cpu 3 of 2`; undefined where nothing is. */
export function breachOf(used: ResourceList, agreed: ResourceList): string | undefined {
  const above = Object.entries(used).filter(
    ([resource, amount]) => parseMilli(amount) > parseMilli(agreed[resource] ?? '0'),
  );
  if (above.length === 0) return undefined;
  return above.map(([resource, amount]) => `${resource} ${amount} of ${agreed[resource] ?? '0'}`).join(', ');
}
