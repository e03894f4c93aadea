import { randomUUID } from 'node:crypto';
import { deepEqual } from '../../../src/lib/equality.ts';

/** Any object, loosely: the simulator serves every kind alike. */
export interface AnyObject {
  apiVersion?: string;
  kind?: string;
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    generation?: number;
    creationTimestamp: string;
    deletionTimestamp?: string;
    deletionGracePeriodSeconds?: number;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    [field: string]: unknown;
  };
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  [field: string]: unknown;
}

export interface Change {
  revision: number;
  resource: string;
  /** undefined where there was or is none. */
  previous: AnyObject | undefined;
  current: AnyObject | undefined;
}

/** A failed request, as a `metav1.Status`. */
export class ApiFailure extends Error {
  readonly status: number;
  readonly reason: string;

  readonly headers: Record<string, string>;

  constructor(status: number, reason: string, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.headers = headers;
    this.status = status;
    this.reason = reason;
  }
}

/**
 * What etcd and the storage layer do: one revision for all objects, a limited history, and no new revision for writes
 * that change nothing.
 */
export class FakeStorage {
  readonly #objects = new Map<string, Map<string, AnyObject>>();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #now: () => number;
  readonly #windowSize: number;
  #history: Change[] = [];
  #revision = 100;
  #compacted = 100;
  /** Number of changes stored so far; a write without a change does not count. */
  writes = 0;

  constructor(now: () => number, windowSize: number) {
    this.#now = now;
    this.#windowSize = windowSize;
  }

  get revision(): number {
    return this.#revision;
  }

  get(resource: string, key: string): AnyObject | undefined {
    return this.#objects.get(resource)?.get(key);
  }

  /** In the order of their keys, as in etcd. */
  list(resource: string): AnyObject[] {
    const entries = [...(this.#objects.get(resource) ?? [])];
    return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  create(resource: string, object: AnyObject): AnyObject {
    const { metadata } = object;
    const key = keyOf(object);
    if (this.get(resource, key) !== undefined) {
      throw new ApiFailure(409, 'AlreadyExists', `${resource} "${metadata.name}" already exists`);
    }
    return this.#commit(resource, key, {
      ...object,
      metadata: {
        ...metadata,
        uid: randomUUID(),
        resourceVersion: '',
        creationTimestamp: timestamp(this.#now()),
        generation: 1,
      },
    });
  }

  /** Stores a new state of an existing object; returns the old one if nothing differs. */
  update(resource: string, next: AnyObject): AnyObject {
    const key = keyOf(next);
    const current = this.get(resource, key);
    if (current === undefined) throw notFound(resource, next.metadata.name);
    const { resourceVersion } = current.metadata;
    if (deepEqual(current, { ...next, metadata: { ...next.metadata, resourceVersion } })) return current;
    return this.#commit(resource, key, next);
  }

  remove(resource: string, key: string): AnyObject {
    const current = this.get(resource, key);
    if (current === undefined) throw notFound(resource, key);
    this.#objects.get(resource)?.delete(key);
    const revision = ++this.#revision;
    const metadata = { ...current.metadata, resourceVersion: String(revision) };
    this.#record({ revision, resource, previous: { ...current, metadata }, current: undefined });
    return { ...current, metadata };
  }

  /** Changes after `revision`; undefined if the history no longer reaches back to it. */
  since(resource: string, revision: number): Change[] | undefined {
    if (revision < this.#compacted) return undefined;
    return this.#history.filter((change) => change.revision > revision && change.resource === resource);
  }

  /** Forgets the history up to now: every watch from an older version ends with 410. */
  compact(): void {
    this.#history = [];
    this.#compacted = ++this.#revision;
  }

  /** Puts the state and its versions back, as an etcd restored from a snapshot would. */
  snapshot(): () => void {
    const saved = [...this.#objects].map(([resource, objects]) => [resource, new Map(objects)] as const);
    const revision = this.#revision;
    return () => {
      this.#objects.clear();
      for (const [resource, objects] of saved) this.#objects.set(resource, new Map(objects));
      this.#history = [];
      this.#revision = revision;
      this.#compacted = revision;
    };
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #commit(resource: string, key: string, object: AnyObject): AnyObject {
    const revision = ++this.#revision;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
    const objects = this.#objects.get(resource) ?? new Map<string, AnyObject>();
    this.#objects.set(resource, objects);
    const previous = objects.get(key);
    objects.set(key, stored);
    this.#record({ revision, resource, previous, current: stored });
    return stored;
  }

  #record(change: Change): void {
    this.writes++;
    this.#history.push(change);
    if (this.#history.length > this.#windowSize) {
      this.#compacted = this.#history.shift()?.revision ?? this.#compacted;
    }
    for (const listener of this.#listeners) listener(change);
  }
}

export function keyOf({ metadata }: { metadata: { name: string; namespace?: string } }): string {
  return metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
}

export const timestamp = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

export const notFound = (resource: string, name: string): ApiFailure =>
  new ApiFailure(404, 'NotFound', `${resource} "${name}" not found`);
