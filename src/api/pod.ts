import type { OwnerReference, Pod, Volume } from './wire.ts';

/** What is asked of pods in many places. Pure. */

type Meta = Pick<Pod, 'metadata'>;

/** The reference to the controller that replaces the pod when it is gone; a pod has one at most. */
export const controllerOf = ({ metadata }: Meta): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);

/** Its controller makes it again on the very same node, for as long as that is there. */
export const isOfDaemonSet = (pod: Meta): boolean => controllerOf(pod)?.kind === 'DaemonSet';

/** Its containers have ended for good. */
export const isFinished = ({ status }: { status?: { phase?: string } }): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Volumes that outlive the pod: claims, but not those that are made for it and end with it. */
export const claimVolumes = ({ spec }: Pick<Pod, 'spec'>): Volume[] =>
  (spec?.volumes ?? []).filter(({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined);
