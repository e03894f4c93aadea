import { KeyObject, webcrypto } from 'node:crypto';
import type { KeyPair } from '../lib/source.ts';
import { alternativeNamesOf, nameOf } from './subject.ts';
import type { CertificateSubject } from './subject.ts';
import { ECDSA_P256, loadX509 } from '../lib/x509.ts';

export const generateKey = async (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(ECDSA_P256, true, ['sign', 'verify']);

export const privatePem = ({ privateKey }: webcrypto.CryptoKeyPair): string =>
  KeyObject.from(privateKey).export({ type: 'pkcs8', format: 'pem' });

const VALID_MS = 365 * 24 * 60 * 60_000;

/**
 * What a kubelet serves while it has nothing better. API servers that do not verify kubelets (no
 * --kubelet-certificate-authority, kubeadm's default) work with it; the others refuse it, as they would no answer.
 */
export async function selfSigned(subject: CertificateSubject, nowMs: number): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await generateKey();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: nameOf(subject),
    keys,
    signingAlgorithm: ECDSA_P256,
    // An hour back, for clocks that are not in step.
    notBefore: new Date(nowMs - 3_600_000),
    notAfter: new Date(nowMs + VALID_MS),
    extensions: [new x509.SubjectAlternativeNameExtension(alternativeNamesOf(subject))],
  });
  return { certificate: `${certificate.toString('pem')}\n`, key: privatePem(keys) };
}
