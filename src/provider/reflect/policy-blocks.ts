/** What a range of addresses in a NetworkPolicy at home is for pods over there. Pure. */
import { PRIVATE_RANGES } from '../../lib/private-ranges.ts';
import type { IpBlock } from '../../api/network-policy.ts';
import type { PrefixView } from '../../api/tunnel.ts';
import {
  contains,
  formatAddress,
  formatPrefix,
  hostPrefix,
  mergePrefixes,
  overlaps,
  parseAddress,
  parsePrefix,
  prefixProblem,
  type Prefix,
  prefixesOf,
  tryPrefix,
  WIDTHS,
  without,
} from '../../lib/prefix.ts';
import type { NetworkView } from '../network-view.ts';

export interface BlocksReach {
  /** As the foreign cluster sees them. */
  blocks: IpBlock[];
  /** All our pods over there are in the ranges. */
  allGuests: boolean;
  /** All IPv4 addresses are in one of them. */
  isEverything: boolean;
  /** Why less is open over there than at home. */
  notes: string[];
}

interface World {
  prefixes: NetworkView['prefixes'];
  /** Of the DNS of home: who may ask it may ask the one over there, so nothing is missing where a range has them. */
  nameservers: readonly string[];
  /** Whether a node of home, as far as they are known, has that address. */
  hasNodeAt: (address: string) => boolean;
}

interface Range {
  cidr: string;
  prefix: Prefix;
  excepts: readonly Prefix[];
}

/** What the ranges of one rule are. */
export function blocksReach(all: readonly IpBlock[], world: World): BlocksReach {
  const ranges = all.flatMap(rangeOf);
  const theirs = prefixesOf(world.prefixes.theirs.map(({ as }) => as));
  const isWhole = (it: Prefix): boolean =>
    ranges.some(
      ({ prefix, excepts }) => contains(prefix, it) && !excepts.some((except) => overlaps(except, it)),
    );
  const allGuests = theirs.length > 0 && theirs.every(isWhole);
  return {
    blocks: ranges.flatMap((range) => blocksOf(range, world)),
    allGuests,
    isEverything: ranges.some((range) => isAll(range) && range.prefix.family === 4),
    notes: [...all.flatMap(unreadNotes), ...ranges.flatMap((range) => notesOf(range, world, allGuests))],
  };
}

/** None where any of it cannot be read: API servers take more spellings, and what is excepted must not become open. */
function rangeOf({ cidr, except = [] }: IpBlock): Range[] {
  const prefix = tryPrefix(cidr);
  const excepts = prefixesOf(except);
  return prefix === undefined || excepts.length < except.length ? [] : [{ cidr, prefix, excepts }];
}

const unreadNotes = ({ cidr, except = [] }: IpBlock): string[] => {
  const problem = [cidr, ...except].flatMap((text) => {
    const why = prefixProblem(text);
    return why === undefined ? [] : [`${text} cannot be read (${why})`];
  })[0];
  return problem === undefined ? [] : [`${cidr} is closed: ${problem}`];
};

/** Who opens all addresses means none of them in particular, and so everything wherever one is. */
const isAll = ({ prefix, excepts }: Range): boolean => prefix.length === 0 && excepts.length === 0;

function blocksOf(range: Range, { prefixes }: World): IpBlock[] {
  const { prefix, excepts } = range;
  if (isAll(range)) return [{ cidr: formatPrefix(prefix) }];
  const own = prefixes.exported.flatMap((view) => translated(view, prefix, excepts));
  const closed = [...excepts, ...homesOf(prefixes), ...strangeOf(prefixes)];
  return [...own.map((it) => ({ cidr: formatPrefix(it) })), ...outsideOf(prefix, closed)];
}

/** Addresses that home gives to pods. */
const homesOf = ({ exported, theirs }: World['prefixes']): Prefix[] =>
  prefixesOf([...exported.map(({ prefix }) => prefix), ...theirs.map(({ as }) => as)]);

/** Addresses that mean something else over there. */
const strangeOf = ({ exported, theirs }: World['prefixes']): Prefix[] =>
  prefixesOf([...PRIVATE_RANGES, ...exported.map(({ as }) => as), ...theirs.map(({ prefix }) => prefix)]);

function notesOf(range: Range, world: World, allGuests: boolean): string[] {
  const { cidr, prefix } = range;
  const theirs = prefixesOf(world.prefixes.theirs.map(({ as }) => as));
  const notes: string[] = [];
  if (!allGuests && theirs.some((it) => overlaps(prefix, it)))
    notes.push(`${cidr} covers pods over there in part: they are closed; select them by labels`);
  if (!isAll(range)) return [...notes, ...strangeNotes(range, world, allGuests)];
  if (theirs.length === 0 && prefix.family === 4)
    notes.push(
      `without a network nobody knows which addresses of ${cidr} pods over there have: they are closed; select them by labels`,
    );
  return notes;
}

/** What stays closed, since it means something else over there. */
function strangeNotes(range: Range, world: World, allGuests: boolean): string[] {
  const { cidr, prefix, excepts } = range;
  const { prefixes, nameservers } = world;
  const dns = nameservers.flatMap((address) => hostPrefix(address) ?? []);
  const known = [...excepts, ...homesOf(prefixes), ...dns];
  const strange = mergePrefixes(strangeOf(prefixes).filter((it) => overlaps(prefix, it)));
  const closed = strange
    .map((it) => (contains(prefix, it) ? it : prefix))
    .filter((it) => without([it], known).length > 0);
  if (closed.length === 0 || (prefix.length === 0 && closed.every(isBetween))) return [];
  const [first = prefix] = closed;
  if (!contains(first, prefix)) {
    const shown = closed.slice(0, MAX_SHOWN).map(formatPrefix).join(', ');
    const others = closed.length > MAX_SHOWN ? ` and ${closed.length - MAX_SHOWN} more` : '';
    return [
      `of ${cidr} what is in ${shown}${others} is closed, but for pods: over there it is another network`,
    ];
  }
  const isSomewhere = allGuests || blocksOf(range, world).length > 0;
  if (isSomewhere) return [`of ${cidr} only pods are open: over there the rest is another network`];
  return [whatItIs(range, world)];
}

/** Ranges that one note names. */
const MAX_SHOWN = 8;
/** Between carriers and their customers, and between clusters: nobody who opens the Internet means a server there. */
const BETWEEN: Prefix = parsePrefix('100.64.0.0/10');
const isBetween = (prefix: Prefix): boolean => contains(BETWEEN, prefix);

/** Of a range of which nothing is open. */
function whatItIs({ cidr, prefix }: Range, { prefixes, nameservers, hasNodeAt }: World): string {
  const { family, length, base } = prefix;
  const seen = prefixesOf(prefixes.exported.map((view) => view.prefix));
  if (family === 6 && seen.length > 0 && seen.every((it) => it.family !== family))
    return `${cidr} is a private range of IPv6, and over there this cluster's pods are seen by IPv4 only: there it is another network`;
  if (nameservers.some((address) => isInBlock({ cidr }, address)))
    return `${cidr} has ClusterIPs of this cluster: over there only its DNS is open; select the pods behind the others by labels`;
  if (length === WIDTHS[family] && hasNodeAt(formatAddress({ family, value: base })))
    return `${cidr} is a node of this cluster, which pods over there do not reach: there this address is another's`;
  if (length === WIDTHS[family])
    return `${cidr} is no pod of this cluster, but a node, a ClusterIP or another machine: over there this address is another's`;
  return `${cidr} is not of this cluster's pods, nor outside: over there it is another network`;
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
export function isInBlock(block: IpBlock, text: string): boolean {
  const address = parseAddress(text);
  return rangeOf(block).some(
    ({ prefix, excepts }) =>
      address !== undefined && contains(prefix, address) && !excepts.some((it) => contains(it, address)),
  );
}
