import { amountOf, type Amounts, atLeast, parseAmounts, raiseTo, type Sums } from '../../api/amounts.ts';
import { timestamp } from '../../api/conditions.ts';
import { CLOCK_SKEW_MS } from '../../api/limits.ts';
import type { NamespaceOffer, NodeShape, Offer } from '../../api/offer.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import { canonicalText } from '../../lib/canonical-json.ts';
import { deepEqual } from '../../lib/equality.ts';
import { parseMilli } from '../../lib/quantity.ts';
import { MAX_OFFER_SECONDS } from './check.ts';
import type { OfferTerms } from './compute.ts';

/** What is lent today, before it is numbered and dated. */
export type DraftOffer = Omit<Offer, 'generation' | 'issued' | 'expires'>;

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

/** The offer of before while it still holds, else a new one under a higher number. */
export function nextOffer(state: OfferState): Offer {
  const { before, draft, policy, policyChanged, nowMs } = state;
  const { offerSeconds = DEFAULT_OFFER_SECONDS, thresholdPercent = DEFAULT_THRESHOLD_PERCENT } = policy.spec;
  const threshold = policyChanged ? 0 : thresholdPercent;
  if (before !== undefined && isCurrent(before, nowMs) && !differsEnough(before, draft, threshold)) {
    return before;
  }
  const issuedMs = Math.floor(nowMs / 1000) * 1000;
  const seconds = Math.min(Math.max(offerSeconds, 1), MAX_OFFER_SECONDS);
  return {
    ...draft,
    // By the clock, so that the numbers still rise after the PeeringRequest was deleted, and its status with it.
    generation: Math.max((before?.generation ?? 0) + 1, Math.floor(nowMs)),
    issued: timestamp(issuedMs),
    expires: timestamp(issuedMs + seconds * 1000),
  };
}

/** One that lies ahead was made before the clock was set back: peers refuse it, as `checkOffer` does. */
const isCurrent = (offer: Offer, nowMs: number): boolean =>
  nowMs < renewalOf(offer) && Date.parse(offer.issued) <= nowMs + CLOCK_SKEW_MS;

/** When an offer is to be replaced by a fresh one: at two thirds of its life. Milliseconds since the epoch. */
export function renewalOf({ issued, expires }: Pick<Offer, 'issued' | 'expires'>): number {
  const from = Date.parse(issued);
  return from + ((Date.parse(expires) - from) * 2) / 3;
}

/** Whether nothing of any resource is offered. */
export const isEmpty = ({ resources }: Pick<Offer, 'resources'>): boolean =>
  Object.values(resources).every((amount) => parseMilli(amount) === 0n);

/** The part of an offer that is compared. */
export type Comparable = OfferTerms & { namespaces?: NamespaceOffer[] };

const MOVING: readonly (keyof OfferTerms)[] = ['resources', 'shapes', 'images'];
const FIXED: readonly (keyof Comparable)[] = [
  'classes',
  'labels',
  'prices',
  'podSecurity',
  'keepForSeconds',
  'kubernetesVersion',
  'declaredFeatures',
  'defaultRequests',
  'podOverhead',
];

/**
 * Whether the offer has changed so much that the peer is to hear of it before it is renewed: an amount in all, or the
 * most that any one node lends of something, has moved by the threshold; something has come or is used up; nodes have
 * come or gone; or a word of its terms has changed. Other images alone are no news. With a threshold of 0 every
 * difference counts: give that when the policy itself has changed.
 */
export function differsEnough(previous: Comparable, next: Comparable, thresholdPercent: number): boolean {
  if (FIXED.some((field) => !deepEqual(previous[field], next[field]))) return true;
  const [before, after] = [previous.namespaces, next.namespaces];
  if (before !== undefined && after !== undefined && !deepEqual(before, after)) return true;
  if (!(thresholdPercent > 0)) return MOVING.some((field) => !deepEqual(previous[field], next[field]));
  const threshold = BigInt(Math.ceil(Math.min(thresholdPercent, 100)));
  return (
    hasMoved(parseAmounts(previous.resources), parseAmounts(next.resources), threshold) ||
    hasMoved(largest(previous.shapes), largest(next.shapes), threshold) ||
    !deepEqual(countsOf(previous.shapes), countsOf(next.shapes))
  );
}

function hasMoved(before: Amounts, after: Amounts, threshold: bigint): boolean {
  return [...new Set([...before.keys(), ...after.keys()])].some((resource) => {
    const [from, to] = [amountOf(before, resource), amountOf(after, resource)];
    if (from === to) return false;
    return from === 0n || to === 0n || atLeast(to - from, from - to) * 100n >= from * threshold;
  });
}

function largest(shapes: readonly NodeShape[]): Amounts {
  const most: Sums = new Map();
  for (const { resources } of shapes) raiseTo(most, parseAmounts(resources));
  return most;
}

/** Nodes of each kind, however much is free on them. */
function countsOf(shapes: readonly NodeShape[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { count, architecture, operatingSystem, labels = {} } of shapes) {
    const kind = canonicalText([architecture, operatingSystem, labels]);
    counts[kind] = (counts[kind] ?? 0) + count;
  }
  return counts;
}
