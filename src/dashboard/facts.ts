/** What is known of this cluster at one moment: all of it, whoever asks. `viewOf` leaves out what a person may not see. */
import type { Advertisement } from '../api/advertisement.ts';
import type { ClusterMode } from '../api/cluster-mode.ts';
import type { ForeignCluster } from '../api/foreign-cluster.ts';
import type { NamespaceOffloading } from '../api/namespace-offloading.ts';
import type { PeeringRequest } from '../api/peering-request.ts';
import type { Tunnel } from '../api/tunnel.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import type { KubeEvent } from '../api/wire.ts';
import type { SectionKind } from './model.ts';

/** How many pods are on each node, by namespace. */
export type PodCounts = ReadonlyMap<string, ReadonlyMap<string, number>>;

export interface Facts {
  own: { clusterID: string; clusterName: string };
  clusters: readonly ForeignCluster[];
  requests: readonly PeeringRequest[];
  offers: readonly Advertisement[];
  tunnels: readonly Tunnel[];
  virtualNodes: readonly VirtualNode[];
  offloadings: readonly NamespaceOffloading[];
  modes: readonly ClusterMode[];
  namespaces: readonly string[];
  pods: PodCounts;
}

/** Who looks, what they may list, and the events that they themselves have read. */
export interface Viewer {
  user: string;
  may: ReadonlySet<SectionKind>;
  events: readonly KubeEvent[];
}

interface CountedPod {
  readonly metadata: { readonly namespace?: string };
  readonly node: string;
}

export function countPods(pods: Iterable<CountedPod>): PodCounts {
  const counts = new Map<string, Map<string, number>>();
  for (const { metadata, node } of pods) {
    const namespace = metadata.namespace ?? '';
    const byNode = counts.get(namespace) ?? new Map<string, number>();
    counts.set(namespace, byNode.set(node, (byNode.get(node) ?? 0) + 1));
  }
  return counts;
}
