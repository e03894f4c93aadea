/** What a range of addresses in a NetworkPolicy at home is for pods over there. Pure. */
import { PRIVATE_RANGES } from '../../lib/private-ranges.ts';
import type { IpBlock } from '../../api/network-policy.ts';
import type { PrefixView } from '../../api/tunnel.ts';
import {
  contains,
  formatPrefix,
  overlaps,
  parseAddress,
  type Prefix,
  prefixesOf,
  tryPrefix,
  without,
} from '../../lib/prefix.ts';
import type { NetworkView } from '../network-view.ts';

export interface BlockReach {
  /** As the foreign cluster sees them. */
  blocks: IpBlock[];
  /** All our pods over there are in the range. */
  allGuests: boolean;
  /** All IPv4 addresses are in it. */
  isEverything: boolean;
  /** Why less is open over there than at home. */
  note?: string;
}

export function blockReach(block: IpBlock, { prefixes }: Pick<NetworkView, 'prefixes'>): BlockReach {
  const range = tryPrefix(block.cidr);
  if (range === undefined) {
    return { blocks: [], allGuests: false, isEverything: false, note: `${block.cidr} cannot be read` };
  }
  const excepts = prefixesOf(block.except ?? []);
  const own = prefixes.exported.flatMap((view) => translated(view, range, excepts));
  const theirs = prefixesOf(prefixes.theirs.map(({ as }) => as));
  const touched = theirs.filter((it) => overlaps(range, it));
  const isWhole = (it: Prefix): boolean =>
    contains(range, it) && !excepts.some((except) => overlaps(except, it));
  const allGuests = theirs.length > 0 && touched.length === theirs.length && touched.every(isWhole);
  const known = [...prefixesOf(prefixes.exported.map(({ prefix }) => prefix)), ...theirs];
  const outside = outsideOf(range, [...excepts, ...known, ...prefixesOf(PRIVATE_RANGES)]);
  const blocks = [...own.map((it) => ({ cidr: formatPrefix(it) })), ...outside];
  const isSomewhere = blocks.length > 0 || allGuests;
  return {
    blocks,
    allGuests,
    isEverything: range.family === 4 && range.length === 0 && excepts.length === 0,
    ...noteOf(block.cidr, { isSomewhere, isInPart: touched.length > 0 && !allGuests }),
  };
}

function noteOf(
  cidr: string,
  { isSomewhere, isInPart }: { isSomewhere: boolean; isInPart: boolean },
): Pick<BlockReach, 'note'> {
  if (isInPart)
    return { note: `${cidr} covers pods over there in part: they are closed; select them by labels` };
  if (isSomewhere) return {};
  return { note: `${cidr} is not of this cluster's pods, nor outside: over there it is another network` };
}

/** The part of the range that is in the view, as the other side sees it. */
function translated({ prefix, as }: PrefixView, range: Prefix, excepts: readonly Prefix[]): Prefix[] {
  const [from, to] = [tryPrefix(prefix), tryPrefix(as)];
  if (from === undefined || to === undefined || !overlaps(from, range)) return [];
  const inner = from.length >= range.length ? from : range;
  return without([inner], excepts).map((part) => ({ ...part, base: to.base + (part.base - from.base) }));
}

/** What of the range both clusters see alike. */
function outsideOf(range: Prefix, closed: readonly Prefix[]): IpBlock[] {
  if (closed.some((it) => contains(it, range))) return [];
  const except = closed.filter((it) => contains(range, it)).map(formatPrefix);
  return [
    { cidr: formatPrefix(range), ...(except.length > 0 && { except: [...new Set(except)].toSorted() }) },
  ];
}

/** Whether the address is in the block. */
export function isInBlock({ cidr, except = [] }: IpBlock, text: string): boolean {
  const [range, address] = [tryPrefix(cidr), parseAddress(text)];
  if (range === undefined || address === undefined || !contains(range, address)) return false;
  return !prefixesOf(except).some((it) => contains(it, address));
}
