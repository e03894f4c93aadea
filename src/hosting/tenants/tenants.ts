import { timestamp } from '../../api/conditions.ts';
import { jsonContains } from '../../lib/equality.ts';
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
import { ANNOTATION_KEEP_UNTIL, ANNOTATION_ON_END, ANNOTATIONS_OF_POLICY } from '../annotations.ts';
import {
  judgeKinds,
  kindsReport,
  type KindsReport,
  type KindsStanding,
  NO_KINDS,
} from '../policies/kinds.ts';
import { applyManifests, typeOf } from '../../kube/apply.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Subscriptions } from '../../lib/listeners.ts';
import type { Logger } from '../../lib/log.ts';
import {
  forgeContractTenant,
  isIsolated,
  type ContractTenant,
  TENANT_KINDS_ROLE,
} from './contract-tenant.ts';
import { HeldRights } from './kind-grants.ts';
import { OwnRangesCache } from './isolation.ts';
import { endOverduePods, lookAtEndingMs } from './overdue-pods.ts';
import { QuotaRecounts, type ResourceQuota } from './quota-recounts.ts';
import { QUOTA_NAME } from './quota.ts';

/** Kinds of which tenants consist; whose they are is found by label, never remembered. */
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
/** So soon it is looked whether people have given us the rights that were missing. */
const MISSING_RIGHTS_MS = 20_000;

export interface TenantsOptions {
  client: KubeClient;
  caches: Caches;
  clock: Clock;
  log: Logger;
  /** How long a new quota may take to be in force, milliseconds; 0: it is not looked at. Default 5000. */
  quotaPatienceMs?: number;
  /** Where the network publishes the addresses of this cluster. */
  systemNamespace: string;
}

/** What of a tenant is still there. */
export interface Remains {
  /** Namespaces on their way out. */
  ending: Namespace[];
  /** Kept by policy; each until its own time, milliseconds since the epoch. */
  keptUntil: number | undefined;
}

/** The tenants of all peers: what is there, how to make it as agreed, how to end it. */
export class Tenants {
  readonly #options: TenantsOptions;
  readonly #caches = new Map<string, Cache<KubeObject>>();
  readonly #ownRanges: OwnRangesCache;
  readonly #held: HeldRights;
  readonly #recounts: QuotaRecounts;
  /** As found when the tenant was last looked at. */
  readonly #kinds = new Map<string, KindsReport>();

  constructor(options: TenantsOptions) {
    this.#options = options;
    const { caches, clock } = options;
    this.#ownRanges = new OwnRangesCache(caches, options.systemNamespace);
    this.#held = new HeldRights(options);
    this.#recounts = new QuotaRecounts(clock);
    for (const type of KINDS as readonly ResourceType<KubeObject>[]) {
      // All namespaces: a name may be somebody else's.
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

  /** Calls back after a namespace is gone, whoever's it was; the returned function ends that. */
  onFreed(listener: () => void): () => void {
    return this.#cache(namespaces).onChange((_key, current) => {
      if (current === undefined) listener();
    });
  }

  /** Peers of which anything is there. */
  peers(): Set<string> {
    return new Set(
      [...this.#caches.values()].flatMap((kind) => [...kind.list()].flatMap((it) => peerOf(it) ?? [])),
    );
  }

  /** Whether a namespace of that name is not this peer's. */
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

  /**
   * Makes everything as the contract says; touches only what differs. Returns what is to be waited for, or undefined
   * when all is in place.
   */
  async ensure(tenancy: ContractTenant, signal: AbortSignal): Promise<string | undefined> {
    const { consumer, contract } = tenancy;
    const agreed = new Set(contract.namespaces.map(({ tenantNamespace }) => tenantNamespace));
    for (const namespace of this.namespacesOf(consumer)) {
      if (!agreed.has(namespace.metadata.name)) await this.#endNamespace(namespace, consumer, signal);
      else if (namespace.metadata.deletionTimestamp !== undefined) {
        return `waits for namespace ${namespace.metadata.name} of an earlier contract to end`;
      } else await this.#keepNoLonger(namespace, signal);
    }
    const kinds = await this.#judgeKinds(tenancy.policy.reflectableKinds ?? [], signal);
    const whole = { ...tenancy, kinds: kinds.granted, network: this.#network(consumer) };
    await this.#apply(whole, signal);
    if (!isIsolated(tenancy.policy)) await this.#openNetwork(consumer, signal);
    await this.#grantKinds(whole, kinds, signal);
    const uncounted = [...agreed].find((name) => !this.#isCounted(name));
    return uncounted && `waits for the quota of namespace ${uncounted} to be in force`;
  }

  async #apply(tenancy: ContractTenant, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const { shared, tenants, account } = forgeContractTenant(tenancy);
    const missing = (manifests: readonly Manifest[]): Manifest[] =>
      manifests.filter((manifest) => !this.#isAsWanted(manifest));
    await applyManifests(client, missing(shared), { signal });
    const adapt = (manifest: Manifest): Manifest =>
      this.#recounts.adapt(manifest, this.#quotaOf(manifest.metadata.namespace), tenancy.kinds ?? []);
    const waiting = tenants.map((tenant) => missing(tenant.map(adapt))).filter(({ length }) => length > 0);
    const work = async (): Promise<void> => {
      for (let tenant = waiting.shift(); tenant !== undefined; tenant = waiting.shift()) {
        await applyManifests(client, tenant, { signal });
      }
    };
    await Promise.all(Array.from({ length: Math.min(NAMESPACES_AT_ONCE, waiting.length) }, work));
    await applyManifests(client, missing(account), { signal });
  }

  /** As TenantNetwork has written it on the peer's namespaces, which is what admission goes by as well. */
  #network(consumer: string): NonNullable<ContractTenant['network']> {
    const said = this.namespacesOf(consumer).map((it) => it.metadata.annotations?.[ANNOTATION_PEER_PREFIXES]);
    const prefixes = new Set(said.flatMap((text) => text?.split(',') ?? []));
    return { prefixes: [...prefixes].toSorted(), own: this.#ownRanges.current };
  }

  /** The policy wants no NetworkPolicy: those that lending has made go, those of people stay. */
  async #openNetwork(consumer: string, signal: AbortSignal): Promise<void> {
    for (const policy of this.#of(networkPolicies, consumer)) {
      await this.#delete(networkPolicies, policy, signal);
    }
  }

  /** Of the last `ensure`. */
  kinds(consumer: string): KindsReport | undefined {
    return this.#kinds.get(consumer);
  }

  /** When to look again though nothing here has changed, milliseconds. */
  lookAgainMs(consumer: string): number {
    const all = this.namespacesOf(consumer);
    const countedMs = this.#recounts.waitMs(all.map(({ metadata }) => metadata.name));
    const isMissing = this.#kinds.get(consumer)?.state === 'RightsMissing';
    return Math.min(countedMs, lookAtEndingMs(all), isMissing ? MISSING_RIGHTS_MS : Infinity);
  }

  async #judgeKinds(
    wanted: NonNullable<ContractTenant['policy']['reflectableKinds']>,
    signal: AbortSignal,
  ): Promise<KindsStanding> {
    if (wanted.length === 0) return NO_KINDS;
    // Where we may not even ask, we know of no right to pass on.
    const held = await this.#held.rules(signal).catch(ignoring('Forbidden', 'NotFound'));
    return judgeKinds(wanted, held ?? []);
  }

  /** Rights to further kinds. That we may not give them is no reason to give nothing else. */
  async #grantKinds(tenancy: ContractTenant, standing: KindsStanding, signal: AbortSignal): Promise<void> {
    const { consumer, policy } = tenancy;
    const { kinds } = forgeContractTenant(tenancy);
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
    const report = kindsReport(standing, problem, QuotaRecounts.uncounted(quotas, standing.granted));
    if ((policy.reflectableKinds ?? []).length === 0) this.#kinds.delete(consumer);
    else this.#kinds.set(consumer, report);
  }

  /** First the binding: the Role alone gives nobody anything. */
  async #takeKinds(consumer: string, signal: AbortSignal): Promise<void> {
    for (const type of [roleBindings, roles] as const) {
      for (const object of this.#of<KubeObject>(type, consumer)) {
        if (object.metadata.name === TENANT_KINDS_ROLE) await this.#delete(type, object, signal);
      }
    }
  }

  /**
   * A quota refuses every pod until the controller manager has counted what is there, a moment after it was made. A
   * peer that came sooner would be refused for nothing. Not waited for long: that controller may be out of order.
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
   * Ends all that was made for a peer: its account first, since every token dies with it; then its rights, so that
   * not even a cached authentication is of use; then its namespaces, by the policy that was written on them.
   */
  async end(consumer: string, signal: AbortSignal): Promise<Remains> {
    this.#kinds.delete(consumer);
    for (const account of this.#of(serviceAccounts, consumer)) {
      if (account.metadata.namespace === PEERS_NAMESPACE)
        await this.#delete(serviceAccounts, account, signal);
    }
    for (const binding of this.#of(roleBindings, consumer)) await this.#delete(roleBindings, binding, signal);
    const remains: Remains = { ending: [], keptUntil: undefined };
    for (const namespace of this.namespacesOf(consumer)) {
      const keptUntil = await this.#endNamespace(namespace, consumer, signal);
      if (keptUntil === undefined) remains.ending.push(namespace);
      else remains.keptUntil = Math.min(keptUntil, remains.keptUntil ?? Infinity);
    }
    for (const schema of this.#of(flowSchemas, consumer)) await this.#delete(flowSchemas, schema, signal);
    return remains;
  }

  /** Returns until when it is kept; undefined where it is on its way out. */
  async #endNamespace(
    namespace: Namespace,
    consumer: string,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { name, annotations = {}, deletionTimestamp } = namespace.metadata;
    this.#recounts.forget(name);
    if (deletionTimestamp !== undefined) return endOverduePods(this.#options, namespace, signal);
    for (const binding of this.#of(roleBindings, consumer)) {
      if (binding.metadata.namespace === name) await this.#delete(roleBindings, binding, signal);
    }
    const nowMs = this.#options.clock.now();
    const seconds = Number(/^Keep=([0-9]{1,9})$/.exec(annotations[ANNOTATION_ON_END] ?? '')?.[1] ?? 0);
    const known = Date.parse(annotations[ANNOTATION_KEEP_UNTIL] ?? '');
    const until = Number.isNaN(known) ? nowMs + seconds * 1000 : known;
    if (seconds === 0 || until <= nowMs) {
      await this.#delete(namespaces, namespace, signal);
      return undefined;
    }
    if (Number.isNaN(known)) await this.#annotate(namespace, timestamp(until), signal);
    return until;
  }

  async #keepNoLonger(namespace: Namespace, signal: AbortSignal): Promise<void> {
    if (namespace.metadata.annotations?.[ANNOTATION_KEEP_UNTIL] === undefined) return;
    await this.#annotate(namespace, null, signal);
  }

  async #annotate(namespace: Namespace, until: string | null, signal: AbortSignal): Promise<void> {
    const { uid, name } = namespace.metadata;
    const body = { metadata: { uid, annotations: { [ANNOTATION_KEEP_UNTIL]: until } } };
    await this.#options.client.patch(namespaces, { name }, { type: 'merge', body }, { signal });
  }

  async #delete(type: ResourceType<KubeObject>, object: KubeObject, signal: AbortSignal): Promise<void> {
    const { uid, deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined) return;
    try {
      await this.#options.client.delete(type, object.metadata, { uid, signal });
    } catch (error) {
      // Conflict: another one bears its name now, which this cache shows soon.
      if (!hasCode(error, 'NotFound', 'Conflict')) throw error;
    }
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

/** Lists of a store say nothing of kind and version, so those are passed over. */
function isAsManifest(actual: KubeObject, { apiVersion: _version, kind, ...wanted }: Manifest): boolean {
  if (!jsonContains(actual, wanted)) return false;
  // What has been taken out of a manifest has to go as well; in these it would go on bounding or allowing.
  if (kind === 'ResourceQuota' || kind === 'NetworkPolicy')
    return jsonContains(wanted, { spec: (actual as { spec?: unknown }).spec });
  if (kind !== 'Namespace') return true;
  const { annotations = {} } = wanted.metadata;
  return ANNOTATIONS_OF_POLICY.every(
    (key) => key in annotations === key in (actual.metadata.annotations ?? {}),
  );
}

/** Whose it is, where lending has made it. */
function peerOf({ metadata: { labels = {} } }: KubeObject): string[] | undefined {
  const peer = labels[LABEL_PEER];
  return peer !== undefined && labels[LABEL_TENANCY] === TENANCY_CONTRACT ? [peer] : undefined;
}
