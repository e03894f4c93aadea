import { TributaryError } from '../lib/errors.ts';
import { formatMilli, parseMilli } from '../lib/quantity.ts';
import type { ResourceList } from './wire.ts';

/** Resources that nodes count, by the names that Kubernetes itself defines. */
const NATIVE = new Set(['cpu', 'memory', 'pods', 'ephemeral-storage']);
/**
 * Always in a list, also as zero: a reader who takes the list as its bounds must not take a full cluster for an
 * unlimited one.
 */
export const BASIC_RESOURCES: readonly string[] = ['cpu', 'ephemeral-storage', 'memory', 'pods'];
/** Persistent storage. No node counts it; it is offered only as far as the SharingPolicy limits it. */
export const STORAGE = 'storage';

const HUGE_PAGES = /^hugepages-[1-9][0-9]{0,8}[KMG]i$/u;
const EXTENDED =
  /^(?=.{3,253}$)([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)+\/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/u;
/** The domains of Kubernetes hold no extended resources (KEP-606); the prefixes have a meaning in quotas. */
const NOT_EXTENDED = /^(requests|limits)\.|kubernetes\.io\/|^count\//u;

const isExtended = (name: string): boolean => EXTENDED.test(name) && !NOT_EXTENDED.test(name);

/** Whether nodes count it. Then no more of it can be lent than the shapes of the nodes hold. */
export const isOfNodes = (name: string): boolean =>
  NATIVE.has(name) || HUGE_PAGES.test(name) || isExtended(name);

export const isOfferable = (name: string): boolean => name === STORAGE || isOfNodes(name);

/** Exact amounts by resource, in thousandths of the base unit. A resource that is not named has zero. */
export type Amounts = ReadonlyMap<string, bigint>;
export type Sums = Map<string, bigint>;

export const MILLI = 1000n;
const MI = 1n << 20n;

/** No honest amount is larger than this: 2^60 bytes, and 10^15 of all else. */
const MOST_BYTES = (1n << 60n) * MILLI;
const MOST_OTHERS = 10n ** 15n * MILLI;

const isBytes = (resource: string): boolean =>
  ['memory', 'ephemeral-storage', 'storage'].includes(resource) || resource.startsWith('hugepages-');

/** Counted in whole pieces. */
export const isCounted = (resource: string): boolean => resource !== 'cpu' && !isBytes(resource);

export const mostOf = (resource: string): bigint => (isBytes(resource) ? MOST_BYTES : MOST_OTHERS);

/** Throws Invalid. Kubernetes also takes plain numbers as quantities, so a CRD may hold them. */
export function parseAmounts(list: Readonly<Record<string, string | number>>): Sums {
  return new Map(Object.entries(list).map(([resource, amount]) => [resource, parseMilli(String(amount))]));
}

export function formatAmount(resource: string, milli: bigint): string {
  return formatMilli(milli, isBytes(resource) ? 'binary' : 'decimal');
}

/** Resources in the order of their names, so that equal amounts are equal text. */
export function formatAmounts(amounts: Amounts): ResourceList {
  return Object.fromEntries(
    [...amounts]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([resource, milli]) => [resource, formatAmount(resource, milli)]),
  );
}

export const amountOf = (amounts: Amounts, resource: string): bigint => amounts.get(resource) ?? 0n;

export function addTo(sums: Sums, amounts: Iterable<readonly [string, bigint]>, times = 1n): void {
  for (const [resource, milli] of amounts) sums.set(resource, amountOf(sums, resource) + milli * times);
}

/** Raises each sum to the other amount, where that is larger. */
export function raiseTo(sums: Sums, amounts: Amounts): void {
  for (const [resource, milli] of amounts) sums.set(resource, atLeast(milli, amountOf(sums, resource)));
}

export const atMost = (value: bigint, most: bigint): bigint => (value > most ? most : value);
export const atLeast = (value: bigint, least: bigint): bigint => (value < least ? least : value);

/**
 * Steps to which the amounts of an offer are rounded, so that an offer does not change with every last byte of a pod:
 * 10m of CPU, 1Mi of memory and huge pages, 256Mi of disks, whole pieces.
 */
export function stepOf(resource: string): bigint {
  if (resource === 'cpu') return 10n;
  if (resource === 'ephemeral-storage' || resource === 'storage') return 256n * MI * MILLI;
  return isBytes(resource) ? MI * MILLI : MILLI;
}

export const roundDown = (milli: bigint, step: bigint): bigint => (milli <= 0n ? 0n : milli - (milli % step));

export const roundUp = (milli: bigint, step: bigint): bigint => roundDown(milli + step - 1n, step);

/** The first resource of which there is more in `amounts` than in `most`. */
export function firstAbove(amounts: Amounts, most: Amounts): string | undefined {
  return [...amounts].find(([resource, milli]) => milli > amountOf(most, resource))?.[0];
}

/** As parseAmounts; the error names the list. */
export function parseNamed(what: string, list: Readonly<Record<string, string | number>>): Sums {
  try {
    return parseAmounts(list);
  } catch (error) {
    throw new TributaryError('Invalid', `${what} cannot be read`, { cause: error });
  }
}
