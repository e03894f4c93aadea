import { expect, test } from '@jest/globals';
import { podAddressFamily } from '../../../src/provider/pod-address.ts';

test.each([
  ['10.0.0.1', 4],
  ['fd00::1', 6],
  ['2001:db8::1', 6],
  ['0.0.0.0', 0],
  ['127.9.9.9', 0],
  ['169.254.0.1', 0],
  ['224.0.0.1', 0],
  ['255.255.255.255', 0],
  ['::', 0],
  ['::1', 0],
  ['fe80::1', 0],
  ['ff02::1', 0],
  ['::ffff:127.0.0.1', 0],
  ['010.0.0.1', 0],
  ['1.2.3', 0],
  ['', 0],
])('the family of %s is %i', (text, family) => {
  expect(podAddressFamily(text)).toBe(family);
});

test('an address of IPv4 is judged alike by itself and within IPv6', () => {
  for (let first = 0; first < 256; first++) {
    for (const second of [0, 168, 253, 254, 255]) {
      const address = `${first}.${second}.1.1`;
      expect([address, podAddressFamily(address) > 0]).toEqual([
        address,
        podAddressFamily(`::ffff:${address}`) > 0,
      ]);
    }
  }
});
