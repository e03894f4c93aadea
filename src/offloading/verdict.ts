import type { WantedCondition } from '../api/conditions.ts';
import {
  NAMESPACE_OFFLOADING_CONDITIONS,
  NAMESPACE_OFFLOADING_REASONS,
} from '../api/namespace-offloading.ts';
import type { NamespaceOffloadingReason, OffloadedCluster } from '../api/namespace-offloading.ts';

const REASONS = NAMESPACE_OFFLOADING_REASONS;

export interface VerdictFacts {
  clusters: readonly OffloadedCluster[];
  /** Why the namespace never leaves this cluster. */
  refusal?: string | undefined;
  isEnding?: boolean;
  generation?: number | undefined;
  /** Why pods do not come home yet, a phrase for each of them. */
  held?: readonly string[];
}

export type ReadyCondition = WantedCondition<string, NamespaceOffloadingReason>;

/** The condition Ready. Clusters that are being left neither help nor harm. Pure. */
export function readyOf({
  clusters,
  refusal,
  isEnding = false,
  generation,
  held = [],
}: VerdictFacts): ReadyCondition {
  const of = (reason: NamespaceOffloadingReason, message: string): ReadyCondition => ({
    type: NAMESPACE_OFFLOADING_CONDITIONS.ready,
    status: reason === REASONS.ok ? 'True' : 'False',
    reason,
    message,
    ...(generation !== undefined && { observedGeneration: generation }),
  });
  if (isEnding) {
    const [first] = held;
    const waits = first === undefined ? '' : `; waits for ${held.length} of them, one is ${first}`;
    return of(REASONS.ending, `pods come home, then the namespaces over there are given back${waits}`);
  }
  if (refusal !== undefined) return of(REASONS.systemNamespace, refusal);
  const current = clusters.filter(({ phase }) => phase !== 'Ending');
  if (current.length === 0) {
    return of(
      REASONS.noClusterSelected,
      'no virtual node has the labels of spec.clusterSelector; `kubectl get nodes -l tributary.dev/node-type=virtual-node --show-labels` shows what there is',
    );
  }
  const failed = current.filter(({ phase }) => phase === 'Failed');
  if (failed.length === current.length) return of(REASONS.allFailed, failed.map(told).join('; '));
  if (failed.length > 0) return of(REASONS.someFailed, failed.map(told).join('; '));
  const pending = current.filter(({ phase }) => phase === 'Pending');
  if (pending.length > 0) return of(REASONS.inProgress, pending.map(told).join('; '));
  return of(REASONS.ok, `in ${current.map(calledBy).join(', ')}`);
}

const calledBy = ({ cluster, clusterName }: OffloadedCluster): string => clusterName ?? cluster;

const told = (cluster: OffloadedCluster): string =>
  `${calledBy(cluster)}: ${cluster.reason}${cluster.message === undefined ? '' : ` (${cluster.message})`}`;

export interface News {
  type: 'Normal' | 'Warning';
  reason: string;
  message: string;
}

/** What is worth an event: the verdict is another one, or a cluster has failed that had not, or for another cause. Pure. */
export function newsOf(
  before: { ready?: string | undefined; clusters?: readonly OffloadedCluster[] },
  now: { ready: ReadyCondition; clusters: readonly OffloadedCluster[] },
): News[] {
  const { ready, clusters } = now;
  const known = new Map((before.clusters ?? []).map((one) => [one.cluster, one]));
  const failures = clusters
    .filter(({ phase }) => phase === 'Failed')
    .filter(
      ({ cluster, reason }) =>
        known.get(cluster)?.phase !== 'Failed' || known.get(cluster)?.reason !== reason,
    )
    .map((one): News => ({ type: 'Warning', reason: one.reason, message: `in ${told(one)}` }));
  if (before.ready === ready.reason) return failures;
  const isFine = ([REASONS.ok, REASONS.inProgress, REASONS.ending] as string[]).includes(ready.reason);
  return [...failures, { type: isFine ? 'Normal' : 'Warning', reason: ready.reason, message: ready.message }];
}
