import type { PrefixView } from '../api/tunnel.ts';
import {
  formatAddress,
  type IpFamily,
  parseAddress,
  type Prefix,
  prefixOf,
  tryPrefix,
} from '../lib/prefix.ts';

/** One direction: bases of the other side, by family, by length (longest first), by own base. */
type Bases = Map<bigint, bigint>;
type Side = Record<IpFamily, Map<number, Bases>>;

/**
 * Translates addresses between two spellings of the same prefixes: the longest matching prefix counts, the host part
 * stays. A view that is no pair of prefixes of one family and length is left out. Of two with the same prefix the
 * first one counts. A lookup costs one step for each length that occurs, however many views there are.
 */
export class ViewTable {
  readonly #there: Side;
  readonly #back: Side;

  constructor(views: readonly PrefixView[]) {
    const pairs = views.flatMap(({ prefix, as }) => pairOf(tryPrefix(prefix), tryPrefix(as)));
    this.#there = sideOf(pairs);
    this.#back = sideOf(pairs.map(([prefix, as]) => [as, prefix]));
  }

  /** An address in one of the prefixes, as it is seen; undefined for others. */
  translate(address: string): string | undefined {
    return lookUp(this.#there, address);
  }

  /** An address as it is seen, as its owner writes it; undefined for others. */
  translateBack(address: string): string | undefined {
    return lookUp(this.#back, address);
  }
}

/** For a single lookup; see ViewTable. */
export const translate = (views: readonly PrefixView[], address: string): string | undefined =>
  new ViewTable(views).translate(address);

/** For a single lookup; see ViewTable. */
export const translateBack = (views: readonly PrefixView[], address: string): string | undefined =>
  new ViewTable(views).translateBack(address);

function pairOf(prefix?: Prefix, as?: Prefix): [Prefix, Prefix][] {
  if (prefix === undefined || as === undefined) return [];
  return prefix.family === as.family && prefix.length === as.length ? [[prefix, as]] : [];
}

function sideOf(pairs: readonly (readonly [Prefix, Prefix])[]): Side {
  const side: Side = { 4: new Map(), 6: new Map() };
  for (const [from, to] of pairs.toSorted(([one], [other]) => other.length - one.length)) {
    const lengths = side[from.family];
    const bases: Bases = lengths.get(from.length) ?? new Map();
    lengths.set(from.length, bases);
    if (!bases.has(from.base)) bases.set(from.base, to.base);
  }
  return side;
}

function lookUp(side: Side, text: string): string | undefined {
  const address = parseAddress(text);
  if (address === undefined) return undefined;
  const { family, value } = address;
  for (const [length, bases] of side[family]) {
    const { base } = prefixOf(address, length);
    const other = bases.get(base);
    if (other !== undefined) return formatAddress({ family, value: other + (value - base) });
  }
  return undefined;
}
