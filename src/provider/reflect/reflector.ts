import { ANNOTATION_SOURCE, LABEL_MANAGED_BY } from '../../api/names.ts';
import { type ResourceType, secrets } from '../../api/resources.ts';
import type { DraftMeta, KubeObject, Pod } from '../../api/wire.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { hasCode, ignoring } from '../../lib/errors.ts';
import { type ReferenceKind, refersTo, remoteReferenceName } from '../forge/references.ts';
import { referenceKey } from '../home-pods.ts';
import type { CommonParts } from '../namespaces.ts';
import { nameTaken, type Refusal, refusalOf } from '../pods/refusal.ts';
import type { Tenant } from '../tenants.ts';
import { CopyUse, REFLECTED_KINDS, sourceVersion, withoutDropped } from './copies.ts';
import type { News } from './mirrored-kind.ts';
import { REFUSED_RETRY_MS, RELIST_WAIT_MS, RemoteCopies } from './remote-copies.ts';
import { ignoredWord, type KindRule, ruleFor } from './rules.ts';
import {
  isWanted,
  mayBeTied,
  mayTravelFor,
  refusedToPod,
  RESOURCES,
  staysHome,
  type StaysHome,
} from './travel.ts';

interface ReflectorOptions extends CommonParts {
  /** Name under which copies are known as ours: that of the virtual node, or of the peering that several belong to. */
  owner: string;
  /** Other virtual nodes use these copies, too. */
  isShared: boolean;
  /** Whether something else that travels names the object, such as an Ingress its certificate. */
  isNamed: (kind: ReferenceKind, homeNamespace: string, name: string) => boolean;
  /** Brings pods that wait for the object back into the queue. */
  wake: (podKey: string) => void;
}

/** `kind/homeNamespace/name`, the name as at home. */
type ReflectionKey = string;

/**
 * A copy that no pod refers to any more is kept this long: a rolling update, or a home cache that is wrong for a
 * moment, must not take a Secret from under a running pod.
 */
export const KEEP_UNREFERENCED_MS = 60_000;

/** Whether a referenced object is over there; a refusal says why it cannot be. */
type CopyState = 'ready' | 'pending' | 'missing' | Refusal | StaysHome;

/** A refused object for which no pod waits is tried this often. */
const IDLE_RETRY_MS = 5 * 60_000;

/** One ConfigMap or Secret, as the caches have it. */
interface Subject {
  key: ReflectionKey;
  kind: ReferenceKind;
  /** At home. */
  name: string;
  tenant: Tenant;
  source: KubeObject | undefined;
  copy: KubeObject | undefined;
  /** Whether pods, or something else that travels, name it. */
  isUsed: boolean;
}

/** One copy that is being written. */
interface CopyWork {
  key: ReflectionKey;
  kind: ReferenceKind;
  source: KubeObject['metadata'];
  copy: KubeObject | undefined;
  tenantNamespace: string;
}

interface CopyDraft {
  metadata: DraftMeta;
}

/**
 * Keeps, in each tenant namespace, a copy of exactly those ConfigMaps and Secrets that the rules of the namespace let
 * go there: by default those that pods over there refer to. Caches hold metadata only; an object's data is read at
 * the moment it is copied, and only then.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #copyUse: CopyUse;
  readonly #copies: RemoteCopies;
  /** Why a copy could not be written; deleted as soon as a write succeeds. */
  readonly #refusals = new Map<ReflectionKey, Refusal>();
  /** Types of Secrets that may be tokens, as read. */
  readonly #types = new Map<ReflectionKey, { uid: string; type: string | undefined }>();
  /** What was told last of an object whose own word is ignored. */
  readonly #ignored = new Map<ReflectionKey, string>();
  /** When a copy was first seen unreferenced, monotonic ms. */
  readonly #unreferencedSince = new Map<ReflectionKey, number>();

  constructor(options: ReflectorOptions) {
    this.#options = options;
    this.#copyUse = new CopyUse(options.foreign, options.clock);
    this.#copies = new RemoteCopies(options);
  }

  /** For this pod, which is to begin with what is at home now, as under a kubelet; the name is the object's at home. */
  state(kind: ReferenceKind, name: string, pod: Pod): CopyState {
    const { namespace = '' } = pod.metadata;
    const subject = this.#subject(referenceKey(kind, namespace, name));
    if (subject === undefined) return 'pending';
    const { source, copy, tenant, key } = subject;
    if (source === undefined) return tenant.caches[kind].home.synced ? 'missing' : 'pending';
    const why = staysHome(kind, this.#rule(kind, namespace), source);
    if (why !== undefined) return why;
    const known = this.#typeOf(key, source);
    if (known === undefined && mayBeTied(kind, source)) return 'pending';
    const refused = refusedToPod(known?.type, source, pod);
    if (refused !== undefined) return refused;
    const isReady = copy !== undefined && this.#isAsWanted(kind, copy, source);
    return isReady ? 'ready' : (this.#refusals.get(key) ?? 'pending');
  }

  /** Whether there is, or is to be, a copy. False for most objects at home, of which nothing more is read. */
  concerns(key: ReflectionKey): boolean {
    const subject = this.#subject(key);
    if (subject === undefined) return false;
    const isKnown = subject.copy !== undefined || this.#types.has(key) || this.#refusals.has(key);
    if (this.#ignored.has(key) || (subject.source && ignoredWord(subject.source)) !== undefined) return true;
    return isKnown || subject.isUsed || this.#isWanted(subject);
  }

  async reconcile(key: ReflectionKey, signal: AbortSignal): Promise<ReconcileResult> {
    const { homePods, contact } = this.#options;
    const subject = this.#subject(key);
    if (subject?.tenant.synced !== true || !homePods.synced || !contact()) return {};
    const { kind, tenant, source, copy } = subject;
    if (source === undefined) this.#types.delete(key);
    this.#tellIgnored(subject);
    if (source !== undefined && this.#isWanted(subject)) {
      const type = await this.#readType({ key, kind, source }, signal);
      if (mayTravelFor(type, source, this.#usersOf(key))) {
        this.#unreferencedSince.delete(key);
        if (copy !== undefined) this.#copies.shown(key);
        if (copy !== undefined && this.#isAsWanted(kind, copy, source)) return {};
        const { tenantNamespace } = tenant.mapping;
        return this.#copy({ key, kind, source: source.metadata, copy, tenantNamespace }, signal);
      }
    }
    this.#refusals.delete(key);
    if (copy === undefined) {
      this.#unreferencedSince.delete(key);
      return {};
    }
    return this.#unwanted({ ...subject, copy }, signal);
  }

  /** A copy that is not wanted: some go at once, others when nobody can need them any more. */
  async #unwanted(subject: Subject & { copy: KubeObject }, signal: AbortSignal): Promise<ReconcileResult> {
    const { kind, tenant, source, isUsed, copy } = subject;
    if (source === undefined) {
      const { homeNamespace } = tenant.mapping;
      const { policy } = this.#rule(kind, homeNamespace);
      const isByRule = policy === 'All' || policy === 'OptIn';
      return isUsed || (isByRule && this.#options.namespaces.isAsked(homeNamespace))
        ? this.#sourceGone(subject, signal)
        : this.#unused(subject, signal);
    }
    // The rule or the annotation says that it stays home, or it is a token that no pod may have.
    if (isUsed || staysHome(kind, this.#rule(kind, tenant.mapping.homeNamespace), source) !== undefined) {
      await this.#copies.delete(REFLECTED_KINDS[kind].type, copy, signal);
      return {};
    }
    return this.#unused(subject, signal);
  }

  #subject(key: ReflectionKey): Subject | undefined {
    const { tenants, isNamed } = this.#options;
    const [kind, homeNamespace, name] = key.split('/') as [ReferenceKind, string, string];
    const tenant = tenants.of(homeNamespace);
    if (tenant === undefined) return undefined;
    const { home, remote } = tenant.caches[kind];
    return {
      key,
      kind,
      name,
      tenant,
      source: home.get(`${homeNamespace}/${name}`),
      copy: remote.get(`${tenant.mapping.tenantNamespace}/${remoteReferenceName(kind, name)}`),
      isUsed: this.#hasUsers(key, homeNamespace) || isNamed(kind, homeNamespace, name),
    };
  }

  #hasUsers(key: ReflectionKey, homeNamespace: string): boolean {
    const { homePods, namespaces } = this.#options;
    if (namespaces.isAccepting(homeNamespace)) return homePods.hasIndexed('references', key);
    return Iterator.from(this.#usersOf(key)).some((pod) => !namespaces.needsNothing(pod));
  }

  #rule(kind: ReferenceKind, homeNamespace: string): KindRule {
    return ruleFor(this.#options.namespaces.rulesOf(homeNamespace), { group: '', resource: RESOURCES[kind] });
  }

  #isWanted({ kind, source, tenant, isUsed }: Subject): boolean {
    if (source === undefined) return false;
    const { homeNamespace } = tenant.mapping;
    // Whatever the rule, of a namespace that is being taken out only what its last pods need stays.
    if (!isUsed && !this.#options.namespaces.isAsked(homeNamespace)) return false;
    const rule = this.#rule(kind, homeNamespace);
    return isWanted(kind, rule, { source, isReferenced: isUsed });
  }

  /** Found as they are asked for: few Secrets depend on who uses them, and all pods may use one. */
  *#usersOf(key: ReflectionKey): Iterable<Pod> {
    const { homePods } = this.#options;
    for (const user of homePods.keysByIndex('references', key)) {
      const pod = homePods.get(user);
      if (pod !== undefined) yield pod;
    }
  }

  #typeOf(key: ReflectionKey, { metadata }: KubeObject): { type: string | undefined } | undefined {
    const known = this.#types.get(key);
    return known?.uid === metadata.uid ? known : undefined;
  }

  /** Reads the type of a Secret that may be a token; a Secret's type never changes. */
  async #readType(
    { key, kind, source }: Pick<Subject, 'key' | 'kind'> & { source: KubeObject },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const known = this.#typeOf(key, source);
    if (known !== undefined || !mayBeTied(kind, source)) return known?.type;
    const { name, namespace = '' } = source.metadata;
    const live = await this.#options.home
      .get(secrets, { name, namespace }, { signal })
      .catch(ignoring('NotFound'));
    if (live !== undefined) this.#learn(key, live);
    return live?.type;
  }

  #learn(key: ReflectionKey, { metadata: { uid }, type }: KubeObject & { type?: string }): void {
    this.#types.set(key, { uid, type });
    this.#wakeUsers(key);
  }

  async #unused(
    { key, kind, tenant, copy }: Subject & { copy: KubeObject },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const isEnding = !this.#options.namespaces.isAsked(tenant.mapping.homeNamespace);
    const waitMs = isEnding ? 0 : this.#keepFor(key);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const { name } = copy.metadata;
    const ruledBy = { group: '', resource: RESOURCES[kind] };
    const kept = isEnding ? await this.#options.siblings.keep(tenant.mapping, ruledBy) : undefined;
    if (kept !== undefined) return kept;
    // The caches of both clusters must agree that nobody needs it, and so must the pods of virtual nodes that share it.
    const isUsed =
      Iterator.from(tenant.pods.list()).some((pod) => refersTo(pod, kind, name)) ||
      (this.#options.isShared && (await this.#copyUse.uses(tenant.mapping.tenantNamespace, kind, name)));
    if (isUsed) return { requeueAfterMs: isEnding ? RELIST_WAIT_MS : KEEP_UNREFERENCED_MS };
    await this.#copies.delete(REFLECTED_KINDS[kind].type, copy, signal);
    return {};
  }

  #isAsWanted(kind: ReferenceKind, { metadata }: KubeObject, source: KubeObject): boolean {
    const { drop } = this.#rule(kind, source.metadata.namespace ?? '');
    return (
      metadata.annotations?.[ANNOTATION_SOURCE] === sourceVersion(source.metadata, drop) &&
      metadata.labels?.[LABEL_MANAGED_BY] === this.#options.owner
    );
  }

  /** Deleted at home while pods refer to it: the copy goes, too, after a live read has shown that the cache is right. */
  async #sourceGone(
    { kind, name, tenant, copy }: Subject & { copy: KubeObject },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const ref = { namespace: tenant.mapping.homeNamespace, name };
    const { type } = REFLECTED_KINDS[kind];
    const cache = tenant.caches[kind].home;
    const wait = await this.#copies.waitForHome(type, ref, { cache, signal });
    if (wait !== undefined) return wait;
    await this.#copies.delete(type, copy, signal);
    return {};
  }

  #keepFor(key: ReflectionKey): number {
    const now = this.#options.clock.monotonic();
    const since = this.#unreferencedSince.get(key) ?? now;
    this.#unreferencedSince.set(key, since);
    return Math.max(0, KEEP_UNREFERENCED_MS - (now - since));
  }

  async #copy(work: CopyWork, signal: AbortSignal): Promise<ReconcileResult> {
    const { home, owner } = this.#options;
    const { key, kind, source, copy, tenantNamespace } = work;
    const { type, forge } = REFLECTED_KINDS[kind];
    const ref = { name: source.name, namespace: source.namespace ?? '' };
    const current = await home.get(type, ref, { signal }).catch(ignoring('NotFound'));
    if (current === undefined) return {};
    if (!this.#mayLeave(key, kind, current)) return { requeueAfterMs: RELIST_WAIT_MS };
    const { drop } = this.#rule(kind, ref.namespace);
    const draft = forge(withoutDropped(current, drop), { owner, tenantNamespace, drop });
    try {
      await this.#write(type, { draft, copy }, signal);
      this.#refusals.delete(key);
    } catch (error) {
      return this.#copyFailed(error, { ...work, draft }, signal);
    }
    return {};
  }

  async #write(
    type: ResourceType<KubeObject>,
    { draft, copy }: { draft: CopyDraft; copy: KubeObject | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    const { foreign } = this.#options;
    if (copy === undefined) {
      await foreign.create(type, draft, { metadataOnly: true, signal });
      return;
    }
    const { uid, resourceVersion } = copy.metadata;
    const metadata = { ...copy.metadata, ...draft.metadata, uid, resourceVersion };
    await foreign.replace(type, { ...draft, metadata }, { metadataOnly: true, signal });
  }

  /** The caches may lag behind what was read, and a token may not look like one by its metadata. */
  #mayLeave(key: ReflectionKey, kind: ReferenceKind, current: KubeObject & { type?: string }): boolean {
    if (staysHome(kind, this.#rule(kind, current.metadata.namespace ?? ''), current) !== undefined)
      return false;
    if (kind !== 'Secret' || mayTravelFor(current.type, current, this.#usersOf(key))) return true;
    this.#learn(key, current);
    return false;
  }

  async #copyFailed(
    error: unknown,
    work: CopyWork & { draft: CopyDraft },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { key, kind, copy, source, tenantNamespace } = work;
    const { type } = REFLECTED_KINDS[kind];
    const isTaken = hasCode(error, 'AlreadyExists');
    if (hasCode(error, 'Invalid') && copy !== undefined && (await this.#cannotChange(copy, work, signal))) {
      // A new object takes its place, as at home.
      await this.#copies.delete(type, copy, signal);
      return { requeueAfterMs: RELIST_WAIT_MS };
    }
    const ref = { namespace: tenantNamespace, name: remoteReferenceName(kind, source.name) };
    if (isTaken && (await this.#copies.isOurs(type, ref, signal))) {
      const tenant = this.#options.tenants.of(source.namespace ?? '');
      return this.#copies.awaitShown(key, tenant?.caches[kind].remote);
    }
    const refusal = isTaken ? nameTaken(`${kind.toLowerCase()} "${source.name}"`) : refusalOf(error);
    if (refusal === undefined) throw error;
    // The first time it is tried again soon: the object that has the name may be a copy that was just made.
    const isNew = !this.#refusals.has(key);
    this.#refusals.set(key, refusal);
    this.#wakeUsers(key);
    if (isNew) {
      const message = `not brought to the foreign cluster: ${refusal.message}`;
      this.#tell(kind, work.source, { ...refusal, message });
    }
    if (refusal.retryAfterMs !== undefined) return { requeueAfterMs: refusal.retryAfterMs };
    if (isNew) return { requeueAfterMs: RELIST_WAIT_MS };
    return {
      requeueAfterMs: this.#options.homePods.hasIndexed('references', key) ? REFUSED_RETRY_MS : IDLE_RETRY_MS,
    };
  }

  /** Whether the object over there is one that no update can turn into what home has now. */
  async #cannotChange(
    { metadata }: KubeObject,
    { kind, draft }: Pick<CopyWork, 'kind'> & { draft: CopyDraft },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { type } = REFLECTED_KINDS[kind];
    const reading = this.#copies.live(type, metadata, { signal });
    const live: (KubeObject & { immutable?: boolean; type?: string }) | undefined = await reading;
    return live !== undefined && (live.immutable === true || live.type !== (draft as { type?: string }).type);
  }

  /** Once for each value. */
  #tellIgnored({ key, kind, source }: Subject): void {
    const news = source && ignoredWord(source);
    if (source === undefined || news === undefined) this.#ignored.delete(key);
    else if (this.#ignored.get(key) !== news.message) {
      this.#ignored.set(key, news.message);
      this.#tell(kind, source.metadata, news);
    }
  }

  #tell(kind: ReferenceKind, { name, namespace, uid }: KubeObject['metadata'], news: News): void {
    const metadata = { name, uid, ...(namespace !== undefined && { namespace }) };
    this.#options.events.event({ apiVersion: 'v1', kind, metadata }, 'Warning', news.reason, news.message);
  }

  #wakeUsers(key: ReflectionKey): void {
    const { homePods, wake } = this.#options;
    void homePods.eachKeyInTurns(wake, homePods.keysByIndex('references', key));
  }
}
