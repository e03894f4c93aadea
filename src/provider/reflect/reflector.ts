import { ANNOTATION_SOURCE, LABEL_MANAGED_BY, OFFLOADED_REASONS } from '../../api/names.ts';
import type { DraftMeta, KubeObject, Pod } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Clock } from '../../lib/clock.ts';
import { hasCode } from '../../lib/errors.ts';
import type { ReferenceKind } from '../forge/references.ts';
import { podReferences, remoteReferenceName, ROOT_CA_CONFIG_MAP } from '../forge/references.ts';
import { referenceKey } from '../home-pods.ts';
import type { Refusal } from '../pods/refusal.ts';
import { refusalOf } from '../pods/refusal.ts';
import { liveOrUndefined } from '../pods/remote-pods.ts';
import type { Tenant } from '../tenant.ts';
import type { Tenants } from '../tenants.ts';
import { REFLECTED_KINDS, sourceVersion } from './descriptor.ts';
import { KinUse } from './kin.ts';

export interface ReflectorOptions {
  home: KubeClient;
  foreign: KubeClient;
  homePods: Informer<Pod>;
  tenants: Tenants;
  /** Name under which copies are known as ours: that of the virtual node, or of what several of them belong to. */
  owner: string;
  /** Other virtual nodes use these copies, too. */
  isShared: boolean;
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

/** Where a referenced object stands over there; a refusal says why it cannot get there. */
export type CopyState = 'ready' | 'pending' | 'missing' | Refusal;

/** Refused again and again, an object is tried this often. */
const REFUSED_RETRY_MS = 30_000;
/** A cache that a live read contradicted is listed again. */
const RELIST_WAIT_MS = 1_000;

/**
 * Keeps, in each tenant namespace, a copy of exactly those ConfigMaps and Secrets that pods over there refer to.
 * Caches hold metadata only; an object's data is read at the moment it is copied.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #kin: KinUse;
  /** Copies that exist, as a refusal to make them has shown, and that the cache should show soon. */
  readonly #awaiting = new Set<ReflectionKey>();
  /** Why a copy could not be written; forgotten as soon as a write succeeds. */
  readonly #refusals = new Map<ReflectionKey, Refusal>();
  /** When a copy was first seen unreferenced, monotonic ms. */
  readonly #unreferencedSince = new Map<ReflectionKey, number>();

  constructor(options: ReflectorOptions) {
    this.#options = options;
    this.#kin = new KinUse(options.foreign, options.clock);
  }

  state(kind: ReferenceKind, homeNamespace: string, name: string): CopyState {
    const tenant = this.#options.tenants.of(homeNamespace);
    if (tenant === undefined) return 'pending';
    const { home, remote } = tenant.caches[kind];
    if (home.get(`${homeNamespace}/${name}`) === undefined) return home.synced ? 'missing' : 'pending';
    const copy = remote.get(`${tenant.mapping.tenantNamespace}/${remoteReferenceName(kind, name)}`);
    if (copy !== undefined) return 'ready';
    return this.#refusals.get(referenceKey(kind, homeNamespace, name)) ?? 'pending';
  }

  async reconcile(key: ReflectionKey, signal: AbortSignal): Promise<ReconcileResult> {
    const { homePods, tenants, contact } = this.#options;
    const [kind, homeNamespace, name] = key.split('/') as [ReferenceKind, string, string];
    const tenant = tenants.of(homeNamespace);
    if (tenant === undefined || !tenant.synced || !homePods.synced || !contact()) return {};
    const { tenantNamespace } = tenant.mapping;
    const source = tenant.caches[kind].home.get(`${homeNamespace}/${name}`);
    const copy = tenant.caches[kind].remote.get(`${tenantNamespace}/${remoteReferenceName(kind, name)}`);
    const isUsed = homePods.hasIndexed('references', key);
    if (source !== undefined && isUsed) {
      this.#unreferencedSince.delete(key);
      if (copy !== undefined) this.#awaiting.delete(key);
      if (copy !== undefined && this.#isAsWanted(copy, source)) return {};
      return this.#copy({ key, kind, source: source.metadata, copy, tenantNamespace }, signal);
    }
    this.#refusals.delete(key);
    if (copy === undefined) {
      this.#unreferencedSince.delete(key);
      return {};
    }
    if (isUsed) return this.#sourceGone({ kind, name, tenant, copy }, signal);
    return this.#unused({ key, kind, tenant, copy }, signal);
  }

  async #unused(
    {
      key,
      kind,
      tenant,
      copy,
    }: { key: ReflectionKey; kind: ReferenceKind; tenant: Tenant; copy: KubeObject },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const waitMs = this.#keepFor(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const { name } = copy.metadata;
    // Two caches, of two clusters, must agree that nobody needs it; and whoever shares it.
    const isUsed =
      isUsedOverThere(tenant, kind, name) ||
      (this.#options.isShared && (await this.#kin.uses(tenant.mapping.tenantNamespace, kind, name)));
    if (isUsed) return { requeueAfterMs: KEEP_UNREFERENCED_MS };
    await this.#delete(kind, copy, signal);
    return {};
  }

  #isAsWanted({ metadata }: KubeObject, source: KubeObject): boolean {
    return (
      metadata.annotations?.[ANNOTATION_SOURCE] === sourceVersion(source.metadata) &&
      metadata.labels?.[LABEL_MANAGED_BY] === this.#options.owner
    );
  }

  /** Deleted at home while pods refer to it: the copy goes too, as at home, after a look that the cache is right. */
  async #sourceGone(
    { kind, name, tenant, copy }: { kind: ReferenceKind; name: string; tenant: Tenant; copy: KubeObject },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const ref = { namespace: tenant.mapping.homeNamespace, name };
    const { type } = REFLECTED_KINDS[kind];
    if ((await liveOrUndefined(this.#options.home.get(type, ref, { signal }))) !== undefined) {
      tenant.caches[kind].home.relist('an object exists that the cache has lost');
      return { requeueAfterMs: RELIST_WAIT_MS };
    }
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
    const { home, foreign, owner } = this.#options;
    const { key, kind, source, copy, tenantNamespace } = work;
    const { type, forge } = REFLECTED_KINDS[kind];
    const ref = { name: source.name, namespace: source.namespace ?? '' };
    const current = await liveOrUndefined(home.get(type, ref, { signal }));
    if (current === undefined) return {};
    const draft = forge(current, { owner, tenantNamespace });
    try {
      if (copy === undefined) await foreign.create(type, draft, { signal });
      else {
        const { uid, resourceVersion } = copy.metadata;
        const metadata = { ...copy.metadata, ...draft.metadata, uid, resourceVersion };
        await foreign.replace(type, { ...draft, metadata }, { signal });
      }
      this.#refusals.delete(key);
    } catch (error) {
      return this.#copyFailed(error, { ...work, draft }, signal);
    }
    return {};
  }

  async #copyFailed(
    error: unknown,
    work: {
      key: ReflectionKey;
      kind: ReferenceKind;
      source: KubeObject['metadata'];
      copy: KubeObject | undefined;
      draft: { metadata: DraftMeta };
    },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { key, kind, copy } = work;
    if (hasCode(error, 'Invalid') && copy !== undefined && (await this.#cannotChange(work, signal))) {
      // A new object takes its place, as at home.
      await this.#delete(kind, copy, signal);
      return { requeueAfterMs: RELIST_WAIT_MS };
    }
    if (hasCode(error, 'AlreadyExists') && (await this.#isOurs(work, signal))) return this.#awaited(work);
    const refusal = hasCode(error, 'AlreadyExists') ? nameTaken(kind, work.source.name) : refusalOf(error);
    if (refusal === undefined) throw error;
    // Of a name that is taken: ours would be in the cache, and a moment later it may be (a copy just made).
    const isNew = !this.#refusals.has(key);
    this.#refusals.set(key, refusal);
    this.#wakeUsers(key);
    return { requeueAfterMs: isNew ? RELIST_WAIT_MS : REFUSED_RETRY_MS };
  }

  /** Ours, made a moment ago, perhaps by another virtual node: the watch brings it, or else the cache has lost it. */
  #awaited({
    key,
    kind,
    source,
  }: {
    key: ReflectionKey;
    kind: ReferenceKind;
    source: KubeObject['metadata'];
  }): {
    requeueAfterMs: number;
  } {
    const tenant = this.#options.tenants.of(source.namespace ?? '');
    if (this.#awaiting.delete(key))
      tenant?.caches[kind].remote.relist('an object exists that the cache has lost');
    else this.#awaiting.add(key);
    return { requeueAfterMs: RELIST_WAIT_MS };
  }

  async #isOurs(
    { kind, draft }: { kind: ReferenceKind; draft: { metadata: DraftMeta } },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { name = '', namespace = '' } = draft.metadata;
    const read = this.#options.foreign.get(REFLECTED_KINDS[kind].type, { name, namespace }, { signal });
    const live = await liveOrUndefined(read);
    return live?.metadata.labels?.[LABEL_MANAGED_BY] === this.#options.owner;
  }

  /** Whether the copy over there is of a kind that no update can turn into what home has now. */
  async #cannotChange(
    { kind, copy, draft }: { kind: ReferenceKind; copy: KubeObject | undefined; draft: object },
    signal: AbortSignal,
  ): Promise<boolean> {
    if (copy === undefined) return false;
    const { name, namespace = '' } = copy.metadata;
    const read = this.#options.foreign.get(REFLECTED_KINDS[kind].type, { name, namespace }, { signal });
    const live = (await liveOrUndefined(read)) as { immutable?: boolean; type?: string } | undefined;
    return live !== undefined && (live.immutable === true || live.type !== (draft as { type?: string }).type);
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

const nameTaken = (kind: ReferenceKind, name: string): Refusal => ({
  reason: OFFLOADED_REASONS.nameTaken,
  message: `${kind.toLowerCase()} "${name}" exists in the tenant namespace and is not ours`,
});

/** A pod over there that refers to the copy, whatever home says of it. */
function isUsedOverThere(tenant: Tenant, kind: ReferenceKind, remoteName: string): boolean {
  return [...tenant.pods.list()].some((pod) =>
    podReferences(pod).some((used) => used.kind === kind && used.name === remoteName),
  );
}
