/** Taints and tolerations, as the scheduler reads them (Kubernetes: corev1 helpers, ToleratesTaint). */
import type { Taint, Toleration } from './wire.ts';

/** With these no pod comes to a node, or none stays there, that does not tolerate the taint. */
const HARD = new Set(['NoSchedule', 'NoExecute']);

export const hardTaints = (taints: readonly Taint[] = []): Taint[] =>
  taints.filter(({ effect }) => HARD.has(effect));

/** An empty key with Exists tolerates every taint, an empty effect every effect. Operators that are not known tolerate nothing. */
export const tolerates = (
  { key = '', operator = '', value = '', effect = '' }: Toleration,
  taint: Taint,
): boolean => {
  if (effect !== '' && effect !== taint.effect) return false;
  if (operator === 'Exists') return key === '' || key === taint.key;
  return (operator === 'Equal' || operator === '') && key === taint.key && value === (taint.value ?? '');
};

/** An API server gives every pod tolerations of these (DefaultTolerationSeconds), with the effect NoExecute. */
export const NODE_LIFE_TAINTS: readonly string[] = [
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
];

/** Beginnings of keys that no word of a policy opens to peers: control planes, cordoned nodes, and whole foreign clusters. */
export const NEVER_TOLERATED: readonly string[] = [
  'node-role.kubernetes.io/',
  'node.kubernetes.io/unschedulable',
  'tributary.dev/',
];

/**
 * A person or program sets it after making sure that nothing runs on the node any more (KEP-2268): Kubernetes then lets all of its
 * pods go. It stays until it is taken away by hand.
 */
export const TAINT_OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
