import { amountOf, type Amounts, atLeast, parseAmounts, raiseTo, type Sums } from '../../api/amounts.ts';
import type { NamespaceOffer, NodeShape } from '../../api/offer.ts';
import { canonicalText } from '../../lib/canonical-json.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { OfferTerms } from './compute.ts';

/** An offer, or as much of it as is compared. */
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
