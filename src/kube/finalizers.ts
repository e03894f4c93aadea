import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { ignoring } from '../lib/errors.ts';
import type { CallOptions, KubeClient } from './client.ts';

/**
 * Adds a finalizer, if the object still has this version; otherwise throws Conflict. If the object has the finalizer
 * already, or is being deleted (then the API server would refuse), it sends nothing and returns the object as it is.
 */
export async function addFinalizer<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  object: T,
  { finalizer, signal }: { finalizer: string } & Pick<CallOptions, 'signal'>,
): Promise<T> {
  const { finalizers = [], deletionTimestamp } = object.metadata;
  if (finalizers.includes(finalizer) || deletionTimestamp !== undefined) return object;
  return write(client, type, object, { finalizers: [...finalizers, finalizer], ...(signal && { signal }) });
}

/** Removes a finalizer. If the object is gone, or another one has its name, there is nothing to do. */
export async function removeFinalizer<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  object: T,
  { finalizer, signal }: { finalizer: string } & Pick<CallOptions, 'signal'>,
): Promise<T | undefined> {
  const { finalizers = [] } = object.metadata;
  if (!finalizers.includes(finalizer)) return object;
  const rest = finalizers.filter((name) => name !== finalizer);
  const writing = write(client, type, object, { finalizers: rest, ...(signal && { signal }) });
  return writing.catch(ignoring('NotFound'));
}

/** A merge patch that names the version replaces the list only if nobody has written since. */
async function write<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  { metadata }: T,
  { finalizers, ...options }: { finalizers: string[] } & Pick<CallOptions, 'signal'>,
): Promise<T> {
  const { uid, resourceVersion } = metadata;
  const body = {
    metadata: { uid, resourceVersion, finalizers: finalizers.length === 0 ? null : finalizers },
  };
  return client.patch(type, metadata, { type: 'merge', body }, options);
}
