import { isFinished, isOfDaemonSet } from '../api/pod.ts';
import { ANNOTATION_STRATEGY } from '../api/names.ts';
import type { OnRemoval } from '../api/namespace-offloading.ts';
import type { Pod } from '../api/wire.ts';

/** Nodes that a namespace leaves. */
export interface LeftNodes {
  /** Of VirtualNodes that peering keeps: every pod there has to go. */
  peers: ReadonlySet<string>;
  /** Of those that keep their mapping, made by hand or named by a policy, too: only pods that the webhook has let in go. */
  byHand: ReadonlySet<string>;
}

export interface LeavingContext {
  nodes: LeftNodes;
  onRemoval: OnRemoval;
  /**
   * Since when they are left, milliseconds since the epoch. Pods that were made later, and not let in by the webhook, are
   * there by their own wish: to delete them would go on for ever.
   */
  since: number;
  /** The NamespaceOffloading itself is going: what was let in and has no node yet goes, too. */
  isRemoved: boolean;
}

/** Stay: not ours to end. Delete: whoever owns it makes another. Remake: nobody would, so we do. */
export type Farewell = 'Stay' | 'Delete' | 'Remake';

/** What becomes of a pod when its namespace leaves those nodes. Pure. */
export function farewellOf(pod: Pod, context: LeavingContext): Farewell {
  if (!isConcerned(pod, context)) return 'Stay';
  const owners = pod.metadata.ownerReferences ?? [];
  // Its controller would put another one on the very same node.
  if (isOfDaemonSet(pod)) return 'Stay';
  if (isFinished(pod) || owners.length > 0 || context.onRemoval === 'End') return 'Delete';
  return 'Remake';
}

function isConcerned({ metadata, spec }: Pod, { nodes, since, isRemoved }: LeavingContext): boolean {
  const wasLetIn = metadata.annotations?.[ANNOTATION_STRATEGY] !== undefined;
  const nodeName = spec?.nodeName ?? '';
  // It may be bound to virtual nodes only, and would wait for ever.
  if (nodeName === '') return wasLetIn && isRemoved;
  if (wasLetIn) return nodes.peers.has(nodeName) || nodes.byHand.has(nodeName);
  return nodes.peers.has(nodeName) && Date.parse(metadata.creationTimestamp) <= since;
}
