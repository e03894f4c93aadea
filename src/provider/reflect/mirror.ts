import type { ResourceType } from '../../api/resources.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode } from '../../lib/errors.ts';
import type { CommonParts } from '../namespaces.ts';
import type { NetworkView } from '../network-view.ts';
import { nameTaken, refusalOf } from '../pods/refusal.ts';
import type { Tenant } from '../tenants.ts';
import { withoutPaths } from './field-paths.ts';
import { ingressKind } from './ingresses.ts';
import { asksForReplacement, KeptCopies, keptNews } from './kept-copies.ts';
import type { OpenKind } from './mirror-sides.ts';
import type { HomePolicyWorld } from './policy-world.ts';
import type { PolicyContext } from './policy-rules.ts';
import type { MirrorTroubles } from './mirror-troubles.ts';
import type { Forged, MirrorContext, MirroredKind, MirroredKindName, News, Wanted } from './mirrored-kind.ts';
import type { RuledKind } from './mirrored-kinds.ts';
import { REFUSED_RETRY_MS, RELIST_WAIT_MS, RemoteCopies } from './remote-copies.ts';
import { ignoredWord, isSelected, REFLECT_IGNORED } from './rules.ts';
import { hasSameContent, SettledCopies } from './settled-copies.ts';

interface MirrorOptions extends CommonParts {
  network: NetworkView;
  dns: () => PolicyContext['dns'];
  isOther: PolicyContext['isOther'];
  /** What people are told of an object is another. */
  onTold: () => void;
  world: Pick<HomePolicyWorld, 'hasNodeAt' | 'isKnown' | 'namespaces' | 'podsIn'>;
  /** Name under which copies are known as ours; see ReflectorOptions. */
  owner: string;
  /** Its name. */
  virtualNode: string;
  /** See VirtualNodeSpec. */
  ingressClasses: () => Readonly<Record<string, string>>;
  troubles: Pick<MirrorTroubles, 'look'>;
}

/** `kind/homeNamespace/name`, the name as at home. */
type MirrorKey = string;

export const mirrorKey = (kind: MirroredKindName, homeNamespace: string, name: string): MirrorKey =>
  `${kind}/${homeNamespace}/${name}`;

/** `news`: what is to be told, beside what could not be brought. */
type Outcome = ReconcileResult & { news?: News };

interface Work extends OpenKind {
  key: MirrorKey;
  kind: MirroredKind;
  tenant: Tenant;
  /** Whether any object of the kind is to be over there. */
  isWanted: boolean;
  /** Of the copy. */
  remoteName: string;
  source: KubeObject | undefined;
  copy: KubeObject | undefined;
}

/**
 * Keeps in each tenant namespace copies of the objects that the rules select, in the form that MirroredKind gives them, and
 * removes a copy when home no longer has the object. One write for each object that differs. An object of somebody else that
 * has the name is left alone.
 */
export class Mirror {
  readonly #options: MirrorOptions;
  readonly #settled = new SettledCopies();
  readonly #kept: KeptCopies;
  /** The last news about a key, so that each event is written once. */
  readonly #told = new Map<MirrorKey, News>();
  readonly #copies: RemoteCopies;
  /** When a copy was made that the cache does not show yet, monotonic ms: until then no second one is tried. */
  readonly #madeAt = new Map<MirrorKey, number>();

  constructor(options: MirrorOptions) {
    this.#options = options;
    this.#copies = new RemoteCopies(options);
    this.#kept = new KeptCopies(options);
  }

  async reconcile(key: MirrorKey, signal: AbortSignal): Promise<ReconcileResult> {
    const work = this.#work(key);
    if (work === undefined || !this.#options.contact() || !this.#isKnown(work)) return {};
    if (work.copy !== undefined) {
      this.#copies.shown(key);
      this.#madeAt.delete(key);
    }
    const forged = this.#forge(work);
    try {
      const outcome: Outcome = await (forged?.object === undefined
        ? this.#remove(work, signal)
        : this.#putOrLess(work, forged.object, signal));
      const word = work.source && ignoredWord(work.source);
      const { news = forged?.leftOut ?? word, ...result } = outcome;
      this.#tell(work, news);
      return result;
    } catch (error) {
      return this.#refused(work, error, signal);
    }
  }

  /** Whether that object of home is to be over there. */
  isSelected(kind: MirroredKindName, homeNamespace: string, name: string): boolean {
    const tenant = this.#options.tenants.of(homeNamespace);
    return tenant !== undefined && this.#context(tenant).isSelected(kind, name);
  }

  /** What people were told last of an object: why it is not over there, or what is left out. */
  told(kind: MirroredKindName, homeNamespace: string, name: string): string | undefined {
    const news = this.#told.get(mirrorKey(kind, homeNamespace, name));
    // What an object says of itself in vain closes nothing, and keeps nothing home.
    if (news === undefined || news.reason === REFLECT_IGNORED) return undefined;
    return `${news.reason}: ${news.message}`;
  }

  /** The same, all that there is to say. */
  causes(kind: MirroredKindName, homeNamespace: string, name: string): readonly string[] {
    const said = this.told(kind, homeNamespace, name);
    const { causes } = this.#told.get(mirrorKey(kind, homeNamespace, name)) ?? {};
    return causes ?? (said === undefined ? [] : [said]);
  }

  /** Whether an Ingress that travels names the Secret: then its certificate has to travel, too. */
  namesSecret(homeNamespace: string, secret: string): boolean {
    const tenant = this.#options.tenants.of(homeNamespace);
    const open = tenant?.mirror.of(ingressKind.kind);
    if (tenant === undefined || open === undefined) return false;
    return tenant.mirror.ingressesWith(secret).some((ingress) => {
      const work = this.#work(mirrorKey(ingressKind.kind, homeNamespace, ingress.metadata.name));
      return work !== undefined && this.#forge(work)?.object !== undefined;
    });
  }

  #work(key: MirrorKey): Work | undefined {
    const [name, homeNamespace, objectName] = key.split('/') as [MirroredKindName, string, string];
    const tenant = this.#options.tenants.of(homeNamespace);
    const open = tenant?.mirror.of(name);
    if (tenant === undefined || open === undefined) return undefined;
    const { kind } = open.ruled;
    const remoteName = kind.remoteName(objectName);
    return {
      ...open,
      key,
      kind,
      tenant,
      isWanted: this.#isWanted(tenant, open),
      remoteName,
      source: open.home.get(`${homeNamespace}/${objectName}`),
      copy: open.remote.get(`${tenant.mapping.tenantNamespace}/${remoteName}`),
    };
  }

  #isWanted({ mapping }: Tenant, { ruled }: OpenKind): boolean {
    const { network, namespaces } = this.#options;
    const { rule, kind } = ruled;
    const { homeNamespace } = mapping;
    const isOffloaded = namespaces.isAsked(homeNamespace) || namespaces.hasPods(homeNamespace);
    if (rule.policy === 'None' || !isOffloaded) return false;
    return !kind.needsNetwork || network.state.kind !== 'Off';
  }

  /** Both caches must be complete before absence means anything; where nothing is wanted, the one over there is enough. */
  #isKnown({ home, remote, isWanted, kind, tenant, source }: Work): boolean {
    if (isWanted && source !== undefined && !remote.synced) {
      this.#options.troubles.look(tenant, kind.kind);
    }
    if (!remote.synced) return false;
    if (!isWanted) return true;
    const followed = kind.follows === undefined ? undefined : tenant.mirror.of(kind.follows);
    if (source !== undefined && kind.needsPods?.(source) === true && !this.#options.world.isKnown())
      return false;
    return home.synced && (followed === undefined || (followed.home.synced && followed.remote.synced));
  }

  #forge({ kind, ruled, tenant, source, copy, isWanted }: Work): Forged<KubeObject> | undefined {
    if (source === undefined || !isWanted) return undefined;
    const context = this.#context(tenant);
    if (!isTravelling(ruled, source, context)) return undefined;
    return kind.forge(withoutPaths(source, ruled.drop), context, copy);
  }

  #context(tenant: Tenant): MirrorContext {
    const { owner, virtualNode, network, dns, isOther, world, ingressClasses } = this.#options;
    const { homeNamespace, tenantNamespace } = tenant.mapping;
    const isSelected: MirrorContext['isSelected'] = (name, objectName) => {
      const open = tenant.mirror.of(name);
      const object = open?.home.get(`${homeNamespace}/${objectName}`);
      if (open === undefined || object === undefined || !this.#isWanted(tenant, open)) return false;
      return isTravelling(open.ruled, object, context);
    };
    const context: MirrorContext = {
      owner,
      virtualNode,
      homeNamespace,
      tenantNamespace,
      network,
      dns: dns(),
      isOther,
      world,
      ingressClasses: ingressClasses(),
      isSelected,
      isReflected: (name, objectName) => {
        if (!isSelected(name, objectName)) return false;
        const open = tenant.mirror.of(name);
        const remoteName = open?.ruled.kind.remoteName(objectName);
        return open?.remote.get(`${tenantNamespace}/${remoteName}`) !== undefined;
      },
    };
    return context;
  }

  /** What is refused as a whole may be accepted in part; the refusal is told nevertheless. */
  async #putOrLess(work: Work, wanted: Wanted<KubeObject>, signal: AbortSignal): Promise<Outcome> {
    try {
      return await this.#put(work, wanted, signal);
    } catch (error) {
      const refusal = refusalOf(error);
      const isForGood = refusal !== undefined && refusal.retryAfterMs === undefined;
      const lesser = isForGood ? work.kind.lesser?.(wanted) : undefined;
      if (lesser !== undefined) await this.#put(work, lesser, signal);
      else if (hasCode(error, 'Invalid')) return this.#replaceOrKeep(work, wanted, error, signal);
      throw error;
    }
  }

  /** An update was refused for good, for what the copy was before or for what it is to be. */
  async #replaceOrKeep(
    work: Work,
    wanted: Wanted<KubeObject>,
    error: unknown,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { key, kind, copy } = work;
    const refusal = refusalOf(error);
    if (copy === undefined || refusal === undefined) throw error;
    const couldBeMade = await this.#couldBeMade(kind, wanted, signal);
    const mayReplace = isReplaceable(work);
    if (couldBeMade && mayReplace) {
      await this.#delete(work, copy, signal);
      return {};
    }
    const merged = kind.merge(copy, wanted);
    return this.#kept.keep(key, { merged, copy, mayReplace }, couldBeMade ? keptNews(error) : refusal);
  }

  /** Whether it would be accepted were its name free. The API server looks at the name last. */
  async #couldBeMade(kind: MirroredKind, wanted: Wanted<KubeObject>, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#options.foreign.create(copyTypeOf(kind), wanted, { dryRun: true, signal });
      return true;
    } catch (error) {
      if (hasCode(error, 'AlreadyExists')) return true;
      const refusal = refusalOf(error);
      if (refusal === undefined || refusal.retryAfterMs !== undefined) throw error;
      return false;
    }
  }

  async #put(work: Work, wanted: Wanted<KubeObject>, signal: AbortSignal): Promise<Outcome> {
    const { foreign } = this.#options;
    const { key, kind, copy } = work;
    if (copy === undefined) return this.#make(work, wanted, signal);
    // It is being deleted; when it is gone, another one is made.
    if (copy.metadata.deletionTimestamp !== undefined) return {};
    if (kind.mustReplace(copy, wanted)) {
      await this.#delete(work, copy, signal);
      return {};
    }
    const merged = kind.merge(copy, wanted);
    if (hasSameContent(merged, copy) || this.#settled.isAsWritten(key, merged, copy)) return {};
    const kept = this.#kept.outcome(key, { merged, copy, mayReplace: isReplaceable(work) });
    if (kept !== undefined) return kept;
    const written = await foreign.replace(copyTypeOf(kind), merged, { signal });
    this.#settled.wrote(key, kind, { wanted, copy: written });
    return {};
  }

  async #make(
    { key, kind, tenant, remoteName }: Work,
    wanted: Wanted<KubeObject>,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { foreign, namespaces, clock } = this.#options;
    // Only recorded kinds are found again if their rule goes while no agent runs. The change of the status wakes the key.
    if (!namespaces.recordsKind(tenant.mapping.homeNamespace, kind.ruledBy)) return {};
    const sinceMs = clock.monotonic() - (this.#madeAt.get(key) ?? -Infinity);
    if (sinceMs < RELIST_WAIT_MS) return { requeueAfterMs: RELIST_WAIT_MS - sinceMs };
    // The rule may go before the cache shows it.
    tenant.mirror.awaits(kind.kind, remoteName);
    const made = await foreign.create(copyTypeOf(kind), wanted, { signal });
    this.#madeAt.set(key, clock.monotonic());
    this.#settled.wrote(key, kind, { wanted, copy: made });
    return {};
  }

  async #refused(work: Work, error: unknown, signal: AbortSignal): Promise<ReconcileResult> {
    const { kind, tenant, remoteName, copy, source } = work;
    if (source === undefined) throw error;
    // Gone in the meantime: the watch shows that, and then it is made again.
    if (copy !== undefined && hasCode(error, 'NotFound')) return { requeueAfterMs: RELIST_WAIT_MS };
    if (hasCode(error, 'AlreadyExists')) {
      const wait = await this.#unseen(work, signal);
      if (wait !== undefined) return wait;
      this.#tell(work, nameTaken(`${source.kind ?? kind.type.kind} "${remoteName}"`));
      return { requeueAfterMs: REFUSED_RETRY_MS };
    }
    const refusal = refusalOf(error);
    if (refusal === undefined) throw error;
    if (copy === undefined) tenant.mirror.absent(kind.kind, remoteName);
    this.#tell(work, refusal);
    return { requeueAfterMs: refusal.retryAfterMs ?? REFUSED_RETRY_MS };
  }

  /** Home no longer has the object, or it may not travel. A live read first checks that it is really absent. */
  async #remove(work: Work, signal: AbortSignal): Promise<ReconcileResult> {
    const { kind, tenant, source, copy, key, remoteName, home, isWanted } = work;
    this.#settled.forget(key);
    this.#kept.forget(key);
    if (copy === undefined) {
      const mayBeThere = tenant.mirror.isAwaited(kind.kind, remoteName);
      const wait = mayBeThere ? await this.#unseen(work, signal) : undefined;
      if (wait === undefined) this.#madeAt.delete(key);
      return wait ?? {};
    }
    if (source === undefined && isWanted) {
      const { homeNamespace } = tenant.mapping;
      const [, , name = ''] = key.split('/');
      const ref = { namespace: homeNamespace, name };
      const wait = await this.#copies.waitForHome(kind.type, ref, { cache: home, signal });
      if (wait !== undefined) return wait;
    }
    const { namespaces, siblings } = this.#options;
    const isLeft = !isWanted && !namespaces.isAsked(tenant.mapping.homeNamespace);
    const kept = isLeft ? await siblings.keep(tenant.mapping, kind.ruledBy) : undefined;
    if (kept !== undefined) return kept;
    await this.#delete(work, copy, signal);
    return {};
  }

  /** Asked past the cache: how long to wait for the cache to show our copy. Undefined: there is none. */
  async #unseen(
    { key, kind, tenant, remote, remoteName }: Work,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const ref = { namespace: tenant.mapping.tenantNamespace, name: remoteName };
    if (await this.#copies.isOurs(copyTypeOf(kind), ref, signal)) return this.#copies.awaitShown(key, remote);
    tenant.mirror.absent(kind.kind, remoteName);
    return undefined;
  }

  async #delete({ kind }: Work, copy: KubeObject, signal: AbortSignal): Promise<void> {
    if (copy.metadata.deletionTimestamp === undefined)
      await this.#copies.delete(copyTypeOf(kind), copy, signal);
  }

  #tell({ key, source, kind }: Work, news: News | undefined): void {
    const before = this.#told.get(key);
    if (deepEqual(before, news)) return;
    this.#options.onTold();
    if (news === undefined || source === undefined) this.#told.delete(key);
    else {
      this.#told.set(key, news);
      if (before?.reason === news.reason && before.message === news.message) return;
      const { group, version } = kind.type;
      const apiVersion = group === '' ? version : `${group}/${version}`;
      const subject = { apiVersion, kind: source.kind ?? kind.type.kind, metadata: source.metadata };
      this.#options.events.event(subject, 'Warning', news.reason, news.message);
    }
  }
}

/** Whether the rule and the kind let the object travel; for a kind that follows another, only `select` decides. */
const isTravelling = ({ kind, rule }: RuledKind, source: KubeObject, context: MirrorContext): boolean =>
  (kind.follows !== undefined || isSelected(rule, source)) && kind.select(source, context);

const copyTypeOf = ({ type, copyType = type }: MirroredKind): ResourceType<KubeObject> => copyType;

const isReplaceable = ({ kind, source }: Work): boolean =>
  kind.mayReplace === true || (source !== undefined && asksForReplacement(source));
