/** Prices, as people write them in an option. Pure. */
import { BASIC_RESOURCES, isOfferable, STORAGE } from '../../api/amounts.ts';
import { CURRENCY_PATTERN, PRICE_AMOUNT_PATTERN } from '../../api/limits.ts';
import type { Price } from '../../api/offer.ts';
import { listOf, wrongForm } from '../command-line.ts';

const AMOUNT = new RegExp(PRICE_AMOUNT_PATTERN, 'u');
const CURRENCY = new RegExp(CURRENCY_PATTERN, 'u');
/** `cpu=0.02EUR`, also with a blank before the currency. */
const ENTRY = /^([^=\s]+)=([0-9.]+)\s*([A-Za-z]+)$/u;

/** By resource. Throws where one cannot be read, or is of what no cluster lends. */
export function pricesFrom(option: string, text: string): Record<string, Price> {
  const prices: Record<string, Price> = {};
  for (const entry of listOf(text)) {
    const [, resource = '', amount = '', currency = ''] = ENTRY.exec(entry) ?? [];
    if (!AMOUNT.test(amount) || !CURRENCY.test(currency)) {
      throw wrongForm(`${option} must be a list such as cpu=0.02EUR,memory=0.005EUR, not "${entry}"`);
    }
    if (!isOfferable(resource)) {
      const known = [...BASIC_RESOURCES, STORAGE].join(', ');
      throw wrongForm(
        `${option}: "${resource}" is no resource that a cluster lends: those are ${known}, and others of nodes such as example.com/gpu`,
      );
    }
    if (Object.hasOwn(prices, resource)) throw wrongForm(`${option} names ${resource} twice`);
    prices[resource] = { amount, currency: currency.toUpperCase() };
  }
  return prices;
}
