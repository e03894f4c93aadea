import { type LabelRequirement, matchesSelector } from '../../api/label-selector.ts';
import { ANNOTATION_AVOIDS, LABEL_CLUSTER, LABEL_VIRTUAL_NODE, NAME_PREFIX } from '../../api/names.ts';
import {
  NAMESPACE_OFFLOADING_REASONS,
  type NamespaceOffloading,
  type PodStrategy,
} from '../../api/namespace-offloading.ts';
import { HOSTNAME } from '../../api/placement.ts';
import { claimVolumes } from '../../api/pod.ts';
import type { VirtualNodeSpec } from '../../api/virtual-node.ts';
import type { Pod, ResourceList, Taint } from '../../api/wire.ts';
import { inForce, ownerKey } from '../held-off.ts';
import { whyTooLarge } from './node-sizes.ts';
import type { NodeExpression, NodeTerm } from './node-terms.ts';

/** A virtual node that the offloading selects. */
export interface SelectedNode extends Pick<VirtualNodeSpec, 'nodeSizes' | 'prices'> {
  /** Of the VirtualNode. */
  name: string;
  /** Of its Node. */
  labels: Readonly<Record<string, string>>;
  /** Its taint keeps pods away that do not tolerate it. */
  isTainted: boolean;
  /** What the whole of it lends; undefined: not known. */
  resources?: ResourceList;
  /** Taints besides that one. */
  taints?: readonly Taint[];
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

interface Avoided {
  nodes: string[];
  /** By virtual node, in words: why it is too large for it. */
  tooLarge: Readonly<Record<string, string>>;
  warnings: string[];
}

/**
 * Pure: virtual nodes to which this pod must not go now, each once. A pod's affinity cannot be changed later. So where a pod
 * may run on virtual nodes only, by the strategy or by its own affinity, and all of them are to be avoided, none is: else the
 * pod would never run, not even when all is well again. Those for which it is too large are avoided all the same: it would not run
 * there either.
 */
export function nodesToAvoid(pod: Pod, facts: AvoidFacts, strategy: PodStrategy): Avoided {
  const { offloading, selected = [] } = facts;
  const tooLarge = Object.fromEntries(
    selected.flatMap((node) => {
      const why = whyTooLarge(pod, node.nodeSizes);
      return why === undefined ? [] : [[node.name, why]];
    }),
  );
  const isLargeEnough = (name: string): boolean => !Object.hasOwn(tooLarge, name);
  const small = Object.keys(tooLarge);
  const passing = passingFor(pod, facts).filter(isLargeEnough);
  const known = (offloading.status?.clusters ?? []).flatMap(({ virtualNodes }) => virtualNodes);
  const own = virtualOnly(pod, selected, strategy);
  const bounds = [
    ...(strategy === 'Remote' ? [{ only: known, why: 'its strategy Remote permits no other' }] : []),
    ...(own.length > 0 ? [{ only: own, why: 'its own nodeSelector or node affinity permits no other' }] : []),
  ];
  const lost = bounds.find(({ only }) => only.length > 0 && !only.some(isLargeEnough));
  const all = bounds.find(({ only }) => only.filter(isLargeEnough).every((name) => passing.includes(name)));
  if (lost !== undefined) {
    const what = `the pod is too large for each node over there (${tooLargeMark(tooLarge)})`;
    return { nodes: [...small, ...passing], tooLarge, warnings: [warn(what, lost.why)] };
  }
  if (passing.length > 0 && all !== undefined) {
    const what = 'no virtual node of this namespace can take the pod now';
    return { nodes: small, tooLarge, warnings: [warn(what, all.why)] };
  }
  return { nodes: [...small, ...passing], tooLarge, warnings: [] };
}

/** Those to which it may not go for a while. */
function passingFor(pod: Pod, { offloading, failedNodes, nowMs }: AvoidFacts): string[] {
  const owner = ownerKey(pod);
  const heldOff = inForce(offloading.status?.heldOff ?? [], nowMs)
    .filter((entry) => entry.owner === owner)
    .map(({ virtualNode }) => virtualNode);
  return [...new Set([...failedFor(pod, failedNodes, offloading), ...heldOff])];
}

/** As people read it; undefined: it is too large for none. */
export const tooLargeMark = (tooLarge: Avoided['tooLarge']): string | undefined => {
  const entries = Object.entries(tooLarge).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? undefined : entries.map(([name, why]) => `${name}: ${why}`).join('; ');
};

const warn = (what: string, why: string): string =>
  `tributary: ${what}, and ${why}; see kubectl get namespaceoffloading`;

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
