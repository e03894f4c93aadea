import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { TributaryError } from '../lib/errors.ts';
import type { ListOptions, ObjectRef, PatchBody, WatchOptions } from './client.ts';

type Type = ResourceType<KubeObject>;

/** Path of a collection; across all namespaces where `namespace` is undefined. */
export function collectionPath(type: Type, namespace?: string): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  if (!type.namespaced || namespace === undefined) return `${root}/${type.plural}`;
  return `${root}/namespaces/${segment(namespace, 'namespace')}/${type.plural}`;
}

export function objectPath(type: Type, ref: ObjectRef, subresource?: string): string {
  if (type.namespaced && ref.namespace === undefined) {
    throw new TributaryError('Invalid', `${type.kind} ${ref.name}: a namespace is needed`);
  }
  const path = `${collectionPath(type, ref.namespace)}/${segment(ref.name, 'name')}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Nearly all names; nothing in them needs to be encoded, and none is a step in a path. */
const PLAIN_SEGMENT = /^[a-z0-9][-a-z0-9.]*$/u;

/** Names may come from other clusters. A name that would change the rest of the path is refused. */
function segment(name: string, what: string): string {
  if (PLAIN_SEGMENT.test(name)) return name;
  if (name === '' || name === '.' || name === '..' || /[/%]/.test(name)) {
    throw new TributaryError('Invalid', `"${name.slice(0, 100)}" cannot be the ${what} of an object`);
  }
  return encodeURIComponent(name);
}

/** The query of a list or a watch, with its question mark; empty if there are no parameters. */
export function listQuery(options: Partial<WatchOptions>, more: Record<string, string> = {}): string {
  const query = new URLSearchParams();
  const keys = ['labelSelector', 'fieldSelector', 'resourceVersion', 'resourceVersionMatch'] as const;
  for (const key of keys) {
    const value = options[key];
    if (value !== undefined) query.set(key, value);
  }
  for (const [key, value] of Object.entries(more)) query.set(key, value);
  return query.size === 0 ? '' : `?${query.toString()}`;
}

/** The name of the object or collection in an error message. */
export function nameOf(type: Type, ref: Partial<ObjectRef>): string {
  const name = ref.name === undefined ? '' : ` ${ref.name}`;
  return ref.namespace === undefined ? `${type.kind}${name}` : `${type.kind}${name} in ${ref.namespace}`;
}

export function acceptHeader(options: Pick<ListOptions, 'metadataOnly'>, of: 'list' | 'object'): string {
  if (options.metadataOnly !== true) return 'application/json';
  const kind = of === 'list' ? 'PartialObjectMetadataList' : 'PartialObjectMetadata';
  return `application/json;as=${kind};g=meta.k8s.io;v=v1`;
}

/** Content types of patches. */
export const PATCH_TYPES: Readonly<Record<PatchBody['type'], string>> = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
};
