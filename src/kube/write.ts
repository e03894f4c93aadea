import type { ResourceType } from '../api/resources.ts';
import type { DraftMeta, KubeObject } from '../api/wire.ts';
import { deepEqual } from '../lib/equality.ts';
import { hasCode, ignoring } from '../lib/errors.ts';
import type { CallOptions, DeleteOptions, KubeClient } from './client.ts';

type WithStatus = KubeObject & { status?: unknown };

/**
 * Writes `status` where it differs from the one in `object` (as last read), by its version. Returns the object as
 * it is now. A write that changes nothing still costs the API server more than a read, hence the look first.
 */
export async function replaceStatusIfDiffers<T extends WithStatus>(
  client: KubeClient,
  type: ResourceType<T>,
  object: T,
  { status, signal }: { status: NonNullable<T['status']> } & Pick<CallOptions, 'signal'>,
): Promise<T> {
  if (deepEqual(object.status, status)) return object;
  const subresource = 'status';
  return client.replace(type, { ...object, status }, { subresource, ...(signal && { signal }) });
}

/** The same for the rest of an object. `desired` is the full object, with the version that it was made from. */
export async function replaceIfDiffers<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  current: T,
  { desired, signal }: { desired: T } & Pick<CallOptions, 'signal'>,
): Promise<T> {
  if (deepEqual(current, desired)) return current;
  return client.replace(type, desired, signal === undefined ? {} : { signal });
}

/**
 * Merge-patches labels and annotations (null removes one) where any differs. Without the version: the keys are
 * ours alone, so nobody else's change can be undone.
 */
export async function patchMetadataIfDiffers<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  object: T,
  { signal, ...wanted }: { labels?: Marks; annotations?: Marks } & Pick<CallOptions, 'signal'>,
): Promise<T> {
  const labels = differing(object.metadata.labels, wanted.labels);
  const annotations = differing(object.metadata.annotations, wanted.annotations);
  if (labels === undefined && annotations === undefined) return object;
  const { uid } = object.metadata;
  const body = { metadata: { uid, ...(labels && { labels }), ...(annotations && { annotations }) } };
  return client.patch(type, object.metadata, { type: 'merge', body }, signal === undefined ? {} : { signal });
}

/** Makes an object, or merges `body` into the one of that name. */
export async function createOrMerge<T extends KubeObject>(
  client: Pick<KubeClient, 'create' | 'patch'>,
  type: ResourceType<T>,
  draft: Omit<T, 'metadata'> & { metadata: DraftMeta & { name: string } },
  { body, ...options }: { body: object } & Pick<CallOptions, 'signal'>,
): Promise<T> {
  try {
    return await client.create(type, draft, options);
  } catch (error) {
    if (!hasCode(error, 'AlreadyExists')) throw error;
    return client.patch(type, draft.metadata, { type: 'merge', body }, options);
  }
}

/** Deletes this object and no other of its name. One that is gone, or was replaced by another, counts as deleted. */
export async function deleteByUid<T extends KubeObject>(
  client: Pick<KubeClient, 'delete'>,
  type: ResourceType<T>,
  { metadata }: Pick<KubeObject, 'metadata'>,
  options: Omit<DeleteOptions, 'uid'>,
): Promise<void> {
  await client
    .delete(type, metadata, { uid: metadata.uid, ...options })
    .catch(ignoring('NotFound', 'Conflict'));
}

type Marks = Record<string, string | null>;

function differing(current: Record<string, string> = {}, wanted: Marks = {}): Marks | undefined {
  const differences = Object.entries(wanted).filter(([key, value]) => (current[key] ?? null) !== value);
  return differences.length === 0 ? undefined : Object.fromEntries(differences);
}
