/** Tunnels as the exchange leaves them, for tests of what reads them. */
import { generateKey } from '../../../src/network/host/wireguard/wireguard.ts';
import type { OwnNetwork } from '../../../src/api/own-network.ts';
import type { Tunnel, TunnelSpec, TunnelStatus } from '../../../src/api/tunnel.ts';

export const NETWORK: OwnNetwork = {
  pods: ['10.1.0.0/16'],
  external: '10.70.0.0/20',
  gatewayAddress: '10.70.0.1',
  pools: ['100.64.0.0/10'],
  nodes: [
    { name: 'n1', address: '172.30.0.11', external: '10.70.0.2', pods: ['10.1.0.0/24'] },
    { name: 'n2', address: '172.30.0.12', external: '10.70.0.3', pods: ['10.1.1.0/24'] },
  ],
  vxlan: { vni: 7480, port: 7482 },
};

/** A tunnel without any fault; change the field that the test is about. */
export function tunnelOf(
  name: string,
  {
    spec,
    status,
    createdAt = 1,
  }: { spec?: Partial<TunnelSpec>; status?: TunnelStatus; createdAt?: number } = {},
): Tunnel {
  return {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'Tunnel',
    metadata: {
      name,
      uid: `uid-${name}`,
      resourceVersion: '1',
      generation: 3,
      creationTimestamp: new Date(createdAt * 1000).toISOString(),
    },
    spec: {
      clusterID: name,
      peer: {
        publicKey: generateKey().publicKey,
        endpoints: ['192.0.2.1:51820'],
        pods: ['10.1.0.0/16'],
        external: ['10.70.0.0/20'],
      },
      seenAs: [
        { prefix: '10.1.0.0/16', as: '10.65.0.0/16' },
        { prefix: '10.70.0.0/20', as: '10.66.0.0/20' },
      ],
      access: 'OffloadedPods',
      transit: 'OffloadedPods',
      ...spec,
    },
    status: {
      views: [
        { prefix: '10.1.0.0/16', as: '100.64.0.0/16', use: 'Pods' },
        { prefix: '10.70.0.0/20', as: '100.65.0.0/20', use: 'External' },
      ],
      ...status,
    },
  };
}
