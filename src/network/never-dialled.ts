import { parsePrefix } from '../lib/prefix.ts';
import type { Prefix } from '../lib/prefix.ts';

/**
 * Where no peer's gateway is: a peer that names such an endpoint could have us send to ourselves, or to everybody (RFC 6890).
 * lib/prefix.ts reads no IPv4 addresses within IPv6.
 */
export const NEVER_DIALLED: readonly Prefix[] = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/127',
  'fe80::/10',
  'ff00::/8',
].map(parsePrefix);
