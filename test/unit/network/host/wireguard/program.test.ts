import { expect, test } from '@jest/globals';

import type { WireGuardConfig } from '../../../../../src/network/host/host-config.ts';
import { changesTo } from '../../../../../src/network/host/wireguard/changes.ts';
import { linesOf, readState } from '../../../../../src/network/host/wireguard/program.ts';
import { generateKey } from '../../../../../src/network/host/wireguard/wireguard.ts';

const hex = (key: string): string => Buffer.from(key, 'base64').toString('hex');
const [own, one, two] = [generateKey(), generateKey(), generateKey()];
const shared = generateKey().privateKey;

const config: WireGuardConfig = {
  link: 'wg',
  port: 51_820,
  privateKey: own.privateKey,
  peers: [
    {
      publicKey: one.publicKey,
      presharedKey: shared,
      endpoint: '192.0.2.1:51820',
      allowedIPs: ['10.1.0.0/16', 'fd00:1::/64'],
      keepalive: 25,
    },
  ],
};

test('changes become lines: keys in hexadecimal, prefixes one by one, in place of those before', () => {
  const state = readState([['public_key', hex(two.publicKey)]]);
  expect(changesTo(config, state, new Map(), 0).map(linesOf)).toEqual([
    `private_key=${hex(own.privateKey)}\nlisten_port=51820\n`,
    `public_key=${hex(two.publicKey)}\nremove=true\n`,
    [
      `public_key=${hex(one.publicKey)}`,
      `preshared_key=${hex(shared)}`,
      'endpoint=192.0.2.1:51820',
      'persistent_keepalive_interval=25',
      'replace_allowed_ips=true',
      'allowed_ip=10.1.0.0/16',
      'allowed_ip=fd00:1::/64',
      '',
    ].join('\n'),
  ]);
});

test('a preshared key is taken away by a key of zeros, the last prefix by none', () => {
  const change = {
    args: ['peer', one.publicKey, 'preshared-key', 0, 'allowed-ips', ''],
    secrets: [''],
    count: 2,
  };
  expect(linesOf(change)).toBe(
    `public_key=${hex(one.publicKey)}\npreshared_key=${'0'.repeat(64)}\nreplace_allowed_ips=true\n`,
  );
});

test('what the program tells is the state that was set: nothing is left to change', () => {
  const state = readState([
    ['private_key', hex(own.privateKey)],
    ['listen_port', '51820'],
    ['fwmark', '0'],
    ['public_key', hex(one.publicKey)],
    ['preshared_key', hex(shared)],
    ['protocol_version', '1'],
    ['endpoint', '192.0.2.1:51820'],
    ['last_handshake_time_sec', '1700000000'],
    ['last_handshake_time_nsec', '7'],
    ['tx_bytes', '11'],
    ['rx_bytes', '13'],
    ['persistent_keepalive_interval', '25'],
    ['allowed_ip', '10.1.0.0/16'],
    ['allowed_ip', 'fd00:1::/64'],
    ['public_key', hex(two.publicKey)],
    ['preshared_key', '0'.repeat(64)],
  ]);
  expect(state.peers.get(one.publicKey)).toMatchObject({
    handshake: 1_700_000_000,
    sentBytes: 11,
    receivedBytes: 13,
  });
  expect(state.peers.get(two.publicKey)).not.toHaveProperty('presharedKey');
  const peers = [...config.peers, { publicKey: two.publicKey, allowedIPs: [], keepalive: 0 }];
  expect(changesTo({ ...config, peers }, state, new Map(), 1_700_000_000)).toEqual([]);
});

test('a key that is none is not taken for one', () => {
  expect(() => readState([['public_key', 'abc']])).toThrow('a key that cannot be understood');
});
