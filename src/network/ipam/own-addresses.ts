import { ANY_ADDRESSES, type PrefixView } from '../../api/tunnel.ts';
import { contains, type IpFamily, type Prefix, prefixesOf, sizeOf, tryPrefix } from '../../lib/prefix.ts';
import { isPrivate } from './special-ranges.ts';

/** Which prefixes of a peer may be seen as themselves. */
export interface OwnAddresses {
  /** Whether anybody has said so. Without a word, no view becomes the peer's own prefix, and one that is already stays. */
  said: boolean;
  /** Every private prefix. */
  any: boolean;
  /** Those within these. */
  ranges: readonly Prefix[];
}

export const UNSAID: OwnAddresses = { said: false, any: false, ranges: [] };

/** What is neither a CIDR nor `Any` allows nothing. */
export function ownAddressesOf(list: readonly string[] | undefined): OwnAddresses {
  if (list === undefined) return UNSAID;
  return { said: true, any: list.includes(ANY_ADDRESSES), ranges: prefixesOf(list) };
}

/**
 * Named: a person has named this prefix, or a range around it, be it public. Any: it is one of all private ones, since a peer that calls
 * a public range its own must not draw our traffic for it into its tunnel.
 */
export type Permission = 'Named' | 'Any' | 'No';

export function permissionFor(prefix: Prefix, { any, ranges }: OwnAddresses): Permission {
  if (ranges.some((range) => contains(range, prefix))) return 'Named';
  return any && isPrivate(prefix) ? 'Any' : 'No';
}

/** The views that are the peer's own prefixes, and may not be. */
export const notPermitted = <View extends PrefixView>(views: readonly View[], may: OwnAddresses): View[] =>
  views.filter(({ prefix, as }) => prefix === as && permissionOf(prefix, may) === 'No');

/** Whether exactly those are the peer's own prefixes that may be. */
export const areAsPermitted = (views: readonly PrefixView[], may: OwnAddresses): boolean =>
  views.every(({ prefix, as }) => (prefix === as) === (permissionOf(prefix, may) !== 'No'));

function permissionOf(text: string, may: OwnAddresses): Permission {
  const prefix = tryPrefix(text);
  return prefix === undefined ? 'No' : permissionFor(prefix, may);
}

/**
 * As many addresses as the usual pool has, a /10, and of IPv6 as many as a /40: more than any cluster's pods, Services and nodes, and
 * little enough that a peer which claims every private range gets a small part of them.
 */
const MOST: Readonly<Record<IpFamily, bigint>> = { 4: 1n << 22n, 6: 1n << 88n };

/** How many addresses one peer keeps by `Any`. What a person has named is bounded by its names. */
export class OwnShare {
  readonly #has = { 4: 0n, 6: 0n };

  add(prefix: Prefix): void {
    this.#has[prefix.family] += sizeOf(prefix);
  }

  allows(prefix: Prefix): boolean {
    return this.#has[prefix.family] + sizeOf(prefix) <= MOST[prefix.family];
  }
}
