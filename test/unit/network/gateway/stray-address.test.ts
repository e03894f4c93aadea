import { describe, expect, test } from '@jest/globals';

import type { OwnNetwork } from '../../../../src/api/own-network.ts';
import { placesOf, wayOf } from '../../../../src/network/gateway/stray-address.ts';
import { NETWORK } from '../../../support/network/tunnels.ts';

/** n1 has 10.1.0.0/24, n2 10.1.1.0/24, n3 nothing. One node lives among the pods, as in a flat network. */
const network: OwnNetwork = {
  ...NETWORK,
  pods: ['10.1.0.0/16', 'fd01::/48', '10.70.0.0/24'],
  services: ['10.1.96.0/20'],
  apiServers: ['10.1.201.1'],
  nodes: [
    ...NETWORK.nodes,
    { name: 'n3', address: '10.1.200.1', others: ['10.1.200.2'], external: '10.70.0.4', pods: [] },
  ],
};
const way = (address: string, ...claimed: string[]): string | undefined =>
  wayOf(address, claimed, placesOf(network, ['10.1.64.0/24']));

describe('the way to the address of a pod', () => {
  test.each([
    ['in the CIDR of its node', '10.1.1.5', ['n2'], undefined],
    ['in the CIDR of another node', '10.1.0.5', ['n2'], 'n2'],
    ['in the CIDR of no node', '10.1.7.5', ['n1'], 'n1'],
    ['on a node without a CIDR', '10.1.1.5', ['n3'], 'n3'],
    ['of two pods on one node, one of which is about to end', '10.1.7.5', ['n3', 'n3'], 'n3'],
    ['of nobody any more', '10.1.7.5', [], undefined],
  ])('%s', (_which, address, claimed, expected) => {
    expect(way(address, ...claimed)).toBe(expected);
  });

  test.each([
    ['out of what is announced as pods', '10.2.0.5'],
    ['of a node', '10.1.200.1'],
    ['of a node, another one', '10.1.200.2'],
    ['of an API server', '10.1.201.1'],
    ['of the external range', '10.70.0.3'],
    ['of a Service', '10.1.96.1'],
    ['in the view of a peer', '10.1.64.9'],
    ['of the family that VXLAN does not carry', 'fd01::5'],
    ['that is none', '10.1.7.5/16'],
  ])('an address %s has none, whoever claims it', (_which, address) => {
    expect(way(address, 'n2')).toBeUndefined();
  });

  test('of two nodes that claim an address neither gets it; a virtual one, or one that is gone, does not count', () => {
    expect(way('10.1.7.5', 'n2', 'n3')).toBeUndefined();
    expect(way('10.1.7.5', 'n3', 'n2')).toBeUndefined();
    expect(way('10.1.7.5', 'n3', 'virtual')).toBe('n3');
    expect(way('10.1.7.5', 'gone')).toBeUndefined();
  });

  test('what a pod has in the CIDR of its node no other node gets', () => {
    for (const claimed of [
      ['n1', 'n2'],
      ['n2', 'n1'],
      ['n2', 'n3', 'n1'],
    ])
      expect(way('10.1.0.5', ...claimed)).toBeUndefined();
  });
});
