import { PRICE_AMOUNT_PATTERN } from '../../api/limits.ts';
import { TributaryError } from '../../lib/errors.ts';

const DECIMAL = new RegExp(PRICE_AMOUNT_PATTERN, 'u');
/** Places behind the point that the pattern lets through. */
const PLACES = 9;

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
