import { METADATA_SERVICES } from './metadata-services.ts';
import { parseAddress, parsePrefix, PrefixSet } from './prefix.ts';

/**
 * Addresses at which no other cluster is. A peer that names such an endpoint could make us send to ourselves, to everybody, or to
 * a metadata service, which gives credentials to whoever asks from a node (RFC 6890).
 */
export const NEVER_DIALLED: PrefixSet = new PrefixSet(
  [
    '0.0.0.0/8',
    '127.0.0.0/8',
    '224.0.0.0/3',
    // ::, ::1, and every form that has an IPv4 address within: lib/prefix.ts reads none of those.
    '::/8',
    'ff00::/8',
    ...METADATA_SERVICES,
  ].map(parsePrefix),
);

const LOOPBACK = new PrefixSet(['127.0.0.0/8', '::1/128'].map(parsePrefix));

/** Whether a peer may send us to that address; it may have a scope (RFC 4007). What is no address is never dialled. */
export function isDialable(
  text: string,
  { allowLoopback = false }: { allowLoopback?: boolean } = {},
): boolean {
  if (allowLoopback && isLoopback(text)) return true;
  const address = parseAddress(text.replace(/%.*$/u, ''));
  return address !== undefined && !NEVER_DIALLED.contains(address);
}

export function isLoopback(text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && LOOPBACK.contains(address);
}

/** Whether a server is on our own host, and with it, perhaps, all others. */
export const isOnLoopback = ({ hostname }: URL): boolean => hostname === '127.0.0.1' || hostname === '[::1]';
