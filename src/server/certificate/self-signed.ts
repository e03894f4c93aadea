import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { KeyPair } from '../source.ts';
import { bitString, context, encode, generalizedTime, integer, sequence } from './der.ts';
import { ecdsaWithSha256, encodeName, pem, subjectAltName } from './signing-request.ts';
import type { CertificateSubject } from './signing-request.ts';

export interface KeyObjects {
  publicKey: KeyObject;
  privateKey: KeyObject;
}

/** ECDSA P-256, as the kubelet's. */
export const generateKey = (): KeyObjects => generateKeyPairSync('ec', { namedCurve: 'P-256' });

export const privatePem = ({ privateKey }: KeyObjects): string =>
  privateKey.export({ type: 'pkcs8', format: 'pem' });

const VALID_MS = 365 * 24 * 60 * 60_000;

/**
 * What a kubelet serves while it has nothing better. API servers that do not verify kubelets (no
 * --kubelet-certificate-authority, kubeadm's default) work with it; the others refuse it, as they would no answer.
 */
export function selfSigned(subject: CertificateSubject, nowMs: number): KeyPair {
  const keys = generateKey();
  const name = encodeName(subject);
  const body = sequence(
    encode(context(0, true), integer(Buffer.from([2]))),
    integer(randomBytes(16)),
    ecdsaWithSha256,
    name,
    // An hour back, for clocks that are not in step.
    sequence(generalizedTime(nowMs - 3_600_000), generalizedTime(nowMs + VALID_MS)),
    name,
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    encode(context(3, true), sequence(subjectAltName(subject))),
  );
  const certificate = sequence(body, ecdsaWithSha256, bitString(sign('sha256', body, keys.privateKey)));
  return { certificate: pem('CERTIFICATE', certificate), key: privatePem(keys) };
}
