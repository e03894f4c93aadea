import { type HeldOff, type NamespaceOffloading, namespaceOffloadings } from '../api/namespace-offloading.ts';
import type { KubeClient } from '../kube/client.ts';

/** Writes this key of the status only: the rest is the offloading controller's. Fails with Conflict if the object has changed. */
export async function writeHeldOff(
  client: KubeClient,
  { metadata }: NamespaceOffloading,
  heldOff: HeldOff[],
  signal: AbortSignal,
): Promise<NamespaceOffloading> {
  const { uid, resourceVersion } = metadata;
  const body = { metadata: { uid, resourceVersion }, status: { heldOff } };
  const options = { subresource: 'status', signal };
  return client.patch(namespaceOffloadings, metadata, { type: 'merge', body }, options);
}
