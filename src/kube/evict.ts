/** The Eviction API (KEP-85): a deletion that asks the PodDisruptionBudgets first. */
import { type ResourceType, namespaced } from '../api/resources.ts';
import type { KubeObject, Pod } from '../api/wire.ts';
import { type TributaryError, errorMessage, hasCode } from '../lib/errors.ts';
import type { KubeClient } from './client.ts';

/** Evictions are only created, as the subresource `eviction` of a pod. */
const evictions: ResourceType<KubeObject> = namespaced('/v1', 'Eviction', 'pods');

export type EvictionAnswer =
  /** The pod ends now, with its own grace period; with `dryRun`: it would. */
  | { kind: 'Evicted' }
  /** The pod is gone, or another pod has its name. */
  | { kind: 'Gone' }
  /** A budget does not allow it now; the server may have said when to ask again. */
  | { kind: 'Held'; budget: string; message: string; retryAfterMs?: number }
  /** Several budgets select the pod. The API server refuses that case, and waiting does not help. */
  | { kind: 'Misconfigured'; message: string };

export interface EvictOptions {
  /** Only asks; takes nothing from the budget. */
  dryRun?: boolean;
  signal: AbortSignal;
}

/**
 * Evicts just this pod, by its UID. The API server evicts finished and pending pods whatever the budgets say. Pods of
 * DaemonSets come back at once: callers leave them alone. Throws what is no answer about this pod: no rights, no
 * server, or a server that has too much to do (429 as well, but not because of a budget).
 */
export async function evict(
  client: KubeClient,
  { metadata }: Pick<Pod, 'metadata'>,
  { dryRun = false, signal }: EvictOptions,
): Promise<EvictionAnswer> {
  const { name, namespace = '', uid } = metadata;
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { preconditions: { uid }, ...(dryRun && { dryRun: ['All'] }) },
  };
  try {
    await client.create(evictions, body, { subresource: 'eviction', signal });
    return { kind: 'Evicted' };
  } catch (error) {
    const answer = answerOf(error, namespace);
    if (answer === undefined) throw error;
    return answer;
  }
}

/** Cause of a refusal by a budget: policyv1.DisruptionBudgetCause. */
const CAUSE = 'DisruptionBudget';
/** `The disruption budget web needs 1 healthy pods and has 1 currently`, or `... is still being processed ...`. */
const BUDGET = /^The disruption budget (\S{1,253}) (.*)$/;

function answerOf(error: unknown, namespace: string): EvictionAnswer | undefined {
  if (hasCode(error, 'NotFound', 'Conflict')) return { kind: 'Gone' };
  const { status, causes = [], retryAfterMs } = error as Partial<TributaryError>;
  if (hasCode(error, 'TooManyRequests')) {
    const cause = causes.find(({ reason }) => reason === CAUSE);
    if (cause === undefined) return undefined;
    const [, name, why] = BUDGET.exec(cause.message) ?? [];
    return {
      kind: 'Held',
      budget: name === undefined ? `of namespace ${namespace}` : `${namespace}/${name}`,
      message: why ?? (cause.message === '' ? 'no disruption is allowed' : cause.message),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
  }
  // eviction.go has no reason of its own for it.
  if (status === 500 && /more than one PodDisruptionBudget/.test(errorMessage(error))) {
    return { kind: 'Misconfigured', message: 'more than one PodDisruptionBudget selects this pod' };
  }
  return undefined;
}
