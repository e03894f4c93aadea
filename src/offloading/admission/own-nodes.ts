import { type LabelRequirement, matchesSelector } from '../../api/label-selector.ts';
import { NAME_PREFIX } from '../../api/names.ts';
import type { PodStrategy } from '../../api/namespace-offloading.ts';
import type { Pod } from '../../api/wire.ts';
import type { NodeExpression, NodeTerm } from './node-terms.ts';

/** A virtual node that the offloading selects. */
export interface VirtualPlace {
  /** Of the VirtualNode. */
  name: string;
  /** Of its Node. */
  labels: Readonly<Record<string, string>>;
}

const HOSTNAME = 'kubernetes.io/hostname';

/**
 * Pure: those of the virtual nodes that the pod's own nodeSelector and required node affinity permit. None where it may
 * run on real nodes as well, as far as its words tell: what labels these bear is not known here.
 */
export function virtualOnly(
  { spec }: Pod,
  selected: readonly VirtualPlace[],
  strategy: PodStrategy,
): string[] {
  const wanted = Object.entries(spec?.nodeSelector ?? {}).map(([key, value]): NodeExpression => ({
    key,
    operator: 'In',
    values: [value],
  }));
  const terms =
    spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  // Terms are alternatives; nothing said permits every node.
  const wishes = (terms ?? [{}]).map((term) => [...wanted, ...expressionsOf(term)]);
  const hosts = new Set(selected.map(({ labels }) => labels[HOSTNAME]));
  const isVirtual = ({ key, operator, values = [] }: NodeExpression): boolean =>
    operator === 'In'
      ? key.startsWith(NAME_PREFIX) || (key === HOSTNAME && values.every((host) => hosts.has(host)))
      : operator === 'Exists' && key.startsWith(NAME_PREFIX);
  if (strategy === 'Local') return [];
  if (strategy !== 'Remote' && !wishes.every((wish) => wish.some(isVirtual))) return [];
  return selected
    .filter(({ labels }) => wishes.some((wish) => wish.every((expression) => holds(expression, labels))))
    .map(({ name }) => name);
}

/** The only field that nodes can be chosen by is their name, which is also the host name of a virtual one. */
const expressionsOf = ({ matchExpressions, matchFields }: NodeTerm): NodeExpression[] => [
  ...(matchExpressions ?? []),
  ...(matchFields ?? []).map((field) => ({ ...field, key: HOSTNAME })),
];

/** Numbers are not compared: a place too many is taken to be left. */
const holds = (expression: NodeExpression, labels: VirtualPlace['labels']): boolean =>
  !isRequirement(expression) || matchesSelector({ matchExpressions: [expression] }, labels);

const isRequirement = (expression: NodeExpression): expression is NodeExpression & LabelRequirement =>
  ['In', 'NotIn', 'Exists', 'DoesNotExist'].includes(expression.operator);
