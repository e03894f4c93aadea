import { amountOf, formatAmount } from '../../api/amounts.ts';
import { podRequests, readableAmounts } from '../../api/pod-requests.ts';
import type { Pod, ResourceList } from '../../api/wire.ts';

/**
 * Why the pod fits on none of these nodes, in words: what it has too much of for the one that comes nearest. Undefined: it fits on one of
 * them, or nothing is known of them. The scheduler sees a virtual node as a whole, and places on it what no single node behind it
 * can run. Pure.
 */
export function whyTooLarge(pod: Pod, sizes: readonly ResourceList[] | undefined): string | undefined {
  if (sizes === undefined) return undefined;
  const requests = [...podRequests(pod)].filter(([resource, milli]) => milli > 0n && resource !== 'pods');
  const lacks = sizes.map((size) => {
    const amounts = readableAmounts(size);
    return requests
      .filter(([resource, milli]) => milli > amountOf(amounts, resource))
      .map(([resource, milli]) => {
        const [asked, there] = [milli, amountOf(amounts, resource)].map((one) => formatAmount(resource, one));
        return `${resource} ${asked}, one node lends ${there}`;
      });
  });
  const [nearest] = lacks.toSorted((a, b) => a.length - b.length);
  if (nearest === undefined) return 'no node is lent now';
  return nearest.length === 0 ? undefined : nearest.join(', ');
}
