import type { Manifest } from '../../api/manifest.ts';
import { ANNOTATION_PEER_PREFIXES } from '../../api/names.ts';
import {
  flowSchemas,
  limitRanges,
  namespaces,
  networkPolicies,
  resourceQuotas,
  type ResourceType,
  roleBindings,
  roles,
  serviceAccounts,
} from '../../api/resources.ts';
import { LABEL_PEER, LABEL_TENANCY, PEERS_NAMESPACE, TENANCY_CONTRACT } from '../../api/tenant-labels.ts';
import type { KubeObject, Namespace } from '../../api/wire.ts';
import { ANNOTATION_FENCED, ANNOTATION_KEEP_UNTIL } from '../annotations.ts';
import { type JudgedKinds, kindsReport, type KindsReport } from '../policies/kinds.ts';
import { applyManifests, typeOf } from '../../kube/apply.ts';
import type { Cache } from '../../kube/cache.ts';
import { deleteByUid, patchMetadataIfDiffers } from '../../kube/write.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { errorMessage, hasCode, throwFirst } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Subscriptions } from '../../lib/listeners.ts';
import type { HostingParts } from '../parts.ts';
import {
  type ContractTenant,
  forgeContractTenant,
  isIsolated,
  TENANT_KINDS_ROLE,
} from './contract-tenant.ts';
import { isAsManifest } from './as-manifest.ts';
import { EndingNamespaces, type Remains } from './ending-namespaces.ts';
import { OwnRangesCache } from './isolation.ts';
import { HeldRights } from './kind-grants.ts';
import { lookAtKeptMs } from './kept-namespaces.ts';
import { lookAtEndingMs } from './overdue-pods.ts';
import { QuotaRecounts, type ResourceQuota } from './quota-recounts.ts';
import { QUOTA_NAME } from './quota.ts';
import { type StopOptions, stopPods } from './stop-pods.ts';

/** The kinds of which tenants consist. Whose an object is, its labels say; nothing is remembered. */
const KINDS = [
  namespaces,
  serviceAccounts,
  resourceQuotas,
  limitRanges,
  networkPolicies,
  roles,
  roleBindings,
  flowSchemas,
];
const BY_PEER = 'peer';
const QUOTA_PATIENCE_MS = 5000;
const NAMESPACES_AT_ONCE = 8;
/** How often to look whether people have given us the rights that were missing. */
const MISSING_RIGHTS_MS = 20_000;

interface TenantsOptions extends Pick<HostingParts, 'client' | 'caches' | 'clock' | 'log'> {
  /** How long to wait for a new quota to be in force, milliseconds; 0: not at all. Default 5000. */
  quotaPatienceMs?: number;
  /** Where the network publishes the addresses of this cluster. */
  systemNamespace: string;
}

/** The tenants of all peers, made because of contracts: watches them, makes them as agreed, and ends them. */
export class Tenants {
  readonly #options: TenantsOptions;
  readonly #caches = new Map<string, Cache<KubeObject>>();
  readonly #ownRanges: OwnRangesCache;
  readonly #held: HeldRights;
  readonly #recounts: QuotaRecounts;
  readonly #endings: EndingNamespaces;
  /** By peer, as found by the last `ensure`. */
  readonly #kinds = new Map<string, KindsReport>();

  constructor(options: TenantsOptions) {
    this.#options = options;
    const { caches, clock } = options;
    this.#ownRanges = new OwnRangesCache(caches, options.systemNamespace);
    this.#held = new HeldRights(options);
    this.#recounts = new QuotaRecounts(clock);
    this.#endings = new EndingNamespaces(options);
    for (const type of KINDS as readonly ResourceType<KubeObject>[]) {
      // All namespaces, because a name may belong to somebody else.
      const list =
        type.plural === 'namespaces' ? {} : { labelSelector: `${LABEL_TENANCY}=${TENANCY_CONTRACT}` };
      const indexes = { [BY_PEER]: (object: KubeObject) => peerOf(object) ?? [] };
      this.#caches.set(
        type.plural,
        caches.of(type, { list, indexes, name: `cache of ${type.plural} of tenants` }),
      );
    }
  }

  components(): Component[] {
    return [this.#ownRanges.cache, ...this.#caches.values()];
  }

  /** Calls back with the peer whose tenant, or what its tenant depends on, has changed; the returned function ends that. */
  onChange(listener: (consumer: string) => void): () => void {
    const subscriptions = new Subscriptions();
    for (const cache of this.#caches.values()) {
      subscriptions.add(
        cache.onChange((_key, current, previous) => {
          for (const peer of new Set([current, previous].flatMap((it) => (it && peerOf(it)) ?? [])))
            listener(peer);
        }),
      );
    }
    subscriptions.add(this.#ownRanges.onChange(() => this.peers().forEach((peer) => listener(peer))));
    return () => subscriptions.end();
  }

  /** Calls back when any namespace is gone, whose name may now be free; the returned function ends that. */
  onFreed(listener: () => void): () => void {
    return this.#cache(namespaces).onChange((_key, current) => {
      if (current === undefined) listener();
    });
  }

  /** Peers of whose tenants anything is left. */
  peers(): Set<string> {
    return new Set(
      [...this.#caches.values()].flatMap((kind) => [...kind.list()].flatMap((it) => peerOf(it) ?? [])),
    );
  }

  /** Whether a namespace of that name exists and is not this peer's. */
  isTaken(name: string, consumer: string): boolean {
    const namespace = this.#cache(namespaces).get(name);
    return namespace !== undefined && !(peerOf(namespace)?.includes(consumer) ?? false);
  }

  /** All namespaces of the cluster. */
  get namespaces(): Cache<Namespace> {
    return this.#cache(namespaces);
  }

  namespacesOf(consumer: string): readonly Namespace[] {
    return this.#of(namespaces, consumer);
  }

  /** The quotas of its namespaces, with what they have counted. */
  quotasOf(consumer: string): readonly ResourceQuota[] {
    return this.#of(resourceQuotas, consumer).filter(({ metadata }) => metadata.name === QUOTA_NAME);
  }

  /**
   * Makes everything as the contract says, and writes only what differs. Returns what has to be waited for, or undefined when
   * all is in place.
   */
  async ensure(tenant: ContractTenant, signal: AbortSignal): Promise<string | undefined> {
    const { consumer, contract } = tenant;
    const agreed = new Set(contract.namespaces.map(({ tenantNamespace }) => tenantNamespace));
    for (const namespace of this.namespacesOf(consumer)) {
      if (!agreed.has(namespace.metadata.name)) {
        this.#recounts.forget(namespace.metadata.name);
        await this.#endings.end(namespace, this.#of(roleBindings, consumer), signal);
      } else if (namespace.metadata.deletionTimestamp !== undefined) {
        return `waits for namespace ${namespace.metadata.name} of an earlier contract to end`;
      } else await this.#reopen(namespace, signal);
    }
    const kinds = await this.#held.judge(tenant.policy.reflectableKinds ?? [], signal);
    const whole = { ...tenant, kinds: kinds.granted, network: this.#network(consumer) };
    await this.#apply(whole, signal);
    if (!isIsolated(tenant.policy)) await this.#openNetwork(consumer, signal);
    await this.#grantKinds(whole, kinds, signal);
    const uncounted = [...agreed].find((name) => !this.#isCounted(name));
    return uncounted && `waits for the quota of namespace ${uncounted} to be in force`;
  }

  async #apply(tenant: ContractTenant, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const { shared, tenants, account } = forgeContractTenant(tenant);
    const missing = (manifests: readonly Manifest[]): Manifest[] =>
      manifests.filter((manifest) => !this.#isAsWanted(manifest));
    await applyManifests(client, missing(shared), { signal });
    const adapt = (manifest: Manifest): Manifest =>
      this.#recounts.adapt(manifest, this.#quotaOf(manifest.metadata.namespace), tenant.kinds ?? []);
    const waiting = tenants
      .map((manifests) => missing(manifests.map(adapt)))
      .filter(({ length }) => length > 0);
    await eachAtOnce(waiting, NAMESPACES_AT_ONCE, async (manifests) =>
      applyManifests(client, manifests, { signal }),
    );
    await applyManifests(client, missing(account), { signal });
  }

  /** As TenantNetwork has written it on the peer's namespaces, where admission reads it, too. */
  #network(consumer: string): NonNullable<ContractTenant['network']> {
    const said = this.namespacesOf(consumer).map((it) => it.metadata.annotations?.[ANNOTATION_PEER_PREFIXES]);
    const prefixes = new Set(said.flatMap((text) => text?.split(',') ?? []));
    return { prefixes: [...prefixes].toSorted(), own: this.#ownRanges.current };
  }

  /** For a policy without isolation. Deletes the NetworkPolicies that were made here; those of people stay. */
  async #openNetwork(consumer: string, signal: AbortSignal): Promise<void> {
    for (const policy of this.#of(networkPolicies, consumer)) {
      await this.#delete(networkPolicies, policy, signal);
    }
  }

  /** As found by the last `ensure`. */
  kinds(consumer: string): KindsReport | undefined {
    return this.#kinds.get(consumer);
  }

  /** After how many milliseconds to look again although nothing here has changed. */
  lookAgainMs(consumer: string): number {
    const all = this.namespacesOf(consumer);
    const countedMs = this.#recounts.waitMs(all.map(({ metadata }) => metadata.name));
    const isMissing = this.#kinds.get(consumer)?.state === 'RightsMissing';
    return Math.min(
      countedMs,
      lookAtEndingMs(all),
      lookAtKeptMs(all),
      isMissing ? MISSING_RIGHTS_MS : Infinity,
    );
  }

  /** Gives rights to further kinds. Where they cannot be given, the rest of the tenant works all the same. */
  async #grantKinds(tenant: ContractTenant, judged: JudgedKinds, signal: AbortSignal): Promise<void> {
    const { consumer, policy } = tenant;
    const { kinds } = forgeContractTenant(tenant);
    if (kinds.length === 0) await this.#takeKinds(consumer, signal);
    const problem = await applyManifests(
      this.#options.client,
      kinds.filter((manifest) => !this.#isAsWanted(manifest)),
      { signal },
    ).then(
      () => undefined,
      (error: unknown) => {
        if (hasCode(error, 'Forbidden', 'Invalid')) return errorMessage(error);
        throw error;
      },
    );
    const quotas = this.namespacesOf(consumer).map(({ metadata }) => this.#quotaOf(metadata.name));
    const report = kindsReport(judged, problem, QuotaRecounts.uncounted(quotas, judged.granted));
    if ((policy.reflectableKinds ?? []).length === 0) this.#kinds.delete(consumer);
    else this.#kinds.set(consumer, report);
  }

  /** Deletes the binding first: the Role alone gives nobody anything. */
  async #takeKinds(consumer: string, signal: AbortSignal): Promise<void> {
    for (const type of [roleBindings, roles] as const) {
      for (const object of this.#of<KubeObject>(type, consumer)) {
        if (object.metadata.name === TENANT_KINDS_ROLE) await this.#delete(type, object, signal);
      }
    }
  }

  /**
   * A quota refuses every pod until the controller manager has counted what is there, a moment after the quota was made. A peer
   * that came sooner would be refused. The wait is short, because that controller may be out of order.
   */
  #isCounted(namespace: string): boolean {
    const { clock, quotaPatienceMs = QUOTA_PATIENCE_MS } = this.#options;
    if (quotaPatienceMs === 0) return true;
    const quota = this.#quotaOf(namespace);
    if (quota === undefined) return false;
    const { hard = {} } = quota.status ?? {};
    const ageMs = clock.now() - Date.parse(quota.metadata.creationTimestamp);
    return ageMs > quotaPatienceMs || Object.keys(quota.spec?.hard ?? {}).every((key) => key in hard);
  }

  #quotaOf(namespace = ''): ResourceQuota | undefined {
    return this.#cache(resourceQuotas).get(`${namespace}/${QUOTA_NAME}`);
  }

  /**
   * Ends all that was made for a peer: its account first, because with it every token ends; then its rights, so that a cached
   * authentication is of no use; then its namespaces, as their annotations say. A refusal keeps nothing else from its end. That of
   * a namespace is shown by what remains; any other is thrown when all else is done.
   */
  async end(consumer: string, signal: AbortSignal): Promise<Remains> {
    const failures: unknown[] = [];
    const note = (error: unknown): unknown => failures.push(error);
    this.#kinds.delete(consumer);
    await this.#revoke(consumer, signal).catch(note);
    const all = this.namespacesOf(consumer);
    for (const { metadata } of all) this.#recounts.forget(metadata.name);
    const remains = await this.#endings.endAll(all, this.#of(roleBindings, consumer), signal);
    await this.#deleteAll(flowSchemas, this.#of(flowSchemas, consumer), signal).catch(note);
    throwFirst(failures);
    return remains;
  }

  /**
   * Stops what runs for a peer here, and takes nothing from it, until `ensure`: its account goes, so that nothing that it has sent
   * before can come true later. Returns how many pods are left. A refusal keeps nothing else from being stopped, since it may run
   * on the device, too; the first one is thrown at the end.
   */
  async close(consumer: string, how: StopOptions, signal: AbortSignal): Promise<number> {
    const failures: unknown[] = [];
    const note = (error: unknown): unknown => failures.push(error);
    const all = this.namespacesOf(consumer);
    const { client } = this.#options;
    const annotations = { [ANNOTATION_FENCED]: 'true' };
    // The mark first: no pod is made in a marked namespace, by whomever.
    await eachAtOnce(all, NAMESPACES_AT_ONCE, async (namespace) =>
      patchMetadataIfDiffers(client, namespaces, namespace, { annotations, signal }),
    ).catch(note);
    await this.#revoke(consumer, signal).catch(note);
    const stopping = eachAtOnce(all, NAMESPACES_AT_ONCE, async ({ metadata }) =>
      stopPods(client, metadata.name, how, signal),
    );
    await stopping.catch(note);
    throwFirst(failures);
    return (await stopping).reduce((sum, left) => sum + left, 0);
  }

  /** Takes account and rights, until `ensure`. Its pods and all else stay. */
  async suspend(consumer: string, signal: AbortSignal): Promise<void> {
    await this.#revoke(consumer, signal);
  }

  async #revoke(consumer: string, signal: AbortSignal): Promise<void> {
    const failures: unknown[] = [];
    const note = (error: unknown): unknown => failures.push(error);
    const isAccount = ({ metadata }: KubeObject): boolean => metadata.namespace === PEERS_NAMESPACE;
    const accounts = this.#of(serviceAccounts, consumer).filter(isAccount);
    await this.#deleteAll(serviceAccounts, accounts, signal).catch(note);
    await this.#deleteAll(roleBindings, this.#of(roleBindings, consumer), signal).catch(note);
    throwFirst(failures);
  }

  /** It is neither kept for the end of a contract nor closed any more. */
  async #reopen(namespace: Namespace, signal: AbortSignal): Promise<void> {
    this.#endings.forget(namespace);
    const marks = [ANNOTATION_KEEP_UNTIL, ANNOTATION_FENCED].filter(
      (key) => namespace.metadata.annotations?.[key] !== undefined,
    );
    if (marks.length === 0) return;
    const annotations = Object.fromEntries(marks.map((key) => [key, null]));
    await patchMetadataIfDiffers(this.#options.client, namespaces, namespace, { annotations, signal });
  }

  async #deleteAll(
    type: ResourceType<KubeObject>,
    objects: readonly KubeObject[],
    signal: AbortSignal,
  ): Promise<void> {
    await eachAtOnce(objects, NAMESPACES_AT_ONCE, async (object) => this.#delete(type, object, signal));
  }

  async #delete(type: ResourceType<KubeObject>, object: KubeObject, signal: AbortSignal): Promise<void> {
    if (object.metadata.deletionTimestamp !== undefined) return;
    await deleteByUid(this.#options.client, type, object, { signal });
  }

  #isAsWanted(manifest: Manifest): boolean {
    const { name = '', namespace } = manifest.metadata;
    const key = namespace === undefined ? name : `${namespace}/${name}`;
    const actual = this.#caches.get(typeOf(manifest).plural)?.get(key);
    return actual !== undefined && isAsManifest(actual, manifest);
  }

  #of<T extends KubeObject>(type: ResourceType<T>, consumer: string): readonly T[] {
    return this.#cache(type).byIndex(BY_PEER, consumer);
  }

  #cache<T extends KubeObject>(type: ResourceType<T>): Cache<T> {
    return this.#caches.get(type.plural) as unknown as Cache<T>;
  }
}

/** The peer whose it is, if it was made because of a contract. */
function peerOf({ metadata: { labels = {} } }: KubeObject): string[] | undefined {
  const peer = labels[LABEL_PEER];
  return peer !== undefined && labels[LABEL_TENANCY] === TENANCY_CONTRACT ? [peer] : undefined;
}
