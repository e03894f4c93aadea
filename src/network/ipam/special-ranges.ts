import { METADATA_SERVICES } from '../../lib/metadata-services.ts';
import {
  contains,
  formatPrefix,
  type IpFamily,
  overlaps,
  parsePrefix,
  type Prefix,
} from '../../lib/prefix.ts';

/** No pod ever has such an address. To route or rewrite one would turn a host against itself (RFC 6890). */
const SPECIAL: readonly (readonly [Prefix, string])[] = (
  [
    ['0.0.0.0/8', 'unspecified'],
    ['127.0.0.0/8', 'loopback'],
    ['169.254.0.0/16', 'link-local'],
    ['224.0.0.0/4', 'multicast'],
    ['240.0.0.0/4', 'broadcast or class E'],
    // ::, ::1, and every form that has an IPv4 address within (RFC 4291 section 2.5.5, RFC 6052).
    ['::/8', 'unspecified, loopback or embedded IPv4'],
    ['fe80::/10', 'link-local'],
    ['ff00::/8', 'multicast'],
  ] as const
).map(([text, name]) => [parsePrefix(text), name]);

/** Addresses that the public Internet does not use: RFC 1918, 6598, 2544, 5737, 4193, 3849, 9637. */
const PRIVATE: readonly Prefix[] = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '198.18.0.0/15',
  '192.0.2.0/24',
  '198.51.100.0/24',
  '203.0.113.0/24',
  'fc00::/7',
  '2001:db8::/32',
  '3fff::/20',
].map(parsePrefix);

/** No cluster's pods fill a wider prefix. */
const WIDEST: Readonly<Record<IpFamily, number>> = { 4: 8, 6: 16 };

export const SPECIAL_RANGES: readonly Prefix[] = SPECIAL.map(([range]) => range);

/** No view ever has such an address, though a pool may cover it, and though a peer may have it at home. */
export const NEVER_SEEN: readonly Prefix[] = METADATA_SERVICES.map(parsePrefix);

/** Why nobody may use or be seen as this prefix. Undefined where that is allowed. */
export function whySpecial(prefix: Prefix): string | undefined {
  const found = SPECIAL.find(([range]) => overlaps(range, prefix));
  if (found === undefined) return undefined;
  return `${formatPrefix(prefix)} has ${found[1]} addresses (${formatPrefix(found[0])})`;
}

/** Why a peer cannot have this prefix at all, whatever it is seen as. */
export function whyHostile(prefix: Prefix): string | undefined {
  if (prefix.length >= WIDEST[prefix.family]) return whySpecial(prefix);
  return `${formatPrefix(prefix)} is too wide: at most /${WIDEST[prefix.family]}`;
}

export const isPrivate = (prefix: Prefix): boolean => PRIVATE.some((range) => contains(range, prefix));
