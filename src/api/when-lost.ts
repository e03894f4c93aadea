import { ANNOTATION_WHEN_LOST, type WhenLost } from './names.ts';
import { controllerOf } from './pod.ts';
import type { Pod } from './wire.ts';

const CHOICES = new Set<string>(['Replace', 'WhenFenced', 'Leave'] satisfies WhenLost[]);
const isChoice = (value: string | undefined): value is WhenLost => value !== undefined && CHOICES.has(value);

/**
 * What the foreign cluster may do when it loses the pod while this cluster is away: what the pod's controller would do. A
 * ReplicaSet starts another pod without asking what became of the first. A StatefulSet, a Job, and every controller that we do
 * not know may rely on there being at most one. A pod without an owner that always restarts comes back where it is certain
 * that the old one has ended; one that runs once never runs twice. An annotation on the pod, set at home before it leaves,
 * overrides all this. The same says what may leave a virtual node whose cluster is away: what runs there may not be asked to end.
 * Pure.
 */
export function whenLostOf(home: Pod): WhenLost {
  const chosen = home.metadata.annotations?.[ANNOTATION_WHEN_LOST];
  if (isChoice(chosen)) return chosen;
  const owner = controllerOf(home);
  if (owner === undefined) {
    return (home.spec?.restartPolicy ?? 'Always') === 'Always' ? 'WhenFenced' : 'Leave';
  }
  const isStateless =
    (owner.kind === 'ReplicaSet' && owner.apiVersion.startsWith('apps/')) ||
    (owner.kind === 'ReplicationController' && owner.apiVersion === 'v1');
  return isStateless ? 'Replace' : 'WhenFenced';
}
