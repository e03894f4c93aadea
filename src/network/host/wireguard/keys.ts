/** Curve25519 keys of WireGuard: the raw 32 bytes in base64 (RFC 7748), made without a program. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';

import { TributaryError } from '../../../lib/errors.ts';

/** Base64. */
export interface KeyPair {
  privateKey: string;
  publicKey: string;
}

/** 32 bytes in base64: 43 characters, of which the last holds two zero bits, and one `=`. */
const KEY = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

export const isKey = (value: string): boolean => KEY.test(value);

export function generateKey(): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('x25519');
  return { privateKey: raw(privateKey, 'd'), publicKey: raw(publicKey, 'x') };
}

/** @throws Invalid. The message does not hold the key. */
export function publicKeyOf(privateKey: string): string {
  if (!isKey(privateKey)) {
    throw new TributaryError('Invalid', 'the private WireGuard key is not 32 bytes in base64');
  }
  const bytes = Buffer.from(privateKey, 'base64');
  const key = createPrivateKey({ key: Buffer.concat([PKCS8, bytes]), format: 'der', type: 'pkcs8' });
  return raw(createPublicKey(key), 'x');
}

/** What precedes the 32 bytes of an X25519 private key in DER (RFC 8410, section 7). */
const PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex');

function raw(key: KeyObject, member: 'd' | 'x'): string {
  const value = key.export({ format: 'jwk' })[member];
  return Buffer.from(value ?? '', 'base64url').toString('base64');
}
