import type { WantedAgent } from '../../../../src/peering/ports.ts';

/** The agent of one virtual node of that provider, for the namespace `shop`. */
export const wantedAgent = (clusterID: string, virtualNode: string): WantedAgent => ({
  clusterID,
  virtualNodes: [{ name: virtualNode, nodeName: virtualNode }],
  namespaces: ['shop'],
  kubeconfigSecret: { namespace: 'tributary-system', name: `tributary-kubeconfig-${clusterID}` },
});
