/**
 * A certificate authority in memory: EC P-256, made with Node's own crypto so that no openssl has to be installed.
 * Clusters get two (their own and the one of the aggregation front proxy), tests issue what they need from them.
 */
import 'reflect-metadata';

import { generateKeyPairSync, randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';

import type * as X509 from '@peculiar/x509';

// Not a static import: some loaders evaluate CommonJS before any module, the polyfill's importer included.
const x509 = await import('@peculiar/x509');

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING = { name: 'ECDSA', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 365;

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Who a certificate is for. With `dns` or `ips` it also serves; every certificate may be used by a client. */
export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
  readonly dns?: readonly string[];
  readonly ips?: readonly string[];
  /** Default 365. Fractions are permitted, and negative values make certificates that have already expired. */
  readonly days?: number;
}

export class Authority {
  /** The CA certificate, PEM. */
  readonly cert: string;
  /** The CA's private key, PEM (PKCS#8). */
  readonly key: string;
  readonly #certificate: X509.X509Certificate;
  readonly #signingKey: CryptoKey;

  private constructor(pair: KeyPair, signingKey: CryptoKey) {
    this.cert = pair.cert;
    this.key = pair.key;
    this.#certificate = new x509.X509Certificate(pair.cert);
    this.#signingKey = signingKey;
  }

  static async create(commonName: string): Promise<Authority> {
    const keys = await generateKeys();
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: serialNumber(),
      name: [{ CN: [commonName] }],
      ...validity(DEFAULT_DAYS * 10),
      signingAlgorithm: SIGNING,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
          true,
        ),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new Authority({ cert: pem(certificate), key: await privatePem(keys.privateKey) }, keys.privateKey);
  }

  /** Makes the authority again, from its `cert` and `key`. */
  static async load(pair: KeyPair): Promise<Authority> {
    const der = x509.PemConverter.decodeFirst(pair.key);
    const key = await webcrypto.subtle.importKey('pkcs8', der, ALGORITHM, true, ['sign']);
    return new Authority(pair, key);
  }

  async issue(subject: Subject): Promise<KeyPair> {
    const keys = await generateKeys();
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject: subjectName(subject),
      issuer: this.#certificate.subject,
      ...validity(subject.days ?? DEFAULT_DAYS),
      signingAlgorithm: SIGNING,
      publicKey: keys.publicKey,
      signingKey: this.#signingKey,
      extensions: await leafExtensions(subject, keys.publicKey, this.#certificate),
    });
    return { cert: pem(certificate), key: await privatePem(keys.privateKey) };
  }
}

/** The RSA pair that signs service account tokens: RSA, because RS256 is what every verifier of them knows. */
export function serviceAccountKeys(): { readonly privateKey: string; readonly publicKey: string } {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

function subjectName(subject: Subject): X509.JsonName {
  // One RDN per organization: Go's parser, which the API server uses, reads groups from each.
  return [...(subject.organizations ?? []).map((name) => ({ O: [name] })), { CN: [subject.commonName] }];
}

async function leafExtensions(
  subject: Subject,
  publicKey: CryptoKey,
  issuer: X509.X509Certificate,
): Promise<X509.Extension[]> {
  const names: X509.JsonGeneralName[] = [
    ...(subject.dns ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(subject.ips ?? []).filter((value) => isIP(value)).map((value) => ({ type: 'ip' as const, value })),
  ];
  const usages: string[] = [x509.ExtendedKeyUsage.clientAuth];
  if (names.length > 0) usages.push(x509.ExtendedKeyUsage.serverAuth);
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension(usages),
    await x509.AuthorityKeyIdentifierExtension.create(issuer),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
  ];
}

function validity(days: number): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  // A minute early, so that a clock that lags a little accepts the certificate at once.
  return {
    notBefore: new Date(Math.min(now, now + days * DAY_MS) - 60_000),
    notAfter: new Date(now + days * DAY_MS),
  };
}

/** 16 random bytes with the first bit clear: RFC 5280 4.1.2.2 wants a positive number. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

function pem(certificate: X509.X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}

async function privatePem(key: CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key);
  return `${x509.PemConverter.encode(der, 'PRIVATE KEY')}\n`;
}
