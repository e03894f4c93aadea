import { LABEL_HOME_UID } from './names.ts';
import type { Container, EphemeralContainer, OwnerReference, Pod, Volume } from './wire.ts';

/** Questions about pods that many places ask. Pure. */

type Meta = Pick<Pod, 'metadata'>;

/** The reference to the controller that replaces the pod when it is gone; a pod has one at most. */
export const controllerOf = ({ metadata }: Meta): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);

/**
 * Whether somebody makes another pod when it is gone. Only a controller does; an owner that is none just takes the pod along when
 * it is deleted itself. `kubectl drain` tells pods apart alike.
 */
export const isControlled = (pod: Meta): boolean => controllerOf(pod) !== undefined;

/** Its controller creates it again on the same node, as long as that node exists. */
export const isOfDaemonSet = (pod: Meta): boolean => controllerOf(pod)?.kind === 'DaemonSet';

/** A peer has sent it here. */
export const isGuest = ({ metadata }: Meta): boolean => metadata.labels?.[LABEL_HOME_UID] !== undefined;

/** Containers of all kinds, in the order in which they start. */
export const containersOf = ({ spec }: Pick<Pod, 'spec'>): (Container | EphemeralContainer)[] => [
  ...(spec?.initContainers ?? []),
  ...(spec?.containers ?? []),
  ...(spec?.ephemeralContainers ?? []),
];

export const DISRUPTION_TARGET = 'DisruptionTarget';

/** Whoever evicts, preempts or gives up pods in Kubernetes marks them so (KEP-3329); a home that deletes one does not. */
export const isDisruptionTarget = ({ status }: Pick<Pod, 'status'>): boolean =>
  (status?.conditions ?? []).some((it) => it.type === DISRUPTION_TARGET && it.status === 'True');

/** Its containers have ended for good. */
export const isFinished = ({ status }: { status?: { phase?: string } }): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed';

/**
 * Whether somebody waits for the containers to end, and not only for the pod to go: it was made to end, or a controller counts it by a
 * finalizer.
 */
export const isEndAwaited = ({ metadata, spec }: Pick<Pod, 'metadata' | 'spec'>): boolean =>
  (metadata.finalizers ?? []).length > 0 || (spec?.restartPolicy ?? 'Always') !== 'Always';

/** Field selector of pods that wait for a node. */
export const WAITING_FOR_NODE = 'spec.nodeName=,status.phase=Pending';

/**
 * The addresses that are the pod's alone. On the network of its node it has the node's, which everything of the node shares; when
 * it has ended, its address may be somebody else's.
 */
export function ownAddresses(pod: Pick<Pod, 'spec' | 'status'>): string[] {
  if (pod.spec?.hostNetwork === true || isFinished(pod)) return [];
  return (pod.status?.podIPs ?? []).flatMap(({ ip }) => ip ?? []);
}

/** Volumes that outlive the pod: claims, but not those that are made for it and end with it. */
export const claimVolumes = ({ spec }: Pick<Pod, 'spec'>): Volume[] =>
  (spec?.volumes ?? []).filter(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined);
