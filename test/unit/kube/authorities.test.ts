import 'reflect-metadata';
import { webcrypto, X509Certificate } from 'node:crypto';
import { expect, test } from '@jest/globals';

import { Authority } from '../../../lab/pki.ts';
import { Authorities } from '../../../src/kube/authorities.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Another certificate for that authority's key and name, as anybody can make it. */
async function crossSigned({ cert }: Authority): Promise<string> {
  const { X509CertificateGenerator } = await import('@peculiar/x509');
  const theirs = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const { subject, publicKey } = new X509Certificate(cert);
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const made = await X509CertificateGenerator.create({
    subject: subject.replaceAll('\n', ', '),
    issuer: 'CN=mallory',
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: new Date(Date.now() + 3_600_000),
    publicKey: await webcrypto.subtle.importKey('spki', spki, ALGORITHM, true, ['verify']),
    signingKey: theirs.privateKey,
    signingAlgorithm: ALGORITHM,
  });
  return made.toString('pem');
}

test('an authority is known by its key, whatever else a certificate says, and by what it has signed', async () => {
  const [ours, theirs] = [await Authority.create('kubernetes'), await Authority.create('kubernetes')];
  const authorities = new Authorities(`${ours.cert}\n${(await Authority.create('old')).cert}`);
  const read = (pem: string): X509Certificate => new X509Certificate(pem);
  expect(authorities.isOne(read(ours.cert))).toBe(true);
  expect(authorities.isOne(read(await crossSigned(ours)))).toBe(true);
  // The same name is no sign of anything.
  expect(authorities.knows(read(theirs.cert))).toBe(false);
  const [leaf, other] = [await ours.issue({ commonName: 'api' }), await theirs.issue({ commonName: 'api' })];
  expect(authorities.isOne(read(leaf.cert))).toBe(false);
  expect(authorities.knows(read(leaf.cert))).toBe(true);
  expect(authorities.knows(read(other.cert))).toBe(false);
});

test('a text without a certificate knows nobody', async () => {
  const { cert } = await Authority.create('kubernetes');
  expect(new Authorities('').knows(new X509Certificate(cert))).toBe(false);
});
