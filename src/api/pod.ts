/** What is asked of pods in many places. Pure. */
import type { OwnerReference, Pod } from './wire.ts';

type Meta = Pick<Pod, 'metadata'>;

/** The reference to the controller that replaces the pod when it is gone; a pod has one at most. */
export const controllerOf = ({ metadata }: Meta): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);

/** Its controller makes it again on the very same node, for as long as that is there. */
export const isOfDaemonSet = (pod: Meta): boolean => controllerOf(pod)?.kind === 'DaemonSet';

/** Its containers have ended for good. */
export const isFinished = ({ status }: { status?: { phase?: string } }): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed';
