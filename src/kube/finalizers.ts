import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { ignoring } from '../lib/errors.ts';
import type { CallOptions, KubeClient } from './client.ts';

/**
 * Adds a finalizer, by the object's version: Conflict where somebody wrote since. Nothing is sent, and the object
 * returned as it is, where it has it already or is on its way out (the API server would refuse).
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

/** Removes a finalizer. An object that is gone, or another under its name, is as good as done. */
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

/** A merge patch with the version in it replaces the list only where nobody has written since. */
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
