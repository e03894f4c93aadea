import { type LabelRequirement, matchesSelector } from '../../api/label-selector.ts';
import { ANNOTATION_AVOIDS, LABEL_CLUSTER, LABEL_VIRTUAL_NODE, NAME_PREFIX } from '../../api/names.ts';
import {
  NAMESPACE_OFFLOADING_REASONS,
  type NamespaceOffloading,
  type PodStrategy,
} from '../../api/namespace-offloading.ts';
import { HOSTNAME } from '../../api/placement.ts';
import { claimVolumes } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { inForce, ownerKey } from '../held-off.ts';
import type { NodeExpression, NodeTerm } from './node-terms.ts';

/** A virtual node that the offloading selects. */
export interface SelectedNode {
  /** Of the VirtualNode. */
  name: string;
  /** Of its Node. */
  labels: Readonly<Record<string, string>>;
  /** Its taint keeps pods away that do not tolerate it. */
  isTainted: boolean;
}

/** Pure: what the pod itself asks of its node, as alternatives. */
function wishesOf({ spec }: Pod): NodeExpression[][] {
  const wanted = Object.entries(spec?.nodeSelector ?? {}).map(([key, value]): NodeExpression => ({
    key,
    operator: 'In',
    values: [value],
  }));
  const terms =
    spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  // Terms are alternatives; without any, every node is permitted.
  return (terms ?? [{}]).map((term) => [...wanted, ...expressionsOf(term)]);
}

/**
 * Pure: whether the pod may run on virtual nodes only, as far as its strategy and its own terms tell: the labels of real nodes are
 * not known here.
 */
export function isVirtualOnly(pod: Pod, selected: readonly SelectedNode[], strategy: PodStrategy): boolean {
  if (strategy !== 'LocalAndRemote') return strategy === 'Remote';
  // Real nodes bear these as well: their values tell.
  const shared = new Map(
    [HOSTNAME, LABEL_CLUSTER].map((key) => [key, new Set(selected.map(({ labels }) => labels[key]))]),
  );
  const isVirtual = ({ key, operator, values = [] }: NodeExpression): boolean => {
    const known = shared.get(key);
    if (known !== undefined) return operator === 'In' && values.every((value) => known.has(value));
    return key.startsWith(NAME_PREFIX) && (operator === 'In' || operator === 'Exists');
  };
  return wishesOf(pod).every((wish) => wish.some(isVirtual));
}

/** Pure: of a pod that may run on virtual nodes only, the selected ones that its own terms permit. */
function virtualOnly(pod: Pod, selected: readonly SelectedNode[], strategy: PodStrategy): string[] {
  if (!isVirtualOnly(pod, selected, strategy)) return [];
  const wishes = wishesOf(pod);
  return selected
    .filter(({ labels }) => wishes.some((wish) => wish.every((expression) => holds(expression, labels))))
    .map(({ name }) => name);
}

/** The only field that selects nodes is their name, which is also the host name of a virtual node. */
const expressionsOf = ({ matchExpressions, matchFields }: NodeTerm): NodeExpression[] => [
  ...(matchExpressions ?? []),
  ...(matchFields ?? []).map((field) => ({ ...field, key: HOSTNAME })),
];

/** Gt and Lt are not evaluated: such an expression counts as met. */
const holds = (expression: NodeExpression, labels: SelectedNode['labels']): boolean =>
  !isRequirement(expression) || matchesSelector({ matchExpressions: [expression] }, labels);

const isRequirement = (expression: NodeExpression): expression is NodeExpression & LabelRequirement =>
  ['In', 'NotIn', 'Exists', 'DoesNotExist'].includes(expression.operator);

export interface AvoidFacts {
  offloading: NamespaceOffloading;
  failedNodes: readonly string[];
  /** Virtual nodes that the offloading selects. */
  selected?: readonly SelectedNode[];
  nowMs: number;
}

/**
 * Pure: virtual nodes to which this pod must not go now, each once. A pod's affinity cannot be changed later. So where a pod
 * may run on virtual nodes only, by the strategy or by its own affinity, and all of them are to be avoided, none is: else the
 * pod would never run, not even when all is well again.
 */
export function nodesToAvoid(
  pod: Pod,
  { offloading, failedNodes, selected = [], nowMs }: AvoidFacts,
  strategy: PodStrategy,
): { nodes: string[]; warnings: string[] } {
  const owner = ownerKey(pod);
  const heldOff = inForce(offloading.status?.heldOff ?? [], nowMs)
    .filter((entry) => entry.owner === owner)
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

/** Excludes these virtual nodes, and no others. */
export const avoiding = (nodes: readonly string[]): NodeExpression => ({
  key: LABEL_VIRTUAL_NODE,
  operator: 'NotIn',
  values: nodes.toSorted(),
});

/** How a pod is marked that avoids these; undefined: it avoids none. */
export const avoidsMark = (nodes: readonly string[]): string | undefined =>
  nodes.length === 0 ? undefined : nodes.toSorted().join(',');

/** Virtual nodes that the pod was let in to avoid. */
export const avoidsOf = ({ metadata }: Pick<Pod, 'metadata'>): string[] =>
  (metadata.annotations?.[ANNOTATION_AVOIDS] ?? '').split(',').filter((name) => name !== '');

/**
 * Without nodes that are only not ready, where the pod's data may be there. The scheduler avoids them by their taints for as
 * long as that lasts; an affinity would keep the pod from its data for good.
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
