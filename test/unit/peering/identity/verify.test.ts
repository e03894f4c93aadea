import 'reflect-metadata';
import { X509Certificate, webcrypto } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import * as x509 from '@peculiar/x509';
import {
  BACKDATED_MS,
  CLIENT_AUTH,
  SERVER_AUTH,
  issueLeaf,
  serverNameOf,
} from '../../../../src/peering/identity/certificate.ts';
import { Identity } from '../../../../src/peering/identity/identity.ts';
import { CLOCK_SKEW_MS } from '../../../../src/api/limits.ts';
import { verifyChain } from '../../../../src/peering/identity/verify.ts';
import { hasCode } from '../../../../src/lib/errors.ts';
import { fc } from '../../../support/property.ts';

const NOW = Date.UTC(2026, 5, 1);
const DAY_MS = 86_400_000;
const ED25519 = { name: 'Ed25519' };
const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

const me = Identity.generate();
let [leaf, authority]: Uint8Array[] = [];
let otherLeaf: Uint8Array;
let otherAuthority: Uint8Array;

async function chainOf(identity: Identity): Promise<Uint8Array[]> {
  const { certificate } = await issueLeaf(identity, { nowMs: NOW, lifeMs: DAY_MS });
  const pems = certificate.split(/(?<=-----END CERTIFICATE-----\n)/).filter((pem) => pem.trim() !== '');
  return pems.map((pem) => new X509Certificate(pem).raw);
}

beforeAll(async () => {
  [leaf, authority] = await chainOf(me);
  const other = await chainOf(Identity.generate());
  otherLeaf = other[0] ?? new Uint8Array();
  otherAuthority = other[1] ?? new Uint8Array();
});

interface Variant {
  key?: webcrypto.EcKeyGenParams | { name: string };
  sans?: string[];
  usages?: string[];
  isAuthority?: boolean;
  issuer?: string;
  signer?: webcrypto.CryptoKey;
}

/** A leaf that the identity itself has signed, with one thing about it different. */
async function variant(options: Variant): Promise<Uint8Array> {
  const algorithm = options.key ?? P256;
  const keys = await webcrypto.subtle.generateKey(algorithm as typeof P256, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    subject: 'CN=x',
    issuer: options.issuer ?? new x509.X509Certificate(Buffer.from(authority ?? [])).subject,
    publicKey: keys.publicKey,
    signingKey: options.signer ?? me.certificateKeys().privateKey,
    signingAlgorithm: ED25519,
    notBefore: new Date(NOW - 1000),
    notAfter: new Date(NOW + DAY_MS),
    extensions: [
      new x509.BasicConstraintsExtension(options.isAuthority ?? false, undefined, true),
      new x509.ExtendedKeyUsageExtension(options.usages ?? [SERVER_AUTH, CLIENT_AUTH]),
      new x509.SubjectAlternativeNameExtension(
        (options.sans ?? [serverNameOf(me.clusterID)]).map((value) => ({ type: 'dns', value })),
      ),
    ],
  });
  return new Uint8Array(certificate.rawData);
}

const verify = (chain: (Uint8Array | undefined)[], nowMs: number = NOW): ReturnType<typeof verifyChain> =>
  verifyChain(
    chain.filter((each) => each !== undefined),
    nowMs,
  );

describe('a chain', () => {
  test('proves the identity that it was issued by', () => {
    const peer = verify([leaf, authority]);
    expect(peer.clusterID).toBe(me.clusterID);
    expect(Buffer.from(peer.publicKey)).toEqual(Buffer.from(me.publicKey));
  });

  test('has the same identity certificate whenever it is made', async () => {
    const later = await issueLeaf(me, { nowMs: NOW + 9e9, lifeMs: 1 });
    const [, again = ''] = later.certificate.split(/(?<=-----END CERTIFICATE-----\n)/);
    expect(Buffer.from(new X509Certificate(again).raw)).toEqual(Buffer.from(authority ?? []));
  });

  test('may come with a variant that changes nothing', async () => {
    expect(verify([await variant({}), authority]).clusterID).toBe(me.clusterID);
  });

  test('is exactly two certificates in order', () => {
    for (const chain of [[], [leaf], [authority], [authority, leaf], [leaf, authority, authority]]) {
      expect(() => verify(chain)).toThrow(expect.objectContaining({ code: 'Unauthorized' }));
    }
    expect(() => verify([authority, authority])).toThrow('no P-256 key');
  });

  test('does not mix two identities', () => {
    expect(() => verify([leaf, otherAuthority])).toThrow('not signed by the identity');
    expect(() => verify([otherLeaf, authority])).toThrow('not signed by the identity');
    expect(() => verify([leaf, leaf])).toThrow('no Ed25519 key');
  });

  test.each<[string, Variant]>([
    ['no P-256 key', { key: { name: 'ECDSA', namedCurve: 'P-384' } }],
    ['no P-256 key', { key: ED25519 }],
    ['does not name', { sans: [serverNameOf('a'.repeat(26))] }],
    ['does not name', { sans: [serverNameOf(me.clusterID), 'another'] }],
    ['not made for both ends', { usages: [SERVER_AUTH] }],
    ['not made for both ends', { usages: [CLIENT_AUTH] }],
    ['not signed by the identity', { isAuthority: true }],
    ['not signed by the identity', { issuer: 'CN=somebody else' }],
    ['not signed by the identity', { signer: Identity.generate().certificateKeys().privateKey }],
  ])('is refused: %s (%#)', async (reason, options) => {
    const bytes = await variant(options);
    expect(() => verify([bytes, authority])).toThrow(reason);
  });

  test('is refused where the identity did not sign itself', async () => {
    const { publicKey } = Identity.generate().certificateKeys();
    const posing = await x509.X509CertificateGenerator.create({
      subject: 'CN=x identity',
      issuer: 'CN=x identity',
      publicKey,
      signingKey: me.certificateKeys().privateKey,
      signingAlgorithm: ED25519,
      extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
    });
    expect(() => verify([leaf, new Uint8Array(posing.rawData)])).toThrow('not signed by its own key');
  });

  test('is valid in its time, give or take the clocks', () => {
    const [from, to] = [NOW - BACKDATED_MS, NOW + DAY_MS];
    for (const ms of [from - CLOCK_SKEW_MS, from, to, to + CLOCK_SKEW_MS]) verify([leaf, authority], ms);
    expect(() => verify([leaf, authority], from - CLOCK_SKEW_MS - 1)).toThrow('not valid yet');
    expect(() => verify([leaf, authority], to + CLOCK_SKEW_MS + 1)).toThrow('has expired');
  });

  test('with any byte changed proves nothing, or still the same', () => {
    const whole = [leaf, authority] as [Uint8Array, Uint8Array];
    fc.assert(
      fc.property(fc.boolean(), fc.nat(), fc.integer({ min: 1, max: 255 }), (first, at, by) => {
        const damaged = whole.map((bytes) => Uint8Array.from(bytes));
        const target = damaged[first ? 0 : 1] as Uint8Array;
        const index = at % target.length;
        target[index] = (target[index] ?? 0) ^ by;
        try {
          expect(verify(damaged).clusterID).toBe(me.clusterID);
        } catch (error) {
          if (!hasCode(error, 'Unauthorized')) throw error;
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('of any bytes is refused, and too many are not even parsed', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 4 }), (chain) => {
        expect(() => verify(chain)).toThrow(expect.objectContaining({ code: 'Unauthorized' }));
      }),
    );
    expect(() => verify([new Uint8Array(5_000), authority])).toThrow('too large');
  });
});
