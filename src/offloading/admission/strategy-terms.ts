import type { LabelSelector } from '../../api/label-selector.ts';
import { LABEL_NODE_TYPE, LABEL_VIRTUAL_NODE, NODE_TYPE_VIRTUAL } from '../../api/names.ts';
import type { PodStrategy } from '../../api/namespace-offloading.ts';
import type { NodeExpression } from './node-terms.ts';

const REAL: NodeExpression = { key: LABEL_NODE_TYPE, operator: 'NotIn', values: [NODE_TYPE_VIRTUAL] };
const VIRTUAL: NodeExpression = { key: LABEL_NODE_TYPE, operator: 'In', values: [NODE_TYPE_VIRTUAL] };

/** Pure: the nodes that a strategy permits, as alternatives; none: all. The first one is good by itself. */
export function termsOf(
  strategy: PodStrategy,
  selector: LabelSelector,
  away: readonly string[],
): NodeExpression[][] {
  const notThere: NodeExpression[] =
    away.length === 0 ? [] : [{ key: LABEL_VIRTUAL_NODE, operator: 'NotIn', values: away.toSorted() }];
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

/** The same nodes: both read an absent label as NotIn any value. */
function expressionsOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): NodeExpression[] {
  return [
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: 'In', values: [value] })),
    ...matchExpressions.map(({ key, operator, values }) => ({
      key,
      operator,
      ...(values !== undefined && values.length > 0 && { values: [...values] }),
    })),
  ];
}
