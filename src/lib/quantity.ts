import { TributaryError } from './errors.ts';

/** Powers of ten (first) or two (second) that a suffix stands for. */
const SUFFIXES: Readonly<Record<string, readonly [ten: number, two: number]>> = {
  n: [-9, 0],
  u: [-6, 0],
  m: [-3, 0],
  '': [0, 0],
  k: [3, 0],
  M: [6, 0],
  G: [9, 0],
  T: [12, 0],
  P: [15, 0],
  E: [18, 0],
  Ki: [0, 10],
  Mi: [0, 20],
  Gi: [0, 30],
  Ti: [0, 40],
  Pi: [0, 50],
  Ei: [0, 60],
};

const QUANTITY =
  /^([+-]?)(\d{1,30})?(?:\.(\d{0,30}))?(?:[eE]([+-]?\d{1,2})|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?$/;

/** Exact value as mantissa * 10^ten * 2^two. */
interface Parts {
  mantissa: bigint;
  ten: number;
  two: number;
}

/**
 * The text comes from other clusters: its length and exponent are bounded, so nothing here takes long or grows.
 * Throws Invalid.
 */
function parseParts(text: string): Parts {
  const [, sign, whole, fraction, exponent, suffix = ''] = QUANTITY.exec(text) ?? [];
  const [ten, two] = SUFFIXES[suffix] ?? [0, 0];
  if (sign === undefined || (whole ?? fraction ?? '') === '') {
    throw new TributaryError('Invalid', `not a quantity: ${JSON.stringify(text.slice(0, 80))}`);
  }
  const mantissa = BigInt(`${sign === '-' ? '-' : ''}${whole ?? ''}${fraction ?? ''}`);
  return { mantissa, ten: ten + Number(exponent ?? 0) - (fraction?.length ?? 0), two };
}

/** A Kubernetes quantity in its base unit, to the precision of a double; throws Invalid for anything else. */
export function parseQuantity(text: string): number {
  const { mantissa, ten, two } = parseParts(text);
  // Division is exact where multiplication by a fraction is not: 100m is 0.1.
  const number = ten < 0 ? Number(mantissa) / 10 ** -ten : Number(mantissa) * 10 ** ten;
  return number * 2 ** two;
}

/**
 * A quantity in thousandths of its base unit, exactly, rounded up as Kubernetes rounds. For sums and comparisons of
 * what is promised: a double forgets bytes beyond 2^53.
 */
export function parseMilli(text: string): bigint {
  const { mantissa, ten, two } = parseParts(text);
  const scaled = mantissa << BigInt(two);
  const power = ten + 3;
  if (power >= 0) return scaled * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  const quotient = scaled / divisor;
  return scaled > 0n && scaled % divisor !== 0n ? quotient + 1n : quotient;
}

/** The shortest quantity of a value: `binary` for bytes (512Mi), `decimal` for the rest (1500m, 2, 3k). */
export function formatMilli(milli: bigint, form: 'binary' | 'decimal'): string {
  if (milli % 1000n !== 0n) return `${milli}m`;
  const value = milli / 1000n;
  const units =
    form === 'binary' ? ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] : ['', 'k', 'M', 'G', 'T', 'P', 'E'];
  const step = form === 'binary' ? 1024n : 1000n;
  let [rest, unit] = [value, 0];
  while (rest !== 0n && rest % step === 0n && unit < units.length - 1) {
    rest /= step;
    unit++;
  }
  return `${rest}${units[unit]}`;
}
