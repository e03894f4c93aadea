import type { KubeletBackend, PodLocation } from './backend.ts';
import type { PodPath } from './names.ts';

/** A pod of this node by what a path says of it, or why there is none, in the kubelet's words. */
export function locatePod(
  backend: Pick<KubeletBackend, 'locate'>,
  { namespace, pod, uid, container }: PodPath,
): PodLocation | { status: 404; text: string } {
  const location = backend.locate(namespace, pod);
  if (location === undefined) return { status: 404, text: `pod ${JSON.stringify(pod)} does not exist` };
  if (uid !== undefined && uid !== location.uid) return { status: 404, text: 'pod not found' };
  if (container === undefined) return location;
  return (
    backend.locate(namespace, pod, container) ?? {
      status: 404,
      text: `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(pod)}`,
    }
  );
}
