import { X509Certificate } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { generateKey, selfSigned } from '../../../src/server/certificate/self-signed.ts';
import {
  createSigningRequest,
  isSameIp,
  parseSigningRequest,
} from '../../../src/server/certificate/signing-request.ts';
import { loadX509 } from './support/certificates.ts';

const subject = {
  commonName: 'system:node:milan',
  organizations: ['system:nodes'],
  dnsNames: ['milan'],
  ips: ['10.0.0.7', 'fd00::7', '::ffff:1.2.3.4'],
};
const expanded = ['10.0.0.7', 'fd00:0:0:0:0:0:0:7', '0:0:0:0:0:ffff:102:304'];

test('a request is what another implementation reads', async () => {
  const x509 = await loadX509();
  const request = new x509.Pkcs10CertificateRequest(createSigningRequest(subject, generateKey()));
  expect(await request.verify()).toBe(true);
  expect(request.subject).toBe('O=system:nodes, CN=system:node:milan');
  const [extension] = request.extensions as InstanceType<typeof x509.SubjectAlternativeNameExtension>[];
  const names = extension?.names.toJSON() ?? [];
  expect(names.map(({ type }) => type)).toEqual(['dns', 'ip', 'ip', 'ip']);
  expect(names[0]?.value).toBe('milan');
});

test('a request of another implementation is read', async () => {
  const x509 = await loadX509();
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, [
    'sign',
    'verify',
  ]);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: 'O=system:nodes, CN=system:node:milan, L=Milano',
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    extensions: [
      new x509.SubjectAlternativeNameExtension([
        { type: 'dns', value: 'milan' },
        { type: 'ip', value: '10.0.0.7' },
        { type: 'email', value: 'a@b.c' },
      ]),
      new x509.BasicConstraintsExtension(true),
    ],
  });
  expect(parseSigningRequest(request.toString('pem'))).toEqual({
    commonName: 'system:node:milan',
    organizations: ['system:nodes'],
    dnsNames: ['milan'],
    ips: ['10.0.0.7'],
    other: ['subject attribute 2.5.4.7', 'alternative name of type 1', 'extension 2.5.29.19'],
  });
});

test('what is written is read back', () => {
  const parsed = parseSigningRequest(createSigningRequest(subject, generateKey()));
  expect(parsed).toEqual({ ...subject, ips: expanded, other: [] });
});

test('a changed byte anywhere is refused', () => {
  const der = Buffer.from(
    createSigningRequest(subject, generateKey()).replaceAll(/-----.*-----|\s/g, ''),
    'base64',
  );
  for (let at = 0; at < der.length; at += 1) {
    const changed = Buffer.from(der);
    changed[at] = (changed[at] ?? 0) ^ 0x01;
    const text = `-----BEGIN CERTIFICATE REQUEST-----\n${changed.toString('base64')}\n-----END CERTIFICATE REQUEST-----`;
    expect(() => parseSigningRequest(text)).toThrow(/./);
  }
});

test.each(['', 'x', '-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----', '\0'])(
  'no request: %j',
  (text) => {
    expect(() => parseSigningRequest(text)).toThrow(/./);
  },
);

test('a self-signed certificate names the node', () => {
  const now = Date.UTC(2060, 0, 2);
  const { certificate } = selfSigned(subject, now);
  const parsed = new X509Certificate(certificate);
  expect(parsed.subject).toBe('O=system:nodes\nCN=system:node:milan');
  expect(parsed.checkIP('fd00::7')).toBe('fd00::7');
  expect(parsed.verify(parsed.publicKey)).toBe(true);
  expect(parsed.validFromDate.getTime()).toBe(now - 3_600_000);
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
