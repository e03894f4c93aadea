import { ANNOTATION_SOURCE } from '../../api/names.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../lib/clock.ts';
import { hasCode } from '../../lib/errors.ts';
import type { ReferenceKind } from '../forge/references.ts';
import { remoteReferenceName, ROOT_CA_CONFIG_MAP } from '../forge/references.ts';
import { referenceKey } from '../home-pods.ts';
import type { Tenants } from '../tenants.ts';
import { REFLECTED_KINDS, sourceVersion } from './descriptor.ts';

export interface ReflectorOptions {
  home: KubeClient;
  foreign: KubeClient;
  homePods: Informer<Pod>;
  tenants: Tenants;
  virtualNode: string;
  contact: () => boolean;
  clock: Clock;
  /** Pods that wait for the object are to be looked at again. */
  wake: (podKeys: string[]) => void;
}

/** `kind/homeNamespace/name`, the name as at home. */
export type ReflectionKey = string;

/**
 * A copy that no pod refers to any more is kept this long: a rolling update, or a home cache that is wrong for a
 * moment, must not take a Secret from under a running pod.
 */
export const KEEP_UNREFERENCED_MS = 60_000;

/** Where a referenced object stands over there. */
export type CopyState = 'ready' | 'pending' | 'missing' | 'taken';

/**
 * Keeps, in each tenant namespace, a copy of exactly those ConfigMaps and Secrets that pods over there refer to.
 * Caches hold metadata only; an object's data is read at the moment it is copied.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  /** Names held over there by objects of others; forgotten as soon as a write succeeds. */
  readonly #taken = new Set<ReflectionKey>();
  /** When a copy was first seen unreferenced, monotonic ms. */
  readonly #unreferencedSince = new Map<ReflectionKey, number>();

  constructor(options: ReflectorOptions) {
    this.#options = options;
  }

  state(kind: ReferenceKind, homeNamespace: string, name: string): CopyState {
    const tenant = this.#options.tenants.of(homeNamespace);
    if (tenant === undefined) return 'pending';
    const { home, remote } = tenant.caches[kind];
    if (home.get(`${homeNamespace}/${name}`) === undefined) return home.synced ? 'missing' : 'pending';
    const copy = remote.get(`${tenant.mapping.tenantNamespace}/${remoteReferenceName(kind, name)}`);
    if (copy !== undefined) return 'ready';
    return this.#taken.has(referenceKey(kind, homeNamespace, name)) ? 'taken' : 'pending';
  }

  async reconcile(key: ReflectionKey, signal: AbortSignal): Promise<ReconcileResult> {
    const { homePods, tenants, contact } = this.#options;
    const [kind, homeNamespace, name] = key.split('/') as [ReferenceKind, string, string];
    const tenant = tenants.of(homeNamespace);
    if (tenant === undefined || !tenant.synced || !homePods.synced || !contact()) return {};
    const { tenantNamespace } = tenant.mapping;
    const source = tenant.caches[kind].home.get(`${homeNamespace}/${name}`);
    const copy = tenant.caches[kind].remote.get(`${tenantNamespace}/${remoteReferenceName(kind, name)}`);
    const users = homePods.byIndex('references', key);
    if (source !== undefined && users.length > 0) {
      this.#unreferencedSince.delete(key);
      if (copy?.metadata.annotations?.[ANNOTATION_SOURCE] === sourceVersion(source.metadata)) return {};
      return this.#copy({ key, kind, source: source.metadata, copy, tenantNamespace }, signal);
    }
    if (copy === undefined) {
      this.#unreferencedSince.delete(key);
      return {};
    }
    const waitMs = source === undefined ? 0 : this.#keepFor(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await this.#delete(kind, copy, signal);
    return {};
  }

  #keepFor(key: ReflectionKey): number {
    const now = this.#options.clock.monotonic();
    const since = this.#unreferencedSince.get(key) ?? now;
    this.#unreferencedSince.set(key, since);
    return Math.max(0, KEEP_UNREFERENCED_MS - (now - since));
  }

  async #copy(
    work: {
      key: ReflectionKey;
      kind: ReferenceKind;
      source: KubeObject['metadata'];
      copy: KubeObject | undefined;
      tenantNamespace: string;
    },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { home, foreign, virtualNode } = this.#options;
    const { key, kind, source, copy, tenantNamespace } = work;
    const { type, forge } = REFLECTED_KINDS[kind];
    const ref = { name: source.name, namespace: source.namespace ?? '' };
    const current = await orNotFound(home.get(type, ref, { signal }));
    if (current === undefined) return {};
    const draft = forge(current, { virtualNode, tenantNamespace });
    try {
      if (copy === undefined) await foreign.create(type, draft, { signal });
      else {
        const { uid, resourceVersion } = copy.metadata;
        const metadata = { ...copy.metadata, ...draft.metadata, uid, resourceVersion };
        await foreign.replace(type, { ...draft, metadata }, { signal });
      }
      this.#taken.delete(key);
    } catch (error) {
      return this.#copyFailed(error, work, signal);
    }
    return {};
  }

  async #copyFailed(
    error: unknown,
    work: { key: ReflectionKey; kind: ReferenceKind; copy: KubeObject | undefined },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { key, kind, copy } = work;
    if (hasCode(error, 'AlreadyExists')) {
      // Ours would be in the cache; a moment later it may be (a copy just made), else it belongs to others.
      const isNew = !this.#taken.has(key);
      this.#taken.add(key);
      this.#wakeUsers(key);
      return { requeueAfterMs: isNew ? 1_000 : 30_000 };
    }
    if (hasCode(error, 'Invalid') && copy !== undefined) {
      // Immutable, or of another type: a new object takes its place, as at home.
      await this.#delete(kind, copy, signal);
      return { requeueAfterMs: 1_000 };
    }
    throw error;
  }

  async #delete(kind: ReferenceKind, copy: KubeObject, signal: AbortSignal): Promise<void> {
    const { name, namespace = '', uid } = copy.metadata;
    try {
      await this.#options.foreign.delete(REFLECTED_KINDS[kind].type, { name, namespace }, { uid, signal });
    } catch (error) {
      if (!hasCode(error, 'NotFound', 'Conflict')) throw error;
    }
  }

  #wakeUsers(key: ReflectionKey): void {
    const users = this.#options.homePods.byIndex('references', key);
    this.#options.wake(users.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
  }
}

/** The name at home of a copy's name over there. */
export function homeReferenceName(kind: ReferenceKind, remoteName: string): string {
  return kind === 'ConfigMap' && remoteName === remoteReferenceName(kind, ROOT_CA_CONFIG_MAP)
    ? ROOT_CA_CONFIG_MAP
    : remoteName;
}

async function orNotFound<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (hasCode(error, 'NotFound')) return undefined;
    throw error;
  }
}
