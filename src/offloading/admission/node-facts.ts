/** What is to be known of virtual nodes before a pod may be sent to one. Pure. */
import { NAMESPACE_OFFLOADING_REASONS, type NamespaceOffloading } from '../../api/namespace-offloading.ts';
import { nodeLabelsOf } from '../../api/node-labels.ts';
import { isTainted, VIRTUAL_NODE_CONDITIONS, type VirtualNode } from '../../api/virtual-node.ts';
import { present } from '../../lib/fields.ts';
import type { AvoidFacts, SelectedNode } from './avoid.ts';

/** @param selected virtual nodes that the offloading selects */
export function nodeFacts(
  offloading: NamespaceOffloading | undefined,
  selected: readonly VirtualNode[],
  nowMs: number,
): Pick<Required<AvoidFacts>, 'failedNodes' | 'selected' | 'nowMs'> {
  const failedNodes = failedNodesOf(offloading, selected, nowMs);
  return { failedNodes, selected: selected.map(placeOf), nowMs };
}

const placeOf = (virtualNode: VirtualNode): SelectedNode => ({
  name: virtualNode.metadata.name,
  labels: nodeLabelsOf(virtualNode),
  isTainted: isTainted(virtualNode),
  resources: virtualNode.spec.resources,
  ...present({
    nodeSizes: virtualNode.spec.nodeSizes,
    prices: virtualNode.spec.prices,
    taints: virtualNode.spec.taints,
  }),
});

/**
 * A virtual node that is not Ready for less than this has not failed. Its taints keep pods away meanwhile; what is written into a pod
 * would keep it away for good.
 */
const GLITCH_MS = 20_000;

/** Pure: virtual nodes that have failed to take the namespace, or are about to lose it. */
export function failedNodesOf(
  offloading: NamespaceOffloading | undefined,
  selected: readonly VirtualNode[],
  nowMs: number,
): string[] {
  const byName = new Map(selected.map((one) => [one.metadata.name, one]));
  return (offloading?.status?.clusters ?? []).flatMap(({ phase, reason, virtualNodes }) => {
    if (phase === 'Ending') return virtualNodes;
    if (phase !== 'Failed') return virtualNodes.filter((name) => !byName.has(name));
    return reason === NAMESPACE_OFFLOADING_REASONS.notReady
      ? virtualNodes.filter((name) => !isGlitch(byName.get(name), nowMs))
      : virtualNodes;
  });
}

function isGlitch(virtualNode: VirtualNode | undefined, nowMs: number): boolean {
  if (virtualNode === undefined) return false;
  const ready = virtualNode.status?.conditions?.find(({ type }) => type === VIRTUAL_NODE_CONDITIONS.ready);
  // Status True: the entry of the status is older than it.
  return ready?.status === 'True' || nowMs - Date.parse(ready?.lastTransitionTime ?? '') < GLITCH_MS;
}
