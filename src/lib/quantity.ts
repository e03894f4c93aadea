import { TributaryError } from './errors.ts';

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)$/;

/** A Kubernetes quantity in its base unit, to the precision of a double; throws Invalid for anything else. */
export function parseQuantity(text: string): number {
  const [, digits, exponent = '', suffix = ''] = QUANTITY.exec(text) ?? [];
  const factor = SUFFIXES[suffix];
  if (digits === undefined || factor === undefined) {
    throw new TributaryError('Invalid', `not a quantity: ${JSON.stringify(text)}`);
  }
  const number = Number(digits + exponent);
  // Division is exact where multiplication by a fraction is not: 100m is 0.1.
  return factor < 1 ? number / Math.round(1 / factor) : number * factor;
}
