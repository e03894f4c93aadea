import type { ResourceType } from '../api/resources.ts';
import type { KubeObject, ObjectMeta } from '../api/wire.ts';
import { TributaryError, errorMessage } from '../lib/errors.ts';
import { type Fields, isFields } from '../lib/fields.ts';
import { cutList } from './list-parts.ts';

/** One page as the API server sends it, or some of its items. */
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
    return JSON.parse(text);
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

/** A page in parts, so that whoever reads it can rest in between; at least one, which may be empty. */
export function* parseList<T extends KubeObject>(
  type: ResourceType<T>,
  body: Buffer,
  what: string,
): Generator<Page<T>, void, undefined> {
  for (const [{ metadata }, items] of rawParts(body.toString('utf8'), what)) {
    // Some lists of Go programs are null where they are empty.
    const raw = items === null ? [] : items;
    if (!Array.isArray(raw) || !isFields(metadata)) {
      throw new TributaryError('Unavailable', `${what}: the answer is not a list`);
    }
    const next = metadata['continue'];
    const version = metadata['resourceVersion'];
    yield {
      // Computed lists, such as metrics, have no version.
      resourceVersion: typeof version === 'string' ? version : '',
      continue: typeof next === 'string' && next !== '' ? next : undefined,
      items: raw.map((item: unknown) => {
        if (!isObject(item)) throw new TributaryError('Unavailable', `${what}: an item is not an object`);
        return oneShape(type, item);
      }),
    };
  }
}

/** The list without its items, and some of these, again and again. What a wrong cut leaves is read from the whole. */
function* rawParts(text: string, what: string): Generator<[head: Fields, items: unknown], void> {
  const { head: headText, parts = [] } = cutList(text) ?? {};
  const head = headText === undefined ? undefined : valueOf(headText);
  let read = 0;
  let isRead = isFields(head) && parts.length > 0;
  for (const part of isRead ? parts : []) {
    const items = valueOf(`[${part}]`);
    isRead = Array.isArray(items);
    if (!isRead) break;
    read += (items as unknown[]).length;
    yield [head as Fields, items];
  }
  if (isRead) return;
  const whole = parse(text, what);
  if (!isFields(whole)) throw new TributaryError('Unavailable', `${what}: the answer is not an object`);
  const { items } = whole;
  yield [whole, Array.isArray(items) ? items.slice(read) : items];
}

/** Undefined: it is not JSON. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether a value is an object with a name and a version, as everything stored has. */
export function isObject(value: unknown): value is Fields & { metadata: Fields } {
  if (!isFields(value)) return false;
  const { metadata } = value;
  return isFields(metadata) && typeof metadata['name'] === 'string';
}
