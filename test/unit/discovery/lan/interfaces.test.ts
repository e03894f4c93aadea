import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, test } from '@jest/globals';

import { interfaceKey, lanInterfaces, onLinkTest } from '../../../../src/discovery/lan/interfaces.ts';

const info = (cidr: string, internal = false): NetworkInterfaceInfo => {
  const family = cidr.includes(':') ? { family: 'IPv6' as const, scopeid: 0 } : { family: 'IPv4' as const };
  return { ...family, address: cidr.split('/')[0] ?? '', netmask: '', mac: '', internal, cidr };
};
const HOST = {
  lo: [info('127.0.0.1/8', true)],
  eth0: [info('10.0.0.1/24'), info('fe80::1/64')],
  wlan0: [info('192.168.1.5/24')],
  cni0: [info('10.244.0.1/24')],
  veth12: [info('fe80::2/64')],
  wg0: [info('10.9.0.1/24')],
  docker0: [info('172.17.0.1/16')],
  'br-lan': [info('192.168.2.1/24')],
};

describe('interfaces', () => {
  test('those of a LAN, by default', () => {
    expect(lanInterfaces(undefined, HOST).map(({ name }) => name)).toEqual(['eth0', 'wlan0']);
  });

  test('the named ones, whatever they are', () => {
    expect(lanInterfaces(['wg0', 'lo', 'none'], HOST).map(({ name }) => name)).toEqual(['lo', 'wg0']);
  });

  test('with their addresses and prefixes', () => {
    expect(lanInterfaces(['eth0'], HOST)[0]?.addresses).toEqual([
      { address: '10.0.0.1', family: 4, prefix: 24 },
      { address: 'fe80::1', family: 6, prefix: 64 },
    ]);
  });

  test('are the same as long as their addresses are', () => {
    const [before] = lanInterfaces(['eth0'], HOST);
    const [after] = lanInterfaces(['eth0'], { eth0: HOST.eth0.toReversed() });
    const [other] = lanInterfaces(['eth0'], { eth0: [info('10.0.0.1/25')] });
    if (before === undefined || after === undefined || other === undefined) throw new Error('no interface');
    expect(interfaceKey(after)).toBe(interfaceKey(before));
    expect(interfaceKey(other)).not.toBe(interfaceKey(before));
  });
});

test.each([
  ['10.0.0.77', true],
  ['10.0.1.77', false],
  ['169.254.3.4', true],
  ['8.8.8.8', false],
  ['fe80::77', true],
  ['fe80::77%eth0', true],
  ['fe80::77%eth1', false],
  ['fd00:1::77', true],
  ['fd00:2::77', false],
  ['::ffff:8.8.8.8', false],
  ['', false],
  ['nonsense', false],
])('a packet from %s is of this link: %s', (source, expected) => {
  const onLink = onLinkTest({
    name: 'eth0',
    addresses: [
      { address: '10.0.0.1', family: 4, prefix: 24 },
      { address: 'fd00:1::1', family: 6, prefix: 64 },
    ],
  });
  expect(onLink(source)).toBe(expected);
});
