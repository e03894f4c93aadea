import { describe, expect, test } from '@jest/globals';
import type { OwnNetwork } from '../../../../src/api/own-network.ts';
import type { HomeApiAddress } from '../../../../src/api/tunnel.ts';
import type { EndpointSlice } from '../../../../src/api/wire.ts';

import { apiServersOf } from '../../../../src/api/api-servers.ts';
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

describe('the API servers', () => {
  const slice = (...addresses: string[]): EndpointSlice =>
    ({
      metadata: { name: 'kubernetes' },
      ports: [{ name: 'https', port: 6443 }],
      endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    }) as unknown as EndpointSlice;
  const own = (
    apiServers: HomeApiAddress[],
    before?: OwnNetwork,
    external = '10.70.0.0/20',
  ): OwnNetwork['apiServer'] =>
    composeOwn({ nodes: [], apiServers }, { ...options, externalCidr: external, podCidrs: [] }, before)
      .apiServer;
  const server = (address: string): HomeApiAddress => ({ address, port: 6443 });

  test('are those of the slice of the Service, in order', () => {
    expect(apiServersOf(slice('172.30.0.2', '172.30.0.1'))).toEqual([
      server('172.30.0.1'),
      server('172.30.0.2'),
    ]);
    expect(apiServersOf(undefined)).toEqual([]);
  });

  test('have one address, far from those of the nodes', () => {
    expect(own([server('172.30.0.1')])).toEqual({
      address: '10.70.15.254',
      port: 443,
      endpoints: [server('172.30.0.1')],
    });
    expect(own([server('172.30.0.1')], undefined, '10.70.0.0/29')).toBeUndefined();
  });

  test('of another family than the external range cannot be reached', () => {
    expect(own([server('fd00::1')])).toBeUndefined();
    expect(own([server('fd00::1'), server('172.30.0.1')])?.endpoints).toEqual([server('172.30.0.1')]);
  });

  test('that restart all at once are still known', () => {
    const before = composeOwn(
      { nodes: [], apiServers: [server('172.30.0.1')] },
      { ...options, podCidrs: [] },
      undefined,
    );
    expect(own([], before)).toEqual(before.apiServer);
    expect(own([])).toBeUndefined();
  });

  test('a new node does not get their address; one that has it keeps it', () => {
    const nodes = Array.from({ length: 13 }, (_, n) => ({ name: `n${n}`, address: '172.30.0.1', pods: [] }));
    const small = { ...options, externalCidr: '10.70.0.0/28', podCidrs: [] };
    const full = composeOwn({ nodes, apiServers: [server('172.30.0.1')] }, small, undefined);
    expect(full.nodes).toHaveLength(12);
    expect(full.apiServer?.address).toBe('10.70.0.14');
    const [first] = full.nodes;
    const earlier = { ...full, nodes: [{ ...first, external: '10.70.0.14' }] } as OwnNetwork;
    const kept = composeOwn({ nodes: nodes.slice(0, 1), apiServers: [server('172.30.0.1')] }, small, earlier);
    expect(kept.nodes[0]?.external).toBe('10.70.0.14');
    expect(kept.apiServer).toBeUndefined();
  });
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
