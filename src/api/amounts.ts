import type { ResourceList } from './wire.ts';
import { TributaryError } from '../lib/errors.ts';
import { formatMilli, parseMilli } from '../lib/quantity.ts';

/** Amounts by resource in thousandths of the base unit, exact. What is not named is zero. */
export type Amounts = ReadonlyMap<string, bigint>;
export type Sums = Map<string, bigint>;

export const MILLI = 1000n;
const MI = 1n << 20n;

/** No honest amount is larger: 2^60 of what is counted in bytes, 10^15 of the rest. */
const MOST_BYTES = (1n << 60n) * MILLI;
const MOST_OTHERS = 10n ** 15n * MILLI;

export const isBytes = (resource: string): boolean =>
  ['memory', 'ephemeral-storage', 'storage'].includes(resource) || resource.startsWith('hugepages-');

/** Counted in pieces: half of one is nothing. */
export const isCounted = (resource: string): boolean => resource !== 'cpu' && !isBytes(resource);

export const mostOf = (resource: string): bigint => (isBytes(resource) ? MOST_BYTES : MOST_OTHERS);

/** Throws Invalid. Plain numbers are text to Kubernetes, and a CRD may hold them. */
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

/** Where the other names more, it counts. */
export function raiseTo(sums: Sums, amounts: Amounts): void {
  for (const [resource, milli] of amounts) sums.set(resource, atLeast(milli, amountOf(sums, resource)));
}

export const atMost = (value: bigint, most: bigint): bigint => (value > most ? most : value);
export const atLeast = (value: bigint, least: bigint): bigint => (value < least ? least : value);

/**
 * Steps in which amounts are told, so that an offer does not move with every pod's last byte: 10m of CPU, 1Mi of
 * memory and huge pages, 256Mi of disks, whole pieces.
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

/** As parseAmounts, with the name of the list in what is thrown. */
export function parseNamed(what: string, list: Readonly<Record<string, string | number>>): Sums {
  try {
    return parseAmounts(list);
  } catch (error) {
    throw new TributaryError('Invalid', `${what} cannot be read`, { cause: error });
  }
}
