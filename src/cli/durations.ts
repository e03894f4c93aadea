import { TributaryError } from '../lib/errors.ts';
import type { CommandLine } from './command-line.ts';

const DAY = 86_400;
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: DAY };
/** Ten years. */
const TEN_YEARS = 3650 * DAY;

interface Reading {
  /** Where the text is from, for the message, without dashes. */
  option?: string;
  /** Both ends belong to it; seconds. */
  least?: number;
  most?: number;
}

/** `60s`, `5m`, `24h` or `7d`, in seconds; without bounds from one second to ten years. Throws Invalid. */
export function parseSeconds(text: string, { option, least = 1, most = TEN_YEARS }: Reading = {}): number {
  const [, amount, unit = ''] = /^([0-9]{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(amount) * (UNITS[unit] ?? Number.NaN);
  if (seconds >= least && seconds <= most) return seconds;
  const from = option === undefined ? '' : `--${option}: `;
  throw new TributaryError(
    'Invalid',
    `${from}"${text}" is not a duration from ${least}s to ${most / DAY}d, such as 60s or 1h`,
  );
}

/** `--timeout` of a command, in milliseconds; `fallback` counts where it is not given. Throws Invalid. */
export const timeoutMsOf = ({ values }: Pick<CommandLine, 'values'>, fallback: string): number =>
  parseSeconds(values['timeout'] ?? fallback, { option: 'timeout' }) * 1000;
