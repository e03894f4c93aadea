/** Certificates for tests, from an authority of their own. */
import { webcrypto } from 'node:crypto';
import type * as x509Types from '@peculiar/x509';

type X509 = typeof x509Types;

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

export interface Issued {
  certificate: string;
  key: string;
}

export interface Authority {
  certificate: string;
  issue(name: string, options?: IssueOptions): Promise<Issued>;
}

export interface IssueOptions {
  ips?: string[];
  usage?: 'client' | 'server';
  notBefore?: Date;
  notAfter?: Date;
}

/** The library, ready for use. */
export async function loadX509(): Promise<X509> {
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  x509.cryptoProvider.set(webcrypto);
  return x509;
}

const DAY_MS = 86_400_000;
const period = (options: IssueOptions): { notBefore: Date; notAfter: Date } => ({
  notBefore: options.notBefore ?? new Date(Date.now() - DAY_MS),
  notAfter: options.notAfter ?? new Date(Date.now() + DAY_MS),
});

async function keyPem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', key));
  return `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`;
}

export async function createAuthority(name = 'CN=test authority'): Promise<Authority> {
  const x509 = await loadX509();
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name,
    keys,
    signingAlgorithm: algorithm,
    ...period({}),
    extensions: [new x509.BasicConstraintsExtension(true, 1, true)],
  });
  let serial = 16;
  return {
    certificate: authority.toString('pem'),
    async issue(subject, options = {}) {
      serial += 1;
      const own = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
      const usage = options.usage === 'server' ? 'serverAuth' : 'clientAuth';
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: serial.toString(16),
        subject,
        issuer: authority.subject,
        publicKey: own.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: algorithm,
        ...period(options),
        extensions: [
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage[usage]]),
          new x509.SubjectAlternativeNameExtension(
            (options.ips ?? []).map((value) => ({ type: 'ip', value })),
          ),
        ],
      });
      return { certificate: certificate.toString('pem'), key: await keyPem(own.privateKey) };
    },
  };
}
