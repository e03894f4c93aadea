/**
 * A network key is a secret that clusters of one owner share. It is never sent: each side shows an HMAC (RFC 2104,
 * FIPS 198-1) over both ClusterIDs, in the order sender, receiver, so that a proof can be neither reflected nor shown
 * to a third cluster. TLS has proved both IDs before; a replay on another link of the same two proves nothing new.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { TributaryError } from '../../lib/errors.ts';

/** Bytes. Whoever has seen a proof could guess a shorter key from it. */
const LEAST_KEY_BYTES = 16;
const MOST_KEY_BYTES = 4096;

/** The HMAC-SHA256 that `from` shows to `to`, base64. */
export function networkProof(key: Uint8Array, from: string, to: string): string {
  return createHmac('sha256', key).update(`tributary network v1\n${from}\n${to}`).digest('base64');
}

/** Whether that proof was made with this key, by `from` for `to`; the time that it takes tells nothing of the key. */
export function provesNetworkKey(
  proof: string,
  key: Uint8Array,
  { from, to }: { from: string; to: string },
): boolean {
  const wanted = Buffer.from(networkProof(key, from, to));
  const shown = Buffer.from(proof);
  return shown.length === wanted.length && timingSafeEqual(shown, wanted);
}

/** Returns the key, or throws Invalid. `what` says where the key comes from; the key itself is never shown. */
export function checkNetworkKey(key: Uint8Array, what = 'network key'): Uint8Array {
  if (key.byteLength < LEAST_KEY_BYTES || key.byteLength > MOST_KEY_BYTES) {
    throw new TributaryError(
      'Invalid',
      `${what} has ${key.byteLength} bytes, from ${LEAST_KEY_BYTES} to ${MOST_KEY_BYTES} are allowed; make one with: openssl rand -base64 32`,
    );
  }
  return key;
}
