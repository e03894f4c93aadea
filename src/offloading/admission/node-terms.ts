/**
 * Required node affinity as the scheduler reads it: terms are alternatives (OR), the expressions and fields of one term
 * must all hold (AND), and a term without any matches no node
 * (https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/).
 */
import { deepEqual } from '../../lib/equality.ts';

export interface NodeExpression {
  key: string;
  /** Also Gt and Lt, which are not evaluated here. */
  operator: string;
  values?: string[];
}

export interface NodeTerm {
  matchExpressions?: NodeExpression[];
  matchFields?: NodeExpression[];
}

/** At most so many for one pod. Only programs write pods with so many terms; the scheduler tries each. */
const MAX_TERMS = 64;

interface NarrowedTerms {
  /** Undefined: the pod's own terms match no node at all, and stay as they are. */
  terms: NodeTerm[] | undefined;
  /** Alternatives of ours that were left out, since there would have been too many terms. */
  isSimplified: boolean;
  /** No node can match. */
  isContradiction: boolean;
}

/**
 * `own` AND `ours`: each own term combined with each of ours. Terms that cannot match and duplicates are left out, so the
 * result stays the same when it is narrowed again. Above MAX_TERMS only the first of ours is kept, so it must be sufficient
 * by itself. `own` undefined: the pod has no terms.
 */
export function narrowed(
  own: readonly NodeTerm[] | undefined,
  ours: readonly (readonly NodeExpression[])[],
): NarrowedTerms {
  const wishes = own === undefined ? [{}] : own.filter((term) => !isEmpty(term));
  if (wishes.length === 0) return { terms: undefined, isSimplified: false, isContradiction: true };
  const product = (alternatives: typeof ours): NodeTerm[] =>
    distinct(
      wishes.flatMap((wish) => alternatives.map((alternative) => both(wish, alternative))).filter(isPossible),
    );
  const terms = product(ours);
  const isSimplified = terms.length > Math.max(MAX_TERMS, wishes.length);
  const kept = isSimplified ? product(ours.slice(0, 1)) : terms;
  if (kept.length > 0) return { terms: kept, isSimplified, isContradiction: false };
  // Nothing matches these terms, but they tell a person why.
  const impossible = wishes.map((wish) => both(wish, ours[0] ?? []));
  return { terms: distinct(impossible), isSimplified, isContradiction: true };
}

const isEmpty = ({ matchExpressions = [], matchFields = [] }: NodeTerm): boolean =>
  matchExpressions.length === 0 && matchFields.length === 0;

function both(term: NodeTerm, expressions: readonly NodeExpression[]): NodeTerm {
  const own = term.matchExpressions ?? [];
  const more = expressions.filter((expression) => !own.some((one) => isSame(one, expression)));
  return more.length === 0 ? term : { ...term, matchExpressions: [...own, ...more] };
}

const isSame = (a: NodeExpression, b: NodeExpression): boolean =>
  a.key === b.key &&
  a.operator === b.operator &&
  deepEqual((a.values ?? []).toSorted(), (b.values ?? []).toSorted());

const distinct = (terms: readonly NodeTerm[]): NodeTerm[] => {
  const seen = new Map(terms.map((term) => [JSON.stringify(term), term]));
  return [...seen.values()];
};

/** Whether some node could match, as far as sets of values tell. */
function isPossible({ matchExpressions = [] }: NodeTerm): boolean {
  const byKey = Map.groupBy(matchExpressions, ({ key }) => key);
  return [...byKey.values()].every(isPossibleTogether);
}

/** Expressions on one label. */
function isPossibleTogether(expressions: readonly NodeExpression[]): boolean {
  const has = (operator: string): boolean => expressions.some((one) => one.operator === operator);
  const needsLabel = ['In', 'Exists', 'Gt', 'Lt'].some(has);
  if (has('DoesNotExist')) return !needsLabel;
  const sets = expressions.filter(({ operator }) => operator === 'In').map(({ values }) => new Set(values));
  const [first, ...others] = sets;
  if (first === undefined) return true;
  const refused = new Set(
    expressions.flatMap(({ operator, values = [] }) => (operator === 'NotIn' ? values : [])),
  );
  return [...first].some((value) => !refused.has(value) && others.every((set) => set.has(value)));
}
