import { LABEL_PROVIDER } from '../api/names.ts';
import { matchesSelector } from '../api/label-selector.ts';
import type { NamespaceOffloading } from '../api/namespace-offloading.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import { nodeLabelsOf } from '../api/node-labels.ts';

/** ClusterID of the provider that peering made it for; undefined: it was made by hand. */
export const providerOf = ({ metadata }: VirtualNode): string | undefined =>
  metadata.labels?.[LABEL_PROVIDER];

/** By which one entry of status.clusters is known, however many virtual nodes the cluster has. */
export const clusterOf = (virtualNode: VirtualNode): string =>
  providerOf(virtualNode) ?? virtualNode.metadata.name;

/** Whether the namespace is to be there. One that is on its way out is selected no more. */
export const isSelected = ({ spec }: NamespaceOffloading, virtualNode: VirtualNode): boolean =>
  virtualNode.metadata.deletionTimestamp === undefined &&
  matchesSelector(spec.clusterSelector ?? {}, nodeLabelsOf(virtualNode));

/** Whether it has, or still looks after, that home namespace. */
export const names = (
  { spec, status }: Pick<VirtualNode, 'spec' | 'status'>,
  homeNamespace: string,
): boolean =>
  [...(spec.namespaces ?? []), ...(status?.namespaces ?? [])].some(
    (mapping) => mapping.homeNamespace === homeNamespace,
  );
