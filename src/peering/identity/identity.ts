import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
  type webcrypto,
} from 'node:crypto';
import { TributaryError } from '../../lib/errors.ts';
import type { OwnIdentity, SignaturePurpose } from '../ports.ts';

/** Of a raw Ed25519 public key (RFC 8032). */
export const PUBLIC_KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const ID_LENGTH = 26;
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * Lower-case base32 (RFC 4648, section 6, without padding) of the SHA-256 of the raw public key, its first 26
 * characters: 130 bits, and a DNS label. Throws Invalid for what is not such a key.
 */
export function clusterIDOf(publicKey: Uint8Array): string {
  if (publicKey.length !== PUBLIC_KEY_BYTES) {
    throw new TributaryError('Invalid', `an Ed25519 public key has 32 bytes, not ${publicKey.length}`);
  }
  const digest = BigInt(`0x${createHash('sha256').update(publicKey).digest('hex')}`);
  let id = '';
  for (let index = 1; index <= ID_LENGTH; index++) {
    id += BASE32.charAt(Number((digest >> BigInt(256 - 5 * index)) & 31n));
  }
  return id;
}

/** A ClusterID in groups, as people compare it. */
export const fingerprintOf = (clusterID: string): string => clusterID.match(/.{1,4}/g)?.join('-') ?? '';

/** Raw bytes of the public key of an Ed25519 key; undefined for a key of another kind. */
export function rawPublicKey(key: KeyObject): Uint8Array | undefined {
  if (key.asymmetricKeyType !== 'ed25519') return undefined;
  const { x } = createPublicKeyOf(key).export({ format: 'jwk' });
  return typeof x === 'string' ? Buffer.from(x, 'base64url') : undefined;
}

const createPublicKeyOf = (key: KeyObject): KeyObject =>
  key.type === 'private' ? createPublicKey(key) : key;

/** The bytes that are signed; a signature for one purpose proves nothing for another, nor for TLS. */
const signedBytes = (purpose: SignaturePurpose, text: string): Buffer =>
  Buffer.from(`tributary ${purpose} v1\n${text}`, 'utf8');

/** False for anything malformed; never throws. */
export function verifySignature(
  publicKey: Uint8Array,
  purpose: SignaturePurpose,
  text: string,
  signatureBase64: string,
): boolean {
  if (publicKey.length !== PUBLIC_KEY_BYTES || signatureBase64.length > 2 * SIGNATURE_BYTES) return false;
  const signature = Buffer.from(signatureBase64, 'base64');
  // Only one text is allowed for a signature: Buffer.from ignores characters that are not base64.
  if (signature.length !== SIGNATURE_BYTES || signature.toString('base64') !== signatureBase64) return false;
  const x = Buffer.from(publicKey).toString('base64url');
  try {
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return verify(null, signedBytes(purpose, text), key, signature);
  } catch {
    return false;
  }
}

/** An identity and the key from which it is made. The key does not leave this object. */
export class Identity implements OwnIdentity {
  readonly clusterID: string;
  readonly publicKey: Uint8Array;
  readonly #key: KeyObject;

  /** Throws Invalid unless it is a private Ed25519 key. */
  constructor(privateKey: KeyObject) {
    const publicKey = privateKey.type === 'private' ? rawPublicKey(privateKey) : undefined;
    if (publicKey === undefined) {
      throw new TributaryError('Invalid', 'an identity needs a private Ed25519 key');
    }
    this.publicKey = publicKey;
    this.clusterID = clusterIDOf(publicKey);
    this.#key = privateKey;
  }

  /** Makes a new one, which is not stored. */
  static generate(): Identity {
    return new Identity(generateKeyPairSync('ed25519').privateKey);
  }

  sign(purpose: SignaturePurpose, text: string): string {
    return sign(null, signedBytes(purpose, text), this.#key).toString('base64');
  }

  /** For certificates. The private key can sign, but cannot be exported. */
  certificateKeys(): webcrypto.CryptoKeyPair {
    return {
      privateKey: this.#key.toCryptoKey({ name: 'Ed25519' }, false, ['sign']),
      publicKey: createPublicKey(this.#key).toCryptoKey({ name: 'Ed25519' }, true, ['verify']),
    };
  }
}
