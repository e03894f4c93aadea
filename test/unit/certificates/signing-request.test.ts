import { X509Certificate } from 'node:crypto';
import { expect, test } from '@jest/globals';
import type * as X509 from '@peculiar/x509';

import { createSigningRequest, parseSigningRequest } from '../../../src/certificates/signing-request.ts';
import { generateKey, isSameIp, selfSigned } from '../../../src/certificates/self-signed.ts';
import { loadX509 } from '../server/support/certificates.ts';

const subject = {
  commonName: 'system:node:milan',
  organizations: ['system:nodes'],
  dnsNames: ['milan'],
  ips: ['10.0.0.7', 'fd00:0:0::7', '::ffff:1.2.3.4'],
};
const plain = ['10.0.0.7', 'fd00::7', '::ffff:102:304'];

const derOf = (pem: string): Buffer => Buffer.from(pem.replaceAll(/-----.*-----|\s/g, ''), 'base64');
const pemOf = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----`;

type Parts = (x509: typeof X509) => Partial<X509.Pkcs10CertificateRequestCreateParams>;

/** A request that differs from ours in some parts, well signed. */
async function requestWith(parts: Parts, algorithm: object = {}): Promise<string> {
  const x509 = await loadX509();
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256', ...algorithm }, true, [
    'sign',
    'verify',
  ]);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ O: ['system:nodes'] }, { CN: ['system:node:milan'] }],
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256', ...algorithm },
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: '10.0.0.7' }])],
    ...parts(x509),
  });
  return request.toString('pem');
}

test('what is written is read back, and in one spelling', async () => {
  const text = await createSigningRequest(subject, await generateKey());
  expect(await parseSigningRequest(text)).toEqual({ ...subject, ips: plain, other: [] });
});

const besides: [string, Parts, string[]][] = [
  ['nothing else', () => ({}), []],
  ['a locality', () => ({ name: 'O=system:nodes, CN=system:node:milan, L=Milano' }), ['subject attribute L']],
  ['two common names', () => ({ name: [{ CN: ['a', 'b'] }] }), ['subject attribute CN']],
  [
    'a text in another encoding',
    () => ({
      name: [
        { O: ['system:nodes'] },
        { CN: [{ bmpString: 'system:node:milan' }] },
      ] as unknown as X509.JsonName,
    }),
    ['a subject in another encoding'],
  ],
  [
    'a mail address',
    (x509) => ({
      extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'email', value: 'a@b.c' }])],
    }),
    ['alternative name of type email'],
  ],
  [
    'an authority',
    (x509) => ({ extensions: [new x509.BasicConstraintsExtension(true)] }),
    ['extension 2.5.29.19'],
  ],
  [
    'names twice',
    (x509) => ({
      extensions: ['milan', 'turin'].map(
        (value) => new x509.SubjectAlternativeNameExtension([{ type: 'dns', value }]),
      ),
    }),
    ['extension 2.5.29.17'],
  ],
  [
    'critical names',
    (x509) => ({
      extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'milan' }], true)],
    }),
    ['extensions in another encoding'],
  ],
  [
    'a challenge password',
    (x509) => ({ attributes: [new x509.ChallengePasswordAttribute('x')], extensions: [] }),
    ['attribute 1.2.840.113549.1.9.7'],
  ],
  [
    'further extensions after a password',
    (x509) => ({ attributes: [new x509.ChallengePasswordAttribute('x')] }),
    ['attribute 1.2.840.113549.1.9.7', 'attribute 1.2.840.113549.1.9.14'],
  ],
];
test.each(besides)('found besides: %s', async (_name, parts, other) => {
  expect((await parseSigningRequest(await requestWith(parts))).other).toEqual(other);
});

test('another digest is refused', async () => {
  const text = await requestWith(() => ({}), { hash: 'SHA-384' });
  await expect(parseSigningRequest(text)).rejects.toThrow('only ECDSA with SHA-256');
});

test('a changed byte anywhere is refused', async () => {
  const der = derOf(await createSigningRequest(subject, await generateKey()));
  for (let at = 0; at < der.length; at += 1) {
    const changed = Buffer.from(der);
    changed[at] = (changed[at] ?? 0) ^ 0x01;
    await expect(parseSigningRequest(pemOf(changed))).rejects.toThrow(/./);
  }
});

test('bytes after the request or between its fields are refused', async () => {
  const der = derOf(await createSigningRequest(subject, await generateKey()));
  const more = Buffer.from([0x05, 0x00]);
  await expect(parseSigningRequest(pemOf(Buffer.concat([der, more])))).rejects.toThrow(
    'holds more than its fields',
  );
  // Lengths of this size are written in two bytes, after the tag and their own count.
  const inside = Buffer.concat([der.subarray(0, 4), der.subarray(4), more]);
  inside.writeUInt16BE(der.length - 4 + more.length, 2);
  await expect(parseSigningRequest(pemOf(inside))).rejects.toThrow('holds more than its fields');
});

test('a request of any length is not even decoded', async () => {
  await expect(parseSigningRequest(pemOf(Buffer.alloc(1_000_000, 0x30)))).rejects.toThrow('too long');
});

test.each([
  '',
  'x',
  '-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----',
  '-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----',
  pemOf(Buffer.alloc(2_000, 0x30)),
  '\0',
])('no request: %j', async (text) => {
  await expect(parseSigningRequest(text)).rejects.toThrow(/./);
});

test('two requests in one text are refused', async () => {
  const text = await createSigningRequest(subject, await generateKey());
  await expect(parseSigningRequest(text + text)).rejects.toThrow('not one PEM');
});

test('a self-signed certificate names the node', async () => {
  const now = Date.UTC(2060, 0, 2);
  const { certificate } = await selfSigned(subject, now);
  const parsed = new X509Certificate(certificate);
  expect(parsed.subject).toBe('O=system:nodes\nCN=system:node:milan');
  expect(plain.map((ip) => parsed.checkIP(ip))).toEqual(plain);
  expect(parsed.verify(parsed.publicKey)).toBe(true);
  expect(parsed.validFromDate.getTime()).toBe(now - 3_600_000);
});

test.each(['nonsense', 'fe80::1%eth0', '10.0.0.0/8'])('%s is asked for in vain', async (ip) => {
  await expect(createSigningRequest({ ...subject, ips: [ip] }, await generateKey())).rejects.toThrow(
    'not an IP address',
  );
});

test.each([
  ['10.0.0.1', '10.0.0.1', true],
  ['10.0.0.1', '10.0.0.2', false],
  ['fd00::7', 'FD00:0:0:0:0:0:0:7', true],
  ['fd00::7', '10.0.0.7', false],
  ['nonsense', 'nonsense', false],
])('%s is %s: %s', (one, other, same) => {
  expect(isSameIp(one, other)).toBe(same);
});
