/** How a person says on the command line what a SharingPolicy says elsewhere. */
import { checkedSubdomain } from '../api/manifest.ts';
import type { Toleration } from '../api/wire.ts';
import { TributaryError } from '../lib/errors.ts';
import { formatPrefix, parsePrefix } from '../lib/prefix.ts';
import { listOf } from './manifests-output.ts';

/** A label's or taint's key: an optional DNS name, a slash, a name. */
const KEY = /^(?=.{1,317}$)([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const EFFECTS: ReadonlySet<string> = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
/** Ten years. */
const MOST_SECONDS = 315_360_000;
const MAX_NAME = 253;

/** `key=value,...`; undefined without any. */
export function parseNodeSelector(text: string | undefined): Record<string, string> | undefined {
  const entries = listOf(text).map((part): [string, string] => {
    const [key = '', value, ...rest] = part.split('=');
    if (value === undefined || rest.length > 0 || !KEY.test(key) || !VALUE.test(value)) {
      throw new TributaryError(
        'Invalid',
        `node selector "${part}" is not of the form label=value, as in example.com/lends=yes`,
      );
    }
    return [key, value];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** `key[=value][:Effect],...`: without a value any, without an effect all. */
export const parseTolerations = (text: string | undefined): Toleration[] =>
  listOf(text).map((part): Toleration => {
    const [taint = '', effect, ...more] = part.split(':');
    const [key = '', value, ...rest] = taint.split('=');
    const isEffect = effect === undefined || EFFECTS.has(effect);
    if (more.length + rest.length > 0 || !isEffect || !KEY.test(key) || !VALUE.test(value ?? '')) {
      throw new TributaryError(
        'Invalid',
        `toleration "${part}" is not of the form key[=value][:Effect], as in example.com/guests:NoSchedule`,
      );
    }
    return {
      key,
      operator: value === undefined ? 'Exists' : 'Equal',
      ...(value !== undefined && { value }),
      ...(effect !== undefined && { effect }),
    };
  });

export const parseClasses = (what: string, text: string | undefined): string[] =>
  listOf(text).map((name) => checkedSubdomain(what, name, MAX_NAME));

/** `90s`, `30m`, `24h` or `7d`, in seconds. */
export function parseKeepFor(text: string): number {
  const [, amount, unit = ''] = /^([0-9]{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(amount) * (UNITS[unit] ?? Number.NaN);
  if (seconds >= 0 && seconds <= MOST_SECONDS) return seconds;
  throw new TributaryError('Invalid', `"${text}" is not a duration up to 3650d, such as 24h`);
}

/** CIDRs; undefined without any. */
export function parseCidrs(text: string | undefined): string[] | undefined {
  const cidrs = listOf(text).map((cidr) => formatPrefix(parsePrefix(cidr)));
  return cidrs.length === 0 ? undefined : cidrs;
}
