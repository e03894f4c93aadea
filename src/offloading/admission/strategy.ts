import type { LabelSelector } from '../../api/label-selector.ts';
import { LABEL_NODE_TYPE, NODE_TYPE_VIRTUAL, TAINT_VIRTUAL_NODE } from '../../api/names.ts';
import type { PodStrategy } from '../../api/namespace-offloading.ts';
import type { Toleration } from '../../api/wire.ts';
import { avoiding } from './avoid.ts';
import type { NodeExpression } from './node-terms.ts';

export const REAL: NodeExpression = { key: LABEL_NODE_TYPE, operator: 'NotIn', values: [NODE_TYPE_VIRTUAL] };
export const VIRTUAL: NodeExpression = { key: LABEL_NODE_TYPE, operator: 'In', values: [NODE_TYPE_VIRTUAL] };

/** Pure: the nodes that a strategy permits, as alternatives; an empty list permits all. The first is sufficient by itself. */
export function termsOf(
  strategy: PodStrategy,
  selector: LabelSelector,
  away: readonly string[],
): NodeExpression[][] {
  const notThere: NodeExpression[] = away.length === 0 ? [] : [avoiding(away)];
  const selected = expressionsOf(selector);
  switch (strategy) {
    case 'Local':
      return [[REAL]];
    case 'Remote':
      return [[VIRTUAL, ...selected, ...notThere]];
    case 'LocalAndRemote':
      // NotIn holds where the label is absent, and so for all real nodes.
      if (selected.length === 0) return notThere.length === 0 ? [] : [notThere];
      return [[REAL], [VIRTUAL, ...selected, ...notThere]];
    default:
      return strategy satisfies never;
  }
}

/** Selects the same nodes: in both languages an absent label is NotIn any value. */
export function expressionsOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): NodeExpression[] {
  return [
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: 'In', values: [value] })),
    ...matchExpressions.map(({ key, operator, values }) => ({
      key,
      operator,
      ...(values !== undefined && values.length > 0 && { values: [...values] }),
    })),
  ];
}

/** Tolerates the taint that every virtual node has, and nothing else: other taints act on pods there as on real nodes. */
export const TOLERATION: Toleration = { key: TAINT_VIRTUAL_NODE, operator: 'Exists', effect: 'NoSchedule' };

const concernsTaint = ({ key, effect }: Toleration): boolean =>
  (key ?? '') === '' || key === TAINT_VIRTUAL_NODE
    ? effect === undefined || effect === '' || effect === 'NoSchedule'
    : false;

/** Whether every virtual node is tolerated, whatever its name: the value of the taint is the name of the VirtualNode. */
export const toleratesAll = (tolerations: readonly Toleration[]): boolean =>
  tolerations.some((one) => concernsTaint(one) && one.operator === 'Exists');

/** Whether some virtual node is tolerated. */
export const toleratesAny = (tolerations: readonly Toleration[]): boolean =>
  tolerations.some((one) => concernsTaint(one) && (one.operator === 'Exists' || (one.key ?? '') !== ''));
