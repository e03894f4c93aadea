import { webcrypto } from 'node:crypto';
export interface TestCertificate {
  cert: string;
  key: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** A self-signed certificate that is its own authority, valid for these names and addresses for a day. */
export async function selfSigned(
  names: readonly string[] = ['127.0.0.1', 'localhost'],
): Promise<TestCertificate> {
  // In this order and not static: Jest evaluates a CommonJS dependency before any module that imports it.
  await import('reflect-metadata');
  const { BasicConstraintsExtension, SubjectAlternativeNameExtension, X509CertificateGenerator } =
    await import('@peculiar/x509');
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${names[0] ?? 'test'}`,
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: new Date(Date.now() + 86_400_000),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new SubjectAlternativeNameExtension(
        names.map((name) => ({ type: /^[0-9.]+$|:/.test(name) ? 'ip' : 'dns', value: name })),
      ),
    ],
  });
  const key = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  const lines = key.match(/.{1,64}/g)?.join('\n') ?? '';
  return {
    cert: certificate.toString('pem'),
    key: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`,
  };
}
