import type { ResourceType } from '../api/resources.ts';
import type { KubeObject, ObjectMeta } from '../api/wire.ts';
import { TributaryError, errorMessage } from '../lib/errors.ts';
import { type Fields, isFields } from '../lib/fields.ts';
import { parseObjects } from './managed-fields.ts';

/** One page as the API server sends it. */
export interface Page<T> {
  resourceVersion: string;
  continue: string | undefined;
  items: T[];
}

/** The JSON object in an answer. */
export function parseAnswer(body: Buffer, what: string): Fields {
  const value = parse(body.toString('utf8'), what);
  if (!isFields(value)) throw new TributaryError('Unavailable', `${what}: the answer is not an object`);
  return value;
}

function parse(text: string, what: string): unknown {
  try {
    return parseObjects(text, (object) => [object]);
  } catch (error) {
    throw new TributaryError('Unavailable', `${what}: the answer is not JSON: ${errorMessage(error)}`);
  }
}

/** `apiVersion` and `kind` of a type's objects. */
export const namesOf = ({
  group,
  version,
  kind,
}: ResourceType<KubeObject>): { apiVersion: string; kind: string } => ({
  apiVersion: group === '' ? version : `${group}/${version}`,
  kind,
});

/**
 * An object in the one shape that we know: with `apiVersion` and `kind`, which items of lists lack, and without
 * `metadata.managedFields`, which are half of many objects and of no use to us.
 * Copied, since deleting a property would turn `metadata` into a hash table for the rest of its life.
 */
export function oneShape<T extends KubeObject>(type: ResourceType<T>, object: Fields): T {
  const { metadata = {} } = object;
  const { managedFields: _, ...rest } = metadata as ObjectMeta & { managedFields?: unknown };
  const names = namesOf(type);
  // Metadata of a thing still bears the thing's name; a subresource's answer keeps its own.
  if (object['kind'] === 'PartialObjectMetadata')
    return { ...object, ...names, metadata: rest } as unknown as T;
  return { ...names, ...object, metadata: rest } as unknown as T;
}

/** Which object it is, in which state, and how old. */
export function identityOf(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  return { name, ...(namespace !== undefined && { namespace }), uid, resourceVersion, creationTimestamp };
}

/** A list, or what is left of it. */
export function pageOf<T extends KubeObject>(type: ResourceType<T>, list: Fields, what: string): Page<T> {
  const { metadata, items } = list;
  // Some lists of Go programs are null where they are empty.
  const raw = items === null ? [] : items;
  if (!Array.isArray(raw) || !isFields(metadata)) {
    throw new TributaryError('Unavailable', `${what}: the answer is not a list`);
  }
  const next = metadata['continue'];
  const version = metadata['resourceVersion'];
  return {
    // Computed lists, such as metrics, have no version.
    resourceVersion: typeof version === 'string' ? version : '',
    continue: typeof next === 'string' && next !== '' ? next : undefined,
    items: itemsOf(type, raw, what),
  };
}

export const itemsOf = <T extends KubeObject>(
  type: ResourceType<T>,
  raw: readonly unknown[],
  what: string,
): T[] =>
  raw.map((item) => {
    if (!isObject(item)) throw new TributaryError('Unavailable', `${what}: an item is not an object`);
    return oneShape(type, item);
  });

/** Whether a value is an object with a name and a version, as everything stored has. */
export function isObject(value: unknown): value is Fields & { metadata: Fields } {
  if (!isFields(value)) return false;
  const { metadata } = value;
  return isFields(metadata) && typeof metadata['name'] === 'string';
}
