import { TributaryError } from '../lib/errors.ts';

const DAY = 86_400;
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: DAY };
/** Ten years. */
const TEN_YEARS = 3650 * DAY;

/** Both ends belong to it; seconds. */
interface Bounds {
  least?: number;
  most?: number;
}

/** `60s`, `5m`, `24h` or `7d`, in seconds; without bounds from one second to ten years. Throws Invalid. */
export function parseSeconds(text: string, { least = 1, most = TEN_YEARS }: Bounds = {}): number {
  const [, amount, unit = ''] = /^([0-9]{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(amount) * (UNITS[unit] ?? Number.NaN);
  if (seconds >= least && seconds <= most) return seconds;
  throw new TributaryError(
    'Invalid',
    `"${text}" is not a duration from ${least}s to ${most / DAY}d, such as 60s or 1h`,
  );
}
