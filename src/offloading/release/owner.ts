import { controllerOf } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';

/** `Kind/name` of the controller; of a pod without one `Pod/name`. All pods of a controller have one key. */
export function ownerKey(pod: Pick<Pod, 'metadata'>): string {
  const owner = controllerOf(pod);
  return owner === undefined ? `Pod/${pod.metadata.name}` : `${owner.kind}/${owner.name}`;
}
