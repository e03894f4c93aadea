import { KeyObject, createHash, webcrypto } from 'node:crypto';
import type * as X509 from '@peculiar/x509';
import type { KeyPair } from '../../lib/source.ts';
import { ECDSA_P256, loadX509 } from '../../lib/x509.ts';

/** Who signs certificates: an identity. */
export interface CertificateSigner {
  readonly clusterID: string;
  readonly publicKey: Uint8Array;
  certificateKeys(): webcrypto.CryptoKeyPair;
}

const ED25519 = { name: 'Ed25519' } as const;
export const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
export const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
/** For clocks that are not in step. */
export const BACKDATED_MS = 3_600_000;
/** "No well-defined expiration date" (RFC 5280, section 4.1.2.5): an identity ends with its key. */
const NEVER = new Date('9999-12-31T23:59:59Z');

/** The name in a cluster's certificates. Nobody resolves it. */
export const serverNameOf = (clusterID: string): string => `${clusterID}.tributary`;

/** A leaf for TLS with a key of its own, and the identity's certificate behind it. */
export async function issueLeaf(
  signer: CertificateSigner,
  { nowMs, lifeMs }: { nowMs: number; lifeMs: number },
): Promise<KeyPair> {
  const x509 = await loadX509();
  const authority = await identityCertificate(x509, signer);
  const keys = await webcrypto.subtle.generateKey(ECDSA_P256, true, ['sign', 'verify']);
  const leaf = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [signer.clusterID] }],
    issuer: authority.subject,
    publicKey: keys.publicKey,
    signingKey: signer.certificateKeys().privateKey,
    signingAlgorithm: ED25519,
    notBefore: new Date(nowMs - BACKDATED_MS),
    notAfter: new Date(nowMs + lifeMs),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([SERVER_AUTH, CLIENT_AUTH]),
      new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: serverNameOf(signer.clusterID) }]),
    ],
  });
  return {
    certificate: `${leaf.toString('pem')}\n${authority.toString('pem')}\n`,
    key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }),
  };
}

/** The same bytes whenever it is made: Ed25519 signatures are deterministic, and nothing in it depends on the day. */
async function identityCertificate(
  x509: typeof X509,
  signer: CertificateSigner,
): Promise<X509.X509Certificate> {
  return x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [`${signer.clusterID} identity`] }],
    keys: signer.certificateKeys(),
    signingAlgorithm: ED25519,
    serialNumber: serialOf(signer.publicKey),
    notBefore: new Date(0),
    notAfter: NEVER,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
}

/** Positive and of full length, as RFC 5280 wants it. */
function serialOf(publicKey: Uint8Array): string {
  const digest = createHash('sha256').update(publicKey).digest().subarray(0, 16);
  digest[0] = (digest.readUInt8(0) & 0x3f) | 0x40;
  return digest.toString('hex');
}
