import {
  NAMESPACE_OFFLOADING_REASONS,
  type NamespaceOffloading,
  type PodStrategy,
} from '../../api/namespace-offloading.ts';
import { claimVolumes } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { ownerKey } from '../release/owner.ts';
import { virtualOnly, type VirtualPlace } from './own-nodes.ts';

export interface AvoidFacts {
  offloading: NamespaceOffloading;
  failedNodes: readonly string[];
  /** Virtual nodes that the offloading selects. */
  selected?: readonly VirtualPlace[];
  nowMs: number;
}

/**
 * Pure: virtual nodes to which this pod must not go now, each once. A pod's affinity cannot be changed later, so one
 * that may run on virtual nodes only, by the strategy or by its own words, keeps those that are left when all are to be
 * avoided: it would never run, not even when all is well again.
 */
export function nodesToAvoid(
  pod: Pod,
  { offloading, failedNodes, selected = [], nowMs }: AvoidFacts,
  strategy: PodStrategy,
): { nodes: string[]; warnings: string[] } {
  const owner = ownerKey(pod);
  const heldOff = (offloading.status?.heldOff ?? [])
    .filter((entry) => entry.owner === owner && Date.parse(entry.until) > nowMs)
    .map(({ virtualNode }) => virtualNode);
  const nodes = [...new Set([...failedFor(pod, failedNodes, offloading), ...heldOff])];
  if (nodes.length === 0) return { nodes, warnings: [] };
  const known = (offloading.status?.clusters ?? []).flatMap(({ virtualNodes }) => virtualNodes);
  if (strategy === 'Remote' && known.every((node) => nodes.includes(node)))
    return keepAll('its strategy Remote permits no other');
  const own = virtualOnly(pod, selected, strategy);
  return own.length > 0 && own.every((node) => nodes.includes(node))
    ? keepAll('its own nodeSelector or node affinity permits no other')
    : { nodes, warnings: [] };
}

/**
 * Without those that are merely not ready, where the pod's data may be there: the scheduler keeps off them by their taints
 * for as long as that lasts, an affinity would keep the pod from its data for good.
 */
function failedFor(
  pod: Pod,
  failedNodes: readonly string[],
  { status }: NamespaceOffloading,
): readonly string[] {
  if (claimVolumes(pod).length === 0) return failedNodes;
  const away = new Set(
    (status?.clusters ?? [])
      .filter(({ reason }) => reason === NAMESPACE_OFFLOADING_REASONS.notReady)
      .flatMap(({ virtualNodes }) => virtualNodes),
  );
  return failedNodes.filter((name) => !away.has(name));
}

const keepAll = (why: string): { nodes: string[]; warnings: string[] } => ({
  nodes: [],
  warnings: [
    `tributary: no virtual node of this namespace can take the pod now, and ${why}; ` +
      'see kubectl get namespaceoffloading',
  ],
});
