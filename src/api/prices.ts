/** What is asked for resources, by the hour. Exact: amounts are text, and sums of doubles would decide between equals. Pure. */
import { TributaryError } from '../lib/errors.ts';
import { type Amounts, isCounted } from './amounts.ts';
import { PRICE_AMOUNT_PATTERN } from './limits.ts';
import type { Price } from './offer.ts';

export type Prices = Readonly<Record<string, Price>>;

const DECIMAL = new RegExp(PRICE_AMOUNT_PATTERN, 'u');
/** Places behind the point that the pattern lets through. */
const PLACES = 9;
const GI = 1n << 30n;
/** What one unit of a currency is divided into: a thousandth of a byte at a price of 10^-9 for each GiB is one part. */
const PARTS = 10n ** BigInt(PLACES) * 1000n * GI;

/** Less than, equal to or greater than zero, as `a` is to `b`; exact. Throws Invalid for what is no amount. */
export function compareDecimals(a: string, b: string): number {
  const [left, right] = [scaled(a), scaled(b)];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

function scaled(text: string): bigint {
  if (!DECIMAL.test(text)) {
    throw new TributaryError('Invalid', `not a decimal amount: ${JSON.stringify(text.slice(0, 40))}`);
  }
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(PLACES, '0'));
}

export interface Cost {
  /** For each hour, to be compared; see formatCost. */
  parts: bigint;
  /** Undefined: it costs nothing. */
  currency: string | undefined;
}

/**
 * What these amounts cost. A resource without a price costs nothing: nobody asks anything for it. Undefined where prices in several
 * currencies apply, which nobody can add up. Throws Invalid for a price that cannot be read.
 */
export function costOf(amounts: Amounts, prices: Prices): Cost | undefined {
  let [parts, currency]: [bigint, string | undefined] = [0n, undefined];
  for (const [resource, milli] of amounts) {
    const price = Object.hasOwn(prices, resource) ? prices[resource] : undefined;
    const added = price === undefined ? 0n : milli * scaled(price.amount) * partsFor(resource);
    if (price === undefined || added === 0n) continue;
    const asked = currencyOf(price);
    if (currency !== undefined && currency !== asked) return undefined;
    currency = asked;
    parts += added;
  }
  return { parts, currency };
}

/** `eur` is EUR. */
export const currencyOf = ({ currency }: Price): string => currency.toUpperCase();

/** In which something is asked for any of these. Throws Invalid for a price that cannot be read. */
export function currenciesFor(amounts: Amounts, prices: Prices): string[] {
  const asked = [...amounts].flatMap(([resource, milli]) => {
    const price = Object.hasOwn(prices, resource) ? prices[resource] : undefined;
    return price === undefined || milli * scaled(price.amount) === 0n ? [] : [currencyOf(price)];
  });
  return [...new Set(asked)].toSorted();
}

const unitOf = (resource: string): string =>
  resource === 'cpu' ? 'core' : isCounted(resource) ? 'piece' : 'GiB';

/** `0.04 EUR per core and hour`. */
export const formatPrice = (resource: string, price: Price): string =>
  `${price.amount} ${currencyOf(price)} per ${unitOf(resource)} and hour`;

/** Bytes are priced by the GiB, cores and pieces one by one. */
const partsFor = (resource: string): bigint => (resource === 'cpu' || isCounted(resource) ? GI : 1n);

const SHOWN = 6;

/** With six places, rounded up, so that what costs something never seems to cost nothing; `0.012 EUR/h`. */
export function formatCost({ parts, currency }: Cost): string {
  const step = PARTS / 10n ** BigInt(SHOWN);
  const digits = String((parts + step - 1n) / step).padStart(SHOWN + 1, '0');
  const figure = `${digits.slice(0, -SHOWN)}.${digits.slice(-SHOWN)}`.replace(/\.?0+$/u, '');
  return currency === undefined ? figure : `${figure} ${currency}/h`;
}
