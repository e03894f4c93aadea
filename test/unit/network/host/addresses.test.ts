import { describe, expect, test } from '@jest/globals';

import {
  addressBytes,
  addressText,
  canonicalAddress,
  canonicalPrefix,
  parsePrefix,
} from '../../../../src/network/host/addresses.ts';

describe('addresses of the kernel', () => {
  test.each([
    ['10.1.2.3', '0a010203'],
    ['::', '0'.repeat(32)],
    ['::1', `${'0'.repeat(31)}1`],
    ['fd00:1::2', 'fd000001000000000000000000000002'],
    ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
    ['fd00::', `fd${'0'.repeat(30)}`],
    ['::ffff:1.2.3.4', `${'0'.repeat(20)}ffff01020304`],
  ])('%s', (text, hex) => {
    expect(addressBytes(text).toString('hex')).toBe(hex);
    expect(canonicalAddress(addressText(Buffer.from(hex, 'hex')))).toBe(canonicalAddress(text));
  });

  test('have one text each', () => {
    expect(canonicalAddress('FD00:0:0:1:0:0:0:02')).toBe('fd00:0:0:1::2');
    expect(canonicalPrefix('fd00:0::/64')).toBe('fd00::/64');
    expect(canonicalPrefix('10.1.2.3/16')).toBe('10.1.2.3/16');
  });

  test.each(['', '10.1.2', '10.1.2.256', 'fe80::1%eth0', 'host', '10.1.2.3/8'])('%j is none', (text) => {
    expect(() => addressBytes(text)).toThrow('is no IP address');
  });

  test.each(['10.0.0.0', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/-1', 'fd00::/129', '/8'])(
    '%j is no prefix',
    (text) => {
      expect(() => parsePrefix(text)).toThrow(/is no (prefix|IP address)/);
    },
  );
});
