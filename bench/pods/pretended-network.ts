/** A Tunnel that is up, as the gateway of home would report it: the virtual node then translates addresses. No packet uses it. */
import { tunnels, type TunnelSpec } from '../../src/api/tunnel.ts';
import type { KubeClient } from '../../src/kube/client.ts';

/** ClusterID of the foreign cluster. */
export const PROVIDER_ID: string = 'b'.repeat(26);

/** Home has 10.0.0.0/8, and so has the foreign cluster: each sees the other's as another one. */
export async function joinNetworks(home: KubeClient): Promise<void> {
  const spec: TunnelSpec = {
    clusterID: PROVIDER_ID,
    access: 'OffloadedPods',
    transit: 'OffloadedPods',
    peer: {
      publicKey: `${'A'.repeat(43)}=`,
      endpoints: [],
      pods: ['10.0.0.0/8'],
      external: ['10.70.0.0/20'],
    },
    seenAs: [{ prefix: '10.0.0.0/8', as: '100.0.0.0/8' }],
  };
  const keys = { apiVersion: 'tributary.dev/v1alpha1', kind: 'Tunnel' };
  await home.create(tunnels, { ...keys, metadata: { name: PROVIDER_ID }, spec });
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'AsExpected',
    message: 'as the benchmark says',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const body = {
    status: { conditions: [ready], views: [{ use: 'Pods', prefix: '10.0.0.0/8', as: '101.0.0.0/8' }] },
  };
  await home.patch(tunnels, { name: PROVIDER_ID }, { type: 'merge', body }, { subresource: 'status' });
}
