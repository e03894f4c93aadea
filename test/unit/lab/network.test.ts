import { describe, expect, test } from '@jest/globals';

import {
  checkClusterNames,
  checkLabName,
  chooseSubnet,
  dnsAddress,
  firstAddress,
  nodeAddress,
  nodePodCidr,
  parseCidr,
  rootAddress,
  rootLink,
  subnetsInRoutes,
} from '../../../lab/network.ts';

test('the longest lab name still makes an interface name of 15 bytes', () => {
  const name = 'abcdefghijkl';
  expect(() => checkLabName(name)).not.toThrow();
  expect(rootLink(name)).toHaveLength(15);
});

test.each(['', 'abcdefghijklm', 'A', '1a', 'a-', 'a_b', 'a/b', '..'])('%j is no lab name', (name) => {
  expect(() => checkLabName(name)).toThrow('lab name');
});

test.each([
  [['home', 'home'], 'must differ'],
  [[], '1 to 8 clusters'],
  [['home-1', 'home'], 'name of a node'],
  [['Home'], 'cluster name "Home"'],
])('clusters %j are refused', (names, message) => {
  expect(() => checkClusterNames(names)).toThrow(message);
});

describe('subnets', () => {
  test('are the first that neither a lab nor a route has', () => {
    const routes = `default via 10.0.0.1 dev eth0
172.30.0.0/24 dev tl-a proto kernel scope link src 172.30.0.254
broadcast 172.30.2.255 dev other table local
172.31.1.0/24 dev x`;
    expect([...subnetsInRoutes(routes)]).toEqual([0, 2]);
    expect(chooseSubnet(new Set([...subnetsInRoutes(routes), 1]))).toBe(3);
  });

  test('run out', () => {
    const all = new Set(Array.from({ length: 256 }, (_, subnet) => subnet));
    expect(() => chooseSubnet(all)).toThrow('no free 172.30.x.0/24');
  });

  test('hold every node of the largest lab at an address of its own', () => {
    const underlay = { subnet: 7 };
    const addresses = new Set([rootAddress(underlay), '172.30.7.1']);
    for (let cluster = 0; cluster < 8; cluster++) {
      for (let node = 0; node < 30; node++) addresses.add(nodeAddress(underlay, cluster, node));
    }
    expect(addresses.size).toBe(2 + 8 * 30);
    expect(addresses).toContain('172.30.7.11');
    expect(() => nodeAddress(underlay, 0, 30)).toThrow('at most');
  });
});

test.each([
  ['10.244.0.0/16', 0, '10.244.0.0/24'],
  ['10.244.0.0/16', 255, '10.244.255.0/24'],
  ['10.0.0.0/8', 256, '10.1.0.0/24'],
  ['192.168.8.0/22', 3, '192.168.11.0/24'],
])('%s gives node %d %s', (cidr, node, expected) => {
  expect(nodePodCidr(cidr, node)).toBe(expected);
});

test.each([
  ['10.244.0.0/16', 256],
  ['192.168.8.0/22', 4],
  ['10.0.0.0/25', 0],
])('%s has no room for node %d', (cidr, node) => {
  expect(() => nodePodCidr(cidr, node)).toThrow('has no /24');
});

test('services and DNS sit where every cluster has them', () => {
  expect(firstAddress('10.97.0.0/16')).toBe('10.97.0.1');
  expect(dnsAddress('10.97.0.0/16')).toBe('10.97.0.10');
});

test.each(['10.0.0.0', '10.0.0/8', '10.0.0.1/8', '300.0.0.0/8', '10.0.0.0/33', 'fd00::/8'])(
  '%s is no range',
  (cidr) => {
    expect(() => parseCidr(cidr)).toThrow(cidr);
  },
);
