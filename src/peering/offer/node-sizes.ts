import {
  amountOf,
  type Amounts,
  atLeast,
  formatAmounts,
  isOfNodes,
  parseAmounts,
  raiseTo,
  type Sums,
} from '../../api/amounts.ts';
import { MAX_NODE_SIZES } from '../../api/limits.ts';
import type { Offer } from '../../api/offer.ts';
import type { ResourceList } from '../../api/wire.ts';

/**
 * What one node of the offer has for a pod: of each kind that no other one exceeds in everything, largest first, less what each pod
 * costs there beside its requests. Where they are too many to be told, the last one holds the most of each that is left: it keeps
 * fewer pods away than it could, and none that would fit. Pure.
 */
export function nodeSizes({
  shapes,
  podOverhead = {},
}: Pick<Offer, 'shapes' | 'podOverhead'>): ResourceList[] {
  const overhead = parseAmounts(podOverhead);
  const largest = shapes
    .map(({ resources }) => lessened(parseAmounts(resources), overhead))
    .toSorted((a, b) => compareSizes(a, b) || (textOf(a) < textOf(b) ? -1 : 1))
    .filter(
      (size, index, all) =>
        !all.some((other, at) => at !== index && covers(other, size) && !(at > index && covers(size, other))),
    );
  const [kept, rest] = [largest.slice(0, MAX_NODE_SIZES), largest.slice(MAX_NODE_SIZES)];
  const last = kept.at(-1);
  if (last !== undefined) for (const size of rest) raiseTo(last, size);
  return kept.map(formatAmounts);
}

const textOf = (size: Amounts): string => JSON.stringify(formatAmounts(size));

const lessened = (amounts: Amounts, overhead: Amounts): Sums =>
  new Map(
    [...amounts]
      .filter(([resource]) => isOfNodes(resource))
      .map(([resource, milli]) => [resource, atLeast(milli - amountOf(overhead, resource), 0n)]),
  );

const covers = (larger: Amounts, size: Amounts): boolean =>
  [...size].every(([resource, milli]) => milli <= amountOf(larger, resource));

/** Whether `a` comes before `b` where the largest is first; of what nobody calls large, nothing is said. */
export function compareSizes(a: Amounts, b: Amounts): number {
  for (const resource of ['cpu', 'memory', 'pods']) {
    const [left, right] = [amountOf(a, resource), amountOf(b, resource)];
    if (left !== right) return left > right ? -1 : 1;
  }
  return 0;
}
