import { describe, expect, test } from '@jest/globals';

import { diffNeighbours } from '../../../../src/network/host/neighbours.ts';

describe('neighbours: what is wanted against what there is', () => {
  const mac = '02:00:00:00:00:0a';
  const address = { table: 'address', address: '10.70.0.3', macAddress: mac } as const;
  const forwarding = { table: 'forwarding', address: '10.9.0.3', macAddress: mac } as const;
  const wanted = [
    { address: '10.70.0.3', macAddress: mac.toUpperCase(), via: '10.9.0.3' },
    { address: 'fd70:0::3', macAddress: mac, via: '10.9.0.3' },
  ];
  const sixth = { ...address, address: 'fd70::3' };

  test('nothing to do; both addresses of a node share one forwarding entry', () => {
    expect(diffNeighbours(wanted, [address, forwarding, sixth])).toEqual({ add: [], remove: [] });
    expect(diffNeighbours(wanted, []).add).toEqual([address, forwarding, sixth]);
  });

  test('another MAC address of an address is replaced, since removing it would remove both', () => {
    const other = { ...address, macAddress: '02:00:00:00:00:0b' };
    expect(diffNeighbours(wanted, [other, forwarding, sixth])).toEqual({ add: [address], remove: [] });
  });

  test('another node of a MAC address is added, and the old one removed', () => {
    const other = { ...forwarding, address: '10.9.0.4' };
    expect(diffNeighbours(wanted, [address, other, sixth])).toEqual({ add: [forwarding], remove: [other] });
  });
});
