/** Values of policies in words. Pure. */
import type { PeerSelector } from '../../api/peer-selector.ts';
import { formatPrice, type Prices } from '../../api/prices.ts';
import type { ResourceList } from '../../api/wire.ts';
import { isFields } from '../../lib/fields.ts';

export function peersText({
  clusterIDs = [],
  networkKeySecretRef,
  matchLabels,
  anyone,
  discovery,
}: PeerSelector): string {
  const who = [
    ...(anyone === true ? ['anyone'] : []),
    ...clusterIDs,
    ...(networkKeySecretRef === undefined ? [] : [`key ${networkKeySecretRef.name}`]),
    ...Object.entries(matchLabels ?? {}).map(([key, value]) => `${key}=${value}`),
  ];
  const found =
    discovery === undefined || discovery.length === 0 ? '' : ` (found by ${discovery.join(', ')})`;
  return who.length === 0 ? 'nobody' : `${who.join(', ')}${found}`;
}

/** `cpu 2, memory 4Gi`. */
export const amountsText = (amounts: ResourceList): string =>
  Object.entries(amounts)
    .map(([resource, amount]) => `${resource} ${amount}`)
    .join(', ');

/** `cpu 0.02 EUR per core and hour`. */
export const pricesText = (prices: Prices): string =>
  Object.entries(prices)
    .map(([resource, price]) => `${resource} ${formatPrice(resource, price)}`)
    .join(', ');

/** Of a field of a policy that the command line can write. */
export function valueText(field: string, value: unknown): string {
  if (field === 'peers') return peersText(value as PeerSelector);
  if (field === 'prices' || field === 'maxPrices') return pricesText(value as Prices);
  if (isFields(value)) return amountsText(value as ResourceList);
  return Array.isArray(value) ? value.join(', ') : String(value);
}
