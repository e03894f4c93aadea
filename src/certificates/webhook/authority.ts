import { createPrivateKey, X509Certificate } from 'node:crypto';
import type * as X509 from '@peculiar/x509';

import { alternativeNamesOf, generateKey, privatePem } from '../self-signed.ts';
import type { KeyPair } from '../../lib/source.ts';
import { ECDSA_P256, loadX509 } from '../../lib/x509.ts';

/** Names and addresses by which API servers know the webhook. */
export interface WebhookSubject {
  dnsNames: string[];
  ips: string[];
}

const DAY_MS = 24 * 3_600_000;
/** Certificates begin this much earlier, for machines whose clocks are slow. */
export const BACKDATED_MS = 3_600_000;
export const AUTHORITY_LIFE_MS: number = 365 * DAY_MS;
const LEAF_LIFE_MS: number = 30 * DAY_MS;
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';

/** A new authority. It signs serving certificates of the webhook and nothing else; API servers trust it for that alone. */
export async function makeAuthority(nowMs: number): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await generateKey();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // Two of them are trusted at a time, and a chain is looked for by name.
    name: [{ CN: [`tributary webhook authority ${new Date(nowMs).toISOString()}`] }],
    keys,
    signingAlgorithm: ECDSA_P256,
    notBefore: new Date(nowMs - BACKDATED_MS),
    notAfter: new Date(nowMs + AUTHORITY_LIFE_MS),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pemOf(certificate), key: privatePem(keys) };
}

/** A serving certificate with a key of its own; it does not outlive the authority. */
export async function issue(authority: KeyPair, subject: WebhookSubject, nowMs: number): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await generateKey();
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = createPrivateKey(authority.key).toCryptoKey(ECDSA_P256, false, ['sign']);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: ['tributary webhook'] }],
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ECDSA_P256,
    notBefore: new Date(nowMs - BACKDATED_MS),
    notAfter: new Date(Math.min(nowMs + LEAF_LIFE_MS, issuer.notAfter.getTime())),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([SERVER_AUTH]),
      new x509.SubjectAlternativeNameExtension(alternativeNamesOf(subject)),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { certificate: pemOf(certificate), key: privatePem(keys) };
}

const pemOf = (certificate: X509.X509Certificate): string => `${certificate.toString('pem')}\n`;

/** Whether it is a certificate with its key, valid now, and for how long, in milliseconds since the epoch. */
export function periodOf({ certificate, key }: KeyPair): { fromMs: number; toMs: number } | undefined {
  try {
    const parsed = new X509Certificate(certificate);
    if (!parsed.checkPrivateKey(createPrivateKey(key))) return undefined;
    return { fromMs: parsed.validFromDate.getTime(), toMs: parsed.validToDate.getTime() };
  } catch {
    // Without the cause: it might quote the key.
    return undefined;
  }
}

/** Whether this authority has signed it for all these names. */
export function isIssuedBy(leaf: KeyPair, authority: KeyPair, { dnsNames, ips }: WebhookSubject): boolean {
  const parsed = new X509Certificate(leaf.certificate);
  return (
    parsed.verify(new X509Certificate(authority.certificate).publicKey) &&
    dnsNames.every((name) => parsed.checkHost(name) !== undefined) &&
    ips.every((ip) => parsed.checkIP(ip) !== undefined)
  );
}
