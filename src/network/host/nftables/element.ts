/** Elements of sets and maps in a form in which equal ones have the same text. */
import { TributaryError } from '../../../lib/errors.ts';
import { type Address, parseAddress, prefixOf, WIDTHS } from '../../../lib/prefix.ts';
import type { ElementConfig, SetConfig } from '../host-config.ts';
import { Recent } from './recent.ts';
import { checkKey, checkValue, isVerdict } from './syntax.ts';

export interface Element {
  /** The key as written for nft. */
  key: string;
  /** Canonical. Empty in sets. */
  value: string;
  /** The whole element as written for nft. */
  text: string;
}

/** By canonical key. */
export type Elements = ReadonlyMap<string, Element>;

/** The first and the last address. */
interface Range {
  first: Address;
  last: bigint;
}

export function elementOf({ key, value }: ElementConfig): [string, Element] {
  const canonical = canonicalKey(checkKey(key));
  if (value === undefined) return [canonical, { key, value: '', text: key }];
  checkValue(value);
  const meaning = isVerdict(value) ? value : canonicalKey(checkKey(value));
  return [canonical, { key, value: meaning, text: `${key} : ${value}` }];
}

/** @throws Invalid where a key is there twice with different values. */
export function elementsOf(set: SetConfig, recent: Recent<[string, Element]> = new Recent()): Elements {
  const elements = new Map<string, Element>();
  for (const config of set.elements) {
    const text = config.value === undefined ? config.key : `${config.key} : ${config.value}`;
    const [canonical, element] = recent.of(text, () => elementOf(config));
    if ((config.value === undefined) !== (set.value === undefined)) {
      throw new TributaryError(
        'Invalid',
        `nftables: ${set.name}: ${config.key}: only elements of maps have values`,
      );
    }
    const other = elements.get(canonical);
    if (other !== undefined && other.value !== element.value) {
      throw new TributaryError('Invalid', `nftables: ${set.name}: ${config.key} has two values`);
    }
    elements.set(canonical, element);
  }
  return set.interval && set.value === undefined ? withoutContained(elements) : elements;
}

const canonicalKey = (fields: readonly string[]): string => fields.map(canonicalField).join(' . ');

function canonicalField(field: string): string {
  const range = rangeOf(field);
  if (range !== undefined) return `${range.first.family}:${range.first.value}-${range.last}`;
  return field.startsWith('"') ? field.slice(1, -1) : field;
}

/** Reads an address, a prefix, or two addresses with a dash between them. */
function rangeOf(field: string): Range | undefined {
  const [address = '', length] = field.split('/');
  const [from = '', to] = address.split('-');
  const first = parseAddress(from);
  if (first === undefined) return undefined;
  if (length !== undefined) return prefixRange(first, length);
  const last = to === undefined ? first : parseAddress(to);
  return last?.family === first.family ? { first, last: last.value } : undefined;
}

function prefixRange(address: Address, length: string): Range | undefined {
  const width = WIDTHS[address.family];
  if (!/^\d{1,3}$/.test(length) || Number(length) > width) return undefined;
  const { family, base } = prefixOf(address, Number(length));
  return { first: { family, value: base }, last: base + (1n << BigInt(width - Number(length))) - 1n };
}

/**
 * nft refuses a set in which one interval lies in another, and the kernel does where a key has further parts that are the same. The
 * inner one adds nothing to the set.
 */
function withoutContained(elements: Elements): Elements {
  const byRest = new Map<string, { canonical: string; range: Range }[]>();
  for (const [canonical, { key }] of elements) {
    const [field = '', ...rest] = key.split(' . ');
    const range = rangeOf(field);
    if (range === undefined) return elements;
    const others = rest.join(' . ');
    const same = byRest.get(others) ?? [];
    same.push({ canonical, range });
    byRest.set(others, same);
  }
  const kept = new Map(elements);
  for (const ranges of byRest.values()) {
    ranges.sort((a, b) => byPosition(a.range, b.range));
    let outer: Range | undefined;
    for (const { canonical, range } of ranges) {
      const inside = outer?.first.family === range.first.family && range.last <= outer.last;
      if (inside) kept.delete(canonical);
      else outer = range;
    }
  }
  return kept;
}

/** Sorts by the first address. Of two with the same, the wider comes first. */
function byPosition(a: Range, b: Range): number {
  if (a.first.family !== b.first.family) return a.first.family - b.first.family;
  if (a.first.value !== b.first.value) return a.first.value < b.first.value ? -1 : 1;
  return a.last > b.last ? -1 : 1;
}
