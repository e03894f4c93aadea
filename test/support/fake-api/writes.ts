import { deepEqual } from '../../../src/lib/equality.ts';
import { type AnyObject, ApiFailure, type FakeStorage, keyOf, notFound, timestamp } from './storage.ts';
import { type JsonPatchOperation, jsonPatch, mergePatch, strategicPatch } from './patch.ts';

export interface Target {
  resource: string;
  kind: string;
  apiVersion: string;
  key: string;
  subresource: string | undefined;
}

export interface DeleteBody {
  gracePeriodSeconds?: number;
  preconditions?: { uid?: string; resourceVersion?: string };
}

/** What the registry of an API server does on writes: subresources, preconditions, graceful deletion. */
export class FakeWrites {
  readonly #storage: FakeStorage;
  readonly #now: () => number;
  #names = 0;

  constructor(storage: FakeStorage, now: () => number) {
    this.#storage = storage;
    this.#now = now;
  }

  create(
    target: Target,
    namespace: string | undefined,
    body: AnyObject,
    { dryRun = false }: { dryRun?: boolean } = {},
  ): AnyObject {
    const { apiVersion, kind, resource } = target;
    const { generateName } = body.metadata as { generateName?: string };
    const name =
      body.metadata.name ?? (generateName && `${generateName}${(1e4 + this.#names++).toString(36)}`);
    if (typeof name !== 'string' || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) {
      throw new ApiFailure(422, 'Invalid', `${kind} "${name}" is invalid: metadata.name`);
    }
    if (namespace !== undefined && (body.metadata.namespace ?? namespace) !== namespace) {
      throw new ApiFailure(400, 'BadRequest', 'the namespace of the object does not match the request');
    }
    const metadata = { ...body.metadata, name, ...(namespace === undefined ? {} : { namespace }) };
    const object = { ...body, apiVersion, kind, metadata };
    // It is validated first, and that the name is taken is found last.
    return dryRun && this.#storage.get(resource, keyOf(object)) === undefined
      ? object
      : this.#storage.create(resource, object);
  }

  replace(target: Target, body: AnyObject): AnyObject {
    const current = this.#current(target);
    const { resourceVersion, uid } = body.metadata;
    if ((resourceVersion ?? '') !== '' && resourceVersion !== current.metadata.resourceVersion) {
      throw conflict(target, 'the object has been modified; please apply your changes to the latest version');
    }
    if (uid !== undefined && uid !== current.metadata.uid)
      throw conflict(target, 'UID in precondition differs');
    return this.#store(target, current, body);
  }

  patch(target: Target, type: string, body: unknown): AnyObject {
    const current = this.#storage.get(target.resource, target.key);
    if (type.startsWith('application/apply-patch') && current === undefined) {
      const [namespace] = target.key.includes('/') ? target.key.split('/') : [];
      return this.create(target, namespace, body as AnyObject);
    }
    if (current === undefined) throw notFound(target.resource, target.key);
    let next: AnyObject;
    try {
      if (type.startsWith('application/json-patch')) {
        next = jsonPatch(current, body as JsonPatchOperation[]) as AnyObject;
      } else if (type.startsWith('application/merge-patch')) {
        next = mergePatch(current, body) as AnyObject;
      } else {
        next = strategicPatch(current, body) as AnyObject;
      }
    } catch (error) {
      throw new ApiFailure(422, 'Invalid', `the patch does not apply: ${(error as Error).message}`);
    }
    return this.replace(target, next);
  }

  delete(target: Target, { gracePeriodSeconds, preconditions = {} }: DeleteBody): AnyObject {
    const current = this.#current(target);
    const { uid, resourceVersion, finalizers = [], deletionTimestamp } = current.metadata;
    if (preconditions.uid !== undefined && preconditions.uid !== uid) {
      throw conflict(target, `the UID in the precondition (${preconditions.uid}) does not match (${uid})`);
    }
    if (preconditions.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion) {
      throw conflict(target, 'the resourceVersion in the precondition does not match');
    }
    const grace = target.kind === 'Pod' ? podGrace(current, gracePeriodSeconds) : 0;
    if (grace === 0 && finalizers.length === 0) return this.#storage.remove(target.resource, target.key);
    const known = current.metadata.deletionGracePeriodSeconds ?? Infinity;
    if (deletionTimestamp !== undefined && grace >= known) return current;
    return this.#storage.update(target.resource, {
      ...current,
      metadata: {
        ...current.metadata,
        deletionTimestamp: timestamp(this.#now() + grace * 1000),
        deletionGracePeriodSeconds: grace,
        generation: (current.metadata.generation ?? 0) + 1,
      },
    });
  }

  #store(target: Target, current: AnyObject, body: AnyObject): AnyObject {
    const { apiVersion, kind, resource } = target;
    const next = target.subresource === 'status' ? statusPart(current, body) : mainPart(current, body);
    const stored = this.#storage.update(resource, { ...next, apiVersion, kind });
    const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = stored.metadata;
    // The last finalizer is gone, and there is no grace period to wait for, so the object is removed.
    if (deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && finalizers.length === 0) {
      return this.#storage.remove(resource, keyOf(stored));
    }
    return stored;
  }

  #current(target: Target): AnyObject {
    const current = this.#storage.get(target.resource, target.key);
    if (current === undefined) throw notFound(target.resource, target.key);
    return current;
  }
}

/** Status writes change nothing else. */
function statusPart(current: AnyObject, body: AnyObject): AnyObject {
  const { status } = body;
  const { annotations, labels } = body.metadata;
  const metadata = { ...current.metadata, ...(labels && { labels }), ...(annotations && { annotations }) };
  return status === undefined ? { ...current, metadata } : { ...current, metadata, status };
}

/** Kinds whose status is a subresource; other kinds (events, config maps) have none and are written as a whole. */
function mainPart(current: AnyObject, body: AnyObject): AnyObject {
  const { uid, creationTimestamp, generation = 1, deletionTimestamp } = current.metadata;
  const { deletionGracePeriodSeconds, name, namespace } = current.metadata;
  const moved = deepEqual(current.spec, body.spec) ? generation : generation + 1;
  const { status: _ignored, ...rest } = body;
  return {
    ...rest,
    ...(current.status === undefined ? {} : { status: current.status }),
    metadata: {
      ...body.metadata,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      uid,
      creationTimestamp,
      generation: moved,
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
    },
  };
}

/** Like the pod strategy of Kubernetes: unscheduled and finished pods are removed at once. */
function podGrace(pod: AnyObject, asked: number | undefined): number {
  const phase = pod.status?.['phase'];
  if (pod.spec?.['nodeName'] === undefined || phase === 'Succeeded' || phase === 'Failed') return 0;
  const own = pod.spec['terminationGracePeriodSeconds'];
  const grace = asked ?? (typeof own === 'number' ? own : 30);
  return Math.max(0, grace);
}

const conflict = ({ resource, key }: Target, why: string): ApiFailure =>
  new ApiFailure(409, 'Conflict', `Operation cannot be fulfilled on ${resource} "${key}": ${why}`);
