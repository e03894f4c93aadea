import { expect, test } from '@jest/globals';
import {
  checkNetworkKey,
  networkProof,
  provesNetworkKey,
} from '../../../../src/peering/identity/network-key.ts';

const KEY = Buffer.alloc(16, 7);
const [FROM, TO] = ['a'.repeat(26), 'b'.repeat(26)];

test('the proof is an HMAC-SHA256 over both IDs: this text, and no other', () => {
  // Checked with: printf 'tributary network v1\n%s\n%s' FROM TO | openssl dgst -sha256 -mac HMAC -macopt hexkey:07…07 -binary | base64
  expect(networkProof(KEY, FROM, TO)).toBe('Q2nSFQatsA+LGHs3ra++aJI1qXP+lhw5hruHntDKwHs=');
});

test('it holds for this key, this sender and this receiver only', () => {
  const proof = networkProof(KEY, FROM, TO);
  expect(provesNetworkKey(proof, KEY, { from: FROM, to: TO })).toBe(true);
  expect(provesNetworkKey(proof, KEY, { from: TO, to: FROM })).toBe(false);
  expect(provesNetworkKey(proof, KEY, { from: FROM, to: 'c'.repeat(26) })).toBe(false);
  expect(provesNetworkKey(proof, Buffer.alloc(16, 8), { from: FROM, to: TO })).toBe(false);
  for (const forged of ['', 'x', proof.slice(1), `${proof}=`, `A${proof.slice(1)}`]) {
    expect(provesNetworkKey(forged, KEY, { from: FROM, to: TO })).toBe(false);
  }
});

test.each([0, 1, 15, 4097])('a key of %d bytes is refused, and not shown', (bytes) => {
  expect(() => checkNetworkKey(Buffer.alloc(bytes, 65), 'key of Secret home')).toThrow(
    `key of Secret home has ${bytes} bytes`,
  );
});

test.each([16, 32, 4096])('a key of %d bytes will do', (bytes) => {
  expect(checkNetworkKey(Buffer.alloc(bytes))).toHaveLength(bytes);
});
