import { createHash, generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { isClusterID } from '../../../../src/api/forms.ts';
import {
  clusterIDOf,
  fingerprintOf,
  Identity,
  verifySignature,
} from '../../../../src/peering/identity/identity.ts';

/** RFC 4648, bit by bit: another way than the one under test. */
function base32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const groups = bits.match(/.{5}/g) ?? [];
  return groups.map((group) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(Number.parseInt(group, 2))).join('');
}

describe('ClusterID', () => {
  test('is the base32 of the SHA-256 of the public key, cut', () => {
    for (let round = 0; round < 50; round++) {
      const { publicKey, clusterID } = Identity.generate();
      const digest = createHash('sha256').update(publicKey).digest();
      expect(clusterID).toBe(base32(digest).slice(0, 26));
      expect(isClusterID(clusterID)).toBe(true);
    }
  });

  test('of the first key of RFC 8032, section 7.1, is the same for ever', () => {
    const key = Buffer.from('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'hex');
    // sha256sum and base32 of coreutils say so.
    expect(clusterIDOf(key)).toBe('eh7ddx5bksrgcytl7bkai36se4');
  });

  test('is nothing else', () => {
    for (const text of ['', 'a', 'a'.repeat(25), 'a'.repeat(27), `${'a'.repeat(25)}1`, 'A'.repeat(26)]) {
      expect(isClusterID(text)).toBe(false);
    }
    expect(isClusterID(`${'a'.repeat(26)}\n`)).toBe(false);
    expect(() => clusterIDOf(new Uint8Array(31))).toThrow('32 bytes');
    expect(fingerprintOf('abcdefghijklmnopqrstuvwxyz')).toBe('abcd-efgh-ijkl-mnop-qrst-uvwx-yz');
  });
});

describe('signature', () => {
  const identity = Identity.generate();
  const text = '{"a":"ü"}';
  const signature = identity.sign('offer', text);
  const { publicKey } = identity;

  test('proves who wrote which text for which purpose', () => {
    expect(verifySignature(publicKey, 'offer', text, signature)).toBe(true);
    expect(verifySignature(publicKey, 'contract', text, signature)).toBe(false);
    expect(verifySignature(publicKey, 'offer', `${text} `, signature)).toBe(false);
    expect(verifySignature(Identity.generate().publicKey, 'offer', text, signature)).toBe(false);
  });

  test('has one spelling; anything else is false and no error', () => {
    const other = [
      '',
      signature.slice(0, -4),
      `${signature}AAAA`,
      signature.replace('==', ''),
      ` ${signature}`,
      signature.replace(/^./, '%'),
      'x'.repeat(100_000),
    ];
    for (const each of other) expect(verifySignature(publicKey, 'offer', text, each)).toBe(false);
    expect(verifySignature(publicKey.subarray(1), 'offer', text, signature)).toBe(false);
    expect(verifySignature(new Uint8Array(32).fill(255), 'offer', text, signature)).toBe(false);
  });

  test('needs a private Ed25519 key', () => {
    const { publicKey: half } = generateKeyPairSync('ed25519');
    const { privateKey: other } = generateKeyPairSync('ed448');
    for (const key of [half, other]) expect(() => new Identity(key)).toThrow('private Ed25519 key');
    expect(JSON.stringify(Identity.generate())).not.toContain('PRIVATE');
    expect(identity.certificateKeys().privateKey.extractable).toBe(false);
  });
});
