/** All objects of a cluster, each reduced to what tells whether it was written. Pure. */
import { createHash } from 'node:crypto';

export interface Writer {
  readonly manager: string;
  /** When it last wrote, and which fields; it changes with each write. */
  readonly mark: string;
}

export interface StoredObject {
  /** `pods`, `deployments.apps`. */
  readonly resource: string;
  /** Empty for objects without one. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly version: string;
  /** Hash of all of it but versions and managers; of Nodes without status. */
  readonly content: string;
  readonly writers: readonly Writer[];
  /** Keys of labels, annotations and finalizers. */
  readonly keys: readonly string[];
}

export interface ClusterSnapshot {
  readonly cluster: string;
  readonly objects: readonly StoredObject[];
}

export interface RawObject {
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    managedFields?: { manager?: string; operation?: string; time?: string; fieldsV1?: unknown }[];
    [field: string]: unknown;
  };
  [field: string]: unknown;
}

const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64').slice(0, 16);

export function storedObject(resource: string, object: RawObject): StoredObject {
  const { managedFields = [], resourceVersion = '', generation: _generation, ...metadata } = object.metadata;
  const { status, ...rest } = object;
  const { labels = {}, annotations = {}, finalizers = [] } = metadata;
  return {
    resource,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    version: resourceVersion,
    content: hashOf({ ...rest, metadata, ...(resource !== 'nodes' && { status }) }),
    writers: managedFields.map(({ manager = 'unknown', operation, time, fieldsV1 }) => ({
      manager,
      mark: hashOf([operation, time, fieldsV1]),
    })),
    keys: [...Object.keys(labels), ...Object.keys(annotations), ...finalizers],
  };
}
