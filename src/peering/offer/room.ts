import {
  addTo,
  amountOf,
  type Amounts,
  atLeast,
  atMost,
  MILLI,
  parseAmounts,
  type Sums,
} from '../../api/amounts.ts';
import { UNTOLD_DEFAULT_REQUESTS } from '../../api/default-requests.ts';
import type { Offer } from '../../api/offer.ts';

/** Of any resource at most half is set aside for what home does not see; where it is not enough, there are fewer pods. */
const PARTS = 2n;

/**
 * What a virtual node shows of the amounts that a provider admits, so that nothing that fits by home's arithmetic is refused
 * there for room. Home counts what the containers of a pod request. The provider may count more: default requests of a pod
 * that names none (once for each pod, see provider/forge/requests.ts), and the overhead of the runtime class that it sets. So
 * both are set aside for each of the pods that the node may hold.
 *
 * A provider that does not tell its default requests has those of earlier versions. They bound the number of pods and nothing
 * is set aside: else half of a node would vanish from a peering only because one side has been updated.
 */
export function roomShown(
  admitted: Amounts,
  { defaultRequests, podOverhead = {} }: Pick<Offer, 'defaultRequests' | 'podOverhead'>,
): Sums {
  const extra: Sums = parseAmounts(podOverhead);
  if (defaultRequests !== undefined) addTo(extra, parseAmounts(defaultRequests));
  const within = most(admitted, extra, PARTS);
  const pods = defaultRequests === undefined ? atMost(within, mostUntold(admitted)) : within;
  return new Map(
    [...admitted].map(([resource, milli]) => [
      resource,
      resource === 'pods' ? pods : atLeast(milli - (pods / MILLI) * amountOf(extra, resource), 0n),
    ]),
  );
}

/** Where nothing is lent of a resource, an earlier version takes no pod at all; its next version will. */
const mostUntold = (admitted: Amounts): bigint =>
  most(new Map([...admitted].filter(([, milli]) => milli > 0n)), parseAmounts(UNTOLD_DEFAULT_REQUESTS), 1n);

/** How many pods that cost so much each fit into the given part of the amounts; whole pods, in thousandths. */
function most(amounts: Amounts, each: Amounts, part: bigint): bigint {
  const counts = [...amounts].flatMap(([resource, milli]) => {
    const cost = amountOf(each, resource);
    return cost > 0n && resource !== 'pods' ? [milli / (cost * part)] : [];
  });
  const pods = amountOf(amounts, 'pods') / MILLI;
  return counts.reduce((fewest, count) => atMost(fewest, count), pods) * MILLI;
}
