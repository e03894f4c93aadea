import {
  addTo,
  amountOf,
  type Amounts,
  atMost,
  formatAmounts,
  isCounted,
  stepOf,
  type Sums,
} from '../../api/amounts.ts';
import { OFFER_LIMITS } from '../../api/limits.ts';
import type { NodeShape } from '../../api/offer.ts';
import { canonicalText } from '../../lib/canonical-json.ts';
import { compareSizes } from './node-sizes.ts';

/** The share of one node that is lent. */
export interface NodeShare {
  architecture: string;
  operatingSystem: string;
  labels: Readonly<Record<string, string>>;
  amounts: Amounts;
}

/** So many at most, so that a large cluster's offer stays a small message; a consumer takes more. */
export const MOST_SHAPES = 64;
/** Leading binary digits that are kept of an amount, tried in this order until the shapes are few enough. */
const PRECISIONS: readonly number[] = [Infinity, 6, 5, 4, 3, 2, 1];

/**
 * Nodes of a kind together, largest first. Where they are too many, amounts are rounded down ever more coarsely, so
 * that like nodes fall together; what is still too much are the smallest ones, and they are left out. Returns also
 * what all the shapes hold.
 */
export function groupShares(shares: readonly NodeShare[]): { shapes: NodeShape[]; held: Sums } {
  const kinds = shares.map((share) => ({ share, kind: kindOf(share) }));
  let groups: Group[] = [];
  for (const precision of PRECISIONS) {
    groups = grouped(kinds, precision);
    if (groups.length <= MOST_SHAPES) break;
  }
  const kept = groups.toSorted(bySize).slice(0, MOST_SHAPES);
  const held: Sums = new Map();
  for (const { count, amounts } of kept) addTo(held, amounts, BigInt(count));
  return { shapes: kept.map(shapeOf), held };
}

interface Group extends NodeShare {
  key: string;
  count: number;
}

function grouped(kinds: readonly { share: NodeShare; kind: string }[], precision: number): Group[] {
  const groups = new Map<string, Group>();
  for (const { share, kind } of kinds) {
    const amounts = coarse(share.amounts, precision);
    const resources = [...amounts].map(([resource, milli]) => `${resource}=${milli}`).toSorted();
    const key = [kind, ...resources].join();
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { ...share, amounts, key, count: 1 });
    else if (group.count < OFFER_LIMITS.count) group.count++;
  }
  return [...groups.values()];
}

/** All that a scheduler can tell nodes apart by, besides their size. */
const kindOf = ({ architecture, operatingSystem, labels }: NodeShare): string =>
  canonicalText([architecture, operatingSystem, labels]);

/** Pieces are few and mean a device each, so they are not rounded; pods are many. */
function coarse(amounts: Amounts, precision: number): Amounts {
  if (precision === Infinity) return amounts;
  return new Map(
    [...amounts].map(([resource, milli]) => {
      if (isCounted(resource) && resource !== 'pods') return [resource, milli];
      const step = stepOf(resource);
      const steps = milli / step;
      const dropped = BigInt(Math.max(0, steps.toString(2).length - precision));
      return [resource, ((steps >> dropped) << dropped) * step];
    }),
  );
}

const bySize = (a: Group, b: Group): number => compareSizes(a.amounts, b.amounts) || (a.key < b.key ? -1 : 1);

const shapeOf = ({ count, architecture, operatingSystem, labels, amounts }: Group): NodeShape => ({
  count,
  resources: formatAmounts(amounts),
  architecture,
  operatingSystem,
  ...(Object.keys(labels).length > 0 && { labels: { ...labels } }),
});

/** No more of anything than there is in `most`. */
export function boundedBy(amounts: Amounts, most: Amounts): Sums {
  return new Map(
    [...amounts].map(([resource, milli]) => [resource, atMost(milli, amountOf(most, resource))]),
  );
}
