import { amountOf } from '../../api/amounts.ts';
import { ANNOTATION_PREFERRED, LABEL_VIRTUAL_NODE } from '../../api/names.ts';
import type { PodStrategy } from '../../api/namespace-offloading.ts';
import { podRequests, readableAmounts } from '../../api/pod-requests.ts';
import { hardTaints, tolerates } from '../../api/taints.ts';
import type { Pod } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { SelectedNode } from './avoid.ts';
import type { NodeExpression, NodeTerm } from './node-terms.ts';
import { ranked, rankMark } from './price-ranks.ts';
import { REAL, VIRTUAL } from './strategy.ts';

/**
 * Which of the virtual nodes that can take a pod costs least, as the scheduler is told it: by preferred node affinity. It fills the
 * cheapest first, and looks for room itself; what is full goes by the next price. Pure.
 */

export interface PreferredTerm {
  weight: number;
  preference: NodeTerm;
}

interface Preference {
  /** All that the pod is to have, its own first; undefined: as they are. */
  terms: PreferredTerm[] | undefined;
  /** As people read it: what was compared, or why it could not be; undefined: there was nothing to compare. */
  mark: string | undefined;
}

interface PreferFacts {
  selected: readonly SelectedNode[];
  /** Virtual nodes that the pod is kept off. */
  away: readonly string[];
}

export function preferring(pod: Pod, strategy: PodStrategy, facts: PreferFacts): Preference {
  const now = pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  const own = ownPreferredTerms(pod);
  const { terms, mark } = byPrice(pod, strategy, { ...facts, most: heaviest(own) });
  const all = [...own, ...terms];
  return { terms: deepEqual(all, now) ? undefined : all, mark };
}

function byPrice(
  pod: Pod,
  strategy: PodStrategy,
  { selected, away, most }: PreferFacts & { most: number },
): { terms: PreferredTerm[]; mark: string | undefined } {
  const open = selected.filter((node) => !away.includes(node.name) && canTake(node, pod));
  const comparison = ranked(pod, open);
  const { ranks, others } = comparison;
  // What cannot be compared comes after all that can, and counts as one more.
  const levels = ranks.length + (others.length > 0 ? 1 : 0);
  const nothing = strategy === 'Local' || open.length < 2 || most < 1;
  if (nothing || ranks.length === 0 || levels < 2) {
    // Where all ask the same, there is nothing to say; where they cannot be compared, there is.
    return { terms: [], mark: nothing || ranks.length > 0 ? undefined : rankMark(comparison) };
  }
  const term = (rank: number, matchExpressions: NodeExpression[]): PreferredTerm => ({
    weight: weightOf(rank, levels, most),
    preference: { matchExpressions },
  });
  return {
    terms: [
      // What is at home costs nothing more; it is neither better nor worse than the cheapest.
      ...(strategy === 'LocalAndRemote' ? [term(0, AT_HOME)] : []),
      ...ranks.slice(0, levels - 1).map(({ names }, rank) => term(rank, on(names))),
    ],
    mark: rankMark(comparison),
  };
}

/** Without those that were added here: whoever asks again, or copies a pod, gets what holds today. */
export function ownPreferredTerms({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>): PreferredTerm[] {
  const all = spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  if (metadata.annotations?.[ANNOTATION_PREFERRED] === undefined) return all;
  return all.filter(({ preference }) => !isOurs(preference));
}

const on = (names: readonly string[]): NodeExpression[] => [
  VIRTUAL,
  { key: LABEL_VIRTUAL_NODE, operator: 'In', values: names.toSorted() },
];
/** The second one says nothing more, and tells the term from one of a person. */
const AT_HOME: NodeExpression[] = [REAL, { key: LABEL_VIRTUAL_NODE, operator: 'DoesNotExist' }];

const isOurs = ({ matchExpressions: [first, second, ...more] = [], matchFields = [] }: NodeTerm): boolean =>
  matchFields.length + more.length === 0 &&
  [REAL, VIRTUAL].some((one) => deepEqual(one, first)) &&
  second?.key === LABEL_VIRTUAL_NODE;

/** Whether the node has any room for it, as far as it is known here. A closed one is tainted. */
function canTake({ resources, taints }: SelectedNode, pod: Pod): boolean {
  const tolerations = pod.spec?.tolerations ?? [];
  const isOpen = hardTaints(taints).every((taint) => tolerations.some((one) => tolerates(one, taint)));
  if (!isOpen || resources === undefined) return isOpen;
  const there = readableAmounts(resources);
  return [...podRequests(pod)].every(([resource, milli]) => milli <= amountOf(there, resource));
}

const MOST_WEIGHT = 100;

/** Less than any term of the pod's own, which so wins; 0: they leave no weight. */
const heaviest = (own: readonly PreferredTerm[]): number =>
  Math.min(MOST_WEIGHT, ...own.map(({ weight }) => weight - 1));

/**
 * From `most` down, each the same part of the one before; the last one has none. The scheduler measures by the heaviest of the nodes
 * that have room, so whichever are full, the cheapest of the others leads by as much. By rank and not by price: a small
 * difference is outweighed by how full the nodes are, and then it is not the cheapest that is used.
 */
const weightOf = (rank: number, levels: number, most: number): number =>
  Math.max(1, Math.round(most ** (1 - rank / (levels - 1))));
