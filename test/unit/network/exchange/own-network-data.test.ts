import { expect, test } from '@jest/globals';

import { composeOwn, shortcomings } from '../../../../src/network/exchange/own-network-data.ts';

const options = {
  externalCidr: '10.70.0.0/20',
  viewPools: ['100.64.0.0/10'],
  reservedCidrs: [],
};

// One interval within another is refused by the kernel, and the second one by every peer.
test('CIDRs of pods that overlap, as people name them, are told once', () => {
  const podCidrs = ['10.2.0.0/16', '10.1.4.0/24', '10.1.0.0/16', '10.1.5.0/24', '10.2.0.0/16', '10.3.0.0/16'];
  expect(composeOwn({ nodes: [], apiServers: [] }, { ...options, podCidrs }, undefined).pods).toEqual([
    '10.2.0.0/16',
    '10.1.0.0/16',
    '10.3.0.0/16',
  ]);
});

test('what no peer will reach is said', () => {
  const nodes = Array.from({ length: 300 }, (_, n) => ({
    name: `n${n}`,
    address: '172.30.0.1',
    pods: [`10.${n >> 8}.${n & 255}.0/25`],
  }));
  const said = (externalCidr: string, count: number): string[] => {
    const real = nodes.slice(0, count);
    return shortcomings(
      composeOwn({ nodes: real, apiServers: [] }, { ...options, externalCidr, podCidrs: [] }, undefined),
      real,
    );
  };
  expect(said('10.70.0.0/20', 256)).toEqual([]);
  expect(said('10.70.0.0/20', 300)).toEqual([
    'of 300 CIDRs of pods peers are told 256: name fewer and wider ones by --pod-cidr',
  ]);
  expect(said('10.70.0.0/29', 7)).toEqual([
    'the external range 10.70.0.0/29 has no address left for 2 nodes (n5, ...): their pods reach no peer; name a wider one by --external-cidr',
  ]);
});
