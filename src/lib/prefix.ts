/**
 * Arithmetic on IP addresses and prefixes of both families, without sockets.
 *
 * Accepted text: IPv4 as four decimal numbers without leading zeros; IPv6 as in RFC 4291 section 2.2, forms 1 and 2.
 * Not accepted, since the network never means them: zone ids, dotted quads within IPv6, and IPv4-mapped addresses
 * (::ffff:0:0/96), which would be a second spelling of an IPv4 address. IPv6 is written as RFC 5952 says.
 */
import { TributaryError } from './errors.ts';

export type IpFamily = 4 | 6;

export interface Address {
  readonly family: IpFamily;
  readonly value: bigint;
}

/** The bits of `base` after the first `length` are zero. */
export interface Prefix {
  readonly family: IpFamily;
  readonly base: bigint;
  readonly length: number;
}

/** Bits of an address. */
export const WIDTHS: Readonly<Record<IpFamily, number>> = { 4: 32, 6: 128 };

/** ::ffff:0:0/96 without its last 32 bits. */
const MAPPED = 0xffffn;
const GROUP = /^[0-9a-fA-F]{1,4}$/;
const LENGTH = /^(?:0|[1-9]\d{0,2})$/;
/** Number of addresses by the number of host bits. */
const SIZES: readonly bigint[] = Array.from({ length: 129 }, (_, bits) => 1n << BigInt(bits));

const hostBits = ({ family, length }: Prefix): number => WIDTHS[family] - length;
/** How many addresses it has. */
export const sizeOf = (prefix: Prefix): bigint => SIZES[hostBits(prefix)] ?? 1n;

export function parseAddress(text: string): Address | undefined {
  if (text.length > 39) return undefined;
  return text.includes(':') ? parseV6(text) : parseV4(text);
}

function parseV4(text: string): Address | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let value = 0;
  for (const part of parts) {
    const number = Number(part);
    if (!LENGTH.test(part) || number > 255) return undefined;
    value = value * 256 + number;
  }
  return { family: 4, value: BigInt(value) };
}

function parseV6(text: string): Address | undefined {
  const [head = '', tail, more] = text.split('::');
  if (more !== undefined) return undefined;
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const gap = 8 - front.length - back.length;
  if (tail === undefined ? gap !== 0 : gap < 1) return undefined;
  let digits = '';
  for (const group of [...front, ...Array.from({ length: gap }, () => '0'), ...back]) {
    if (!GROUP.test(group)) return undefined;
    digits += group.padStart(4, '0');
  }
  const value = BigInt(`0x${digits}`);
  return value >> 32n === MAPPED ? undefined : { family: 6, value };
}

export function formatAddress({ family, value }: Address): string {
  if (family === 4) {
    const bits = Number(value);
    return `${bits >>> 24}.${(bits >>> 16) & 255}.${(bits >>> 8) & 255}.${bits & 255}`;
  }
  const digits = value.toString(16).padStart(32, '0');
  const groups = Array.from({ length: 8 }, (_, i) =>
    Number.parseInt(digits.slice(4 * i, 4 * i + 4), 16).toString(16),
  );
  const { start, length } = longestZeros(groups);
  // RFC 5952 section 4.2.2: a single group of zeros is not shortened.
  if (length < 2) return groups.join(':');
  return `${groups.slice(0, start).join(':')}::${groups.slice(start + length).join(':')}`;
}

/** The first of the longest runs (RFC 5952 section 4.2.3). */
function longestZeros(groups: readonly string[]): { start: number; length: number } {
  let longest = { start: 0, length: 0 };
  let run = 0;
  for (const [index, group] of groups.entries()) {
    run = group === '0' ? run + 1 : 0;
    if (run > longest.length) longest = { start: index + 1 - run, length: run };
  }
  return longest;
}

/** `address/length`; throws Invalid where it is not, and where bits after the length are set. */
export function parsePrefix(text: string): Prefix {
  const parsed = readPrefix(text);
  if (typeof parsed !== 'string') return parsed;
  throw new TributaryError('Invalid', `${JSON.stringify(text.slice(0, 60))} is not a CIDR: ${parsed}`);
}

/** The same; undefined instead of an error. */
export function tryPrefix(text: string): Prefix | undefined {
  const parsed = readPrefix(text);
  return typeof parsed === 'string' ? undefined : parsed;
}

/** Why a text is no CIDR; undefined: it is one. */
export function prefixProblem(text: string): string | undefined {
  const parsed = readPrefix(text);
  return typeof parsed === 'string' ? parsed : undefined;
}

/** Those of the texts that are prefixes, in their order. */
export const prefixesOf = (texts: readonly string[]): Prefix[] =>
  texts.flatMap((text) => tryPrefix(text) ?? []);

/** The prefix in its one spelling; undefined where it is none. */
export function canonicalPrefix(text: string): string | undefined {
  const prefix = tryPrefix(text);
  return prefix && formatPrefix(prefix);
}

/** The prefix, or what is wrong. */
function readPrefix(text: string): Prefix | string {
  const slash = text.indexOf('/');
  if (slash < 0) return 'the prefix length is missing';
  const address = parseAddress(text.slice(0, slash));
  if (address === undefined) return 'the address is not plain IPv4 or IPv6';
  const digits = text.slice(slash + 1);
  const length = Number(digits);
  if (!LENGTH.test(digits) || length > WIDTHS[address.family]) {
    return `the prefix length is not a number from 0 to ${WIDTHS[address.family]}`;
  }
  const prefix = prefixOf(address, length);
  if (prefix.base === address.value) return prefix;
  return `it has bits after the prefix length; write ${formatPrefix(prefix)}`;
}

/** The prefix of that length in which the address lies. */
export function prefixOf({ family, value }: Address, length: number): Prefix {
  const shift = BigInt(WIDTHS[family] - length);
  return { family, base: (value >> shift) << shift, length };
}

/** The prefix that is just that address; undefined where the text is none. */
export function hostPrefix(text: string): Prefix | undefined {
  const address = parseAddress(text);
  return address && prefixOf(address, WIDTHS[address.family]);
}

export const formatPrefix = ({ family, base, length }: Prefix): string =>
  `${formatAddress({ family, value: base })}/${length}`;

/** Whether the address, or the whole of the other prefix, lies in it. */
export function contains(prefix: Prefix, other: Address | Prefix): boolean {
  if (prefix.family !== other.family) return false;
  if ('length' in other && other.length < prefix.length) return false;
  const shift = BigInt(hostBits(prefix));
  return ('length' in other ? other.base : other.value) >> shift === prefix.base >> shift;
}

/** Prefixes of which it is asked again and again whether an address lies in one of them: that takes as long as they have different lengths. */
export class PrefixSet {
  /** By family and shift: the bits before those of hosts. */
  readonly #lengths = new Map<string, { family: IpFamily; shift: bigint; bits: Set<bigint> }>();

  constructor(prefixes: Iterable<Prefix>) {
    for (const prefix of prefixes) {
      const { family, length } = prefix;
      const shift = BigInt(hostBits(prefix));
      const found = this.#lengths.get(`${family}/${length}`);
      const group = found ?? { family, shift, bits: new Set<bigint>() };
      this.#lengths.set(`${family}/${length}`, group);
      group.bits.add(prefix.base >> shift);
    }
  }

  contains({ family, value }: Address): boolean {
    for (const group of this.#lengths.values())
      if (group.family === family && group.bits.has(value >> group.shift)) return true;
    return false;
  }
}

/** Two prefixes are apart, or one lies in the other. */
export const overlaps = (one: Prefix, other: Prefix): boolean =>
  one.length <= other.length ? contains(one, other) : contains(other, one);

/** Address number `n` of the prefix, counted from 0; throws Invalid where it has no such. */
export function nthAddress(prefix: Prefix, n: number | bigint): string {
  const offset = BigInt(n);
  if (offset < 0n || offset >= sizeOf(prefix)) {
    throw new TributaryError('Invalid', `${formatPrefix(prefix)} has no address number ${offset}`);
  }
  return formatAddress({ family: prefix.family, value: prefix.base + offset });
}

/** IPv4 first, then by address, the wider first: for `sort`. */
export function compare(one: Prefix, other: Prefix): number {
  if (one.family !== other.family) return one.family - other.family;
  if (one.base !== other.base) return one.base < other.base ? -1 : 1;
  return one.length - other.length;
}

/** The same addresses in the fewest prefixes, in order. */
export function mergePrefixes(prefixes: readonly Prefix[]): Prefix[] {
  const merged: Prefix[] = [];
  for (const prefix of prefixes.toSorted(compare)) {
    const last = merged.at(-1);
    if (last !== undefined && contains(last, prefix)) continue;
    merged.push(prefix);
    joinTail(merged);
  }
  return merged;
}

/** Joins the last two for as long as they are the halves of one. */
function joinTail(merged: Prefix[]): void {
  for (;;) {
    const [one, other] = merged.slice(-2);
    if (one === undefined || other === undefined || one.length !== other.length || one.length === 0) return;
    const whole = prefixOf({ family: one.family, value: one.base }, one.length - 1);
    if (whole.base !== one.base || !contains(whole, other)) return;
    merged.splice(-2, 2, whole);
  }
}

/** The addresses of the ones that are in none of the others, in the fewest prefixes. */
export const without = (prefixes: readonly Prefix[], others: readonly Prefix[]): Prefix[] =>
  prefixes.flatMap((prefix) => cut(prefix, others)).toSorted(compare);

function cut(prefix: Prefix, others: readonly Prefix[]): Prefix[] {
  const near = others.filter((other) => overlaps(prefix, other));
  if (near.length === 0) return [prefix];
  if (near.some((other) => contains(other, prefix))) return [];
  return halves(prefix).flatMap((half) => cut(half, near));
}

function halves(prefix: Prefix): Prefix[] {
  const { family, base, length } = prefix;
  const size = 1n << BigInt(hostBits(prefix) - 1);
  return [base, base + size].map((start) => ({ family, base: start, length: length + 1 }));
}
