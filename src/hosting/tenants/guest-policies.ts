import {
  type GuestNetworkPolicy,
  guestNetworkPolicies,
  type GuestNetworkPolicyStatus,
  LABEL_GUEST_NETWORK_POLICY,
} from '../../api/guest-network-policy.ts';
import { MAX_MESSAGE_LENGTH } from '../../api/limits.ts';
import { APP_NAME, LABEL_APP_NAME } from '../../api/manifest.ts';
import { ANNOTATION_HOME_NAMESPACE, ANNOTATION_PEER_PREFIXES } from '../../api/names.ts';
import type { NetworkPolicy } from '../../api/network-policy.ts';
import { namespaces, networkPolicies } from '../../api/resources.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import type { Namespace } from '../../api/wire.ts';
import { applyManifests } from '../../kube/apply.ts';
import type { Cache } from '../../kube/cache.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { keyOf, refOf } from '../../kube/store.ts';
import { deleteByUid, replaceStatusIfDiffers } from '../../kube/write.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import type { HostingParts } from '../parts.ts';
import { type ByteRate, PeerWrites, versionBytes } from '../peer-writes.ts';
import { StandingBytes } from '../standing-bytes.ts';
import { isAsManifest } from './as-manifest.ts';
import { forgeGuestPolicy, opensMore } from './guest-policy.ts';
import { guestBounds, ISOLATION_NAME, type NetworkPolicyManifest, OwnRangesCache } from './isolation.ts';

interface GuestPoliciesOptions extends Omit<HostingParts, 'events' | 'random'> {
  /** Where the network publishes the addresses of this cluster. */
  systemNamespace: string;
  rate?: ByteRate;
  /** Of all policies that are made for one peer. */
  mostBytes?: number;
}

/** How long a policy may wait for its turn while it opens what is no longer allowed; then it goes until its turn. */
export const CLOSED_WITHIN_MS = 60_000;
/** 500 policies of 20 KiB that are made anew because the peer has other addresses, which happens now and then, are 10 MiB. */
const POLICY_WRITES: ByteRate = { burstMiB: 16, mibPerMinute: 4 };
const MOST_BYTES = 64 * 1024 * 1024;
/** When one for which there was no room is looked at again. */
const LOOK_AGAIN_MS = 5 * 60_000;

const BY_NAMESPACE = 'namespace';
const BY_PEER = 'peer';
const CONCURRENCY = 4;
const FORMER_ISOLATION = 'the isolation of this namespace is still that of an earlier version';

/**
 * Makes a NetworkPolicy of each GuestNetworkPolicy, of what this cluster allows pods of that peer, and says when it is in force. When
 * what is allowed changes (addresses of this cluster, those of the peer, its namespaces), all are made anew.
 */
export class GuestPolicies implements Component {
  readonly name = 'network policies of guests';
  readonly #options: GuestPoliciesOptions;
  readonly #asked: Cache<GuestNetworkPolicy>;
  readonly #made: Cache<NetworkPolicy>;
  readonly #isolations: Cache<NetworkPolicy>;
  readonly #namespaces: Cache<Namespace>;
  readonly #own: OwnRangesCache;
  readonly #controller: Controller;
  readonly #background = new Background();
  readonly #writes: PeerWrites;
  readonly #standing: StandingBytes;

  constructor(options: GuestPoliciesOptions) {
    this.#options = options;
    const { caches, clock, metrics, rate = POLICY_WRITES, mostBytes = MOST_BYTES } = options;
    this.#writes = new PeerWrites({ clock, ...rate });
    this.#standing = new StandingBytes(mostBytes);
    this.#asked = caches.of(guestNetworkPolicies, {
      indexes: { [BY_NAMESPACE]: ({ metadata }) => [metadata.namespace ?? ''] },
    });
    // One watch.
    const list = { labelSelector: `${LABEL_APP_NAME}=${APP_NAME}` };
    this.#made = caches.of(networkPolicies, {
      list,
      only: ({ metadata }) => metadata.labels?.[LABEL_GUEST_NETWORK_POLICY] !== undefined,
    });
    this.#isolations = caches.of(networkPolicies, {
      list,
      only: ({ metadata }) => metadata.name === ISOLATION_NAME,
      name: 'cache of isolations',
    });
    this.#namespaces = caches.of(namespaces, {
      only: ({ metadata }) => metadata.labels?.[LABEL_PEER] !== undefined,
      indexes: { [BY_PEER]: ({ metadata }) => [metadata.labels?.[LABEL_PEER] ?? ''] },
    });
    this.#own = new OwnRangesCache(caches, options.systemNamespace);
    this.#controller = new Controller({
      clock,
      log: options.log.named('guest-policies'),
      name: 'guest-policies',
      concurrency: CONCURRENCY,
      reconcile: async (key, { signal }) => this.#reconcile(key, signal),
      ...(metrics && { metrics }),
    });
  }

  /** Returns at once: peering works without it. */
  start(signal: AbortSignal): void {
    this.#asked.onChange((key) => this.#controller.add(key));
    this.#made.onChange((key, ...states) => {
      this.#standing.note(key, states[0]);
      for (const state of states) if (state !== undefined) this.#controller.add(sourceOf(state));
    });
    this.#isolations.onChange((key, current, previous) => {
      if (stateOf(current) !== stateOf(previous)) this.#addAllIn(refOf(key).namespace ?? '');
    });
    this.#namespaces.onChange((_name, current, previous) => {
      if (deepEqual(factsOf(current), factsOf(previous))) return;
      for (const state of [current, previous]) if (state !== undefined) this.#addAllOf(peerOf(state));
    });
    this.#own.onChange(() => this.#addAll());
    this.#background.run(async (stopped) => {
      await Promise.allSettled(this.#caches.map(async (cache) => cache.start(stopped)));
      this.#addAll();
    });
    this.#controller.start(signal);
  }

  async stop(): Promise<void> {
    await this.#background.stop();
    await this.#controller.stop();
    await Promise.all(this.#caches.map(async (cache) => cache.stop()));
  }

  /** How many a peer has here. */
  countOf(peer: string): number {
    const all = this.#namespaces.byIndex(BY_PEER, peer);
    return all.reduce(
      (sum, { metadata }) => sum + this.#asked.byIndex(BY_NAMESPACE, metadata.name).length,
      0,
    );
  }

  get #caches(): Pick<Cache<Namespace>, 'start' | 'stop' | 'synced'>[] {
    return [this.#asked, this.#made, this.#isolations, this.#namespaces, this.#own.cache];
  }

  #addAll(): void {
    for (const asked of this.#asked.list()) this.#controller.add(keyOf(asked));
  }

  #addAllIn(namespace: string): void {
    for (const asked of this.#asked.byIndex(BY_NAMESPACE, namespace)) this.#controller.add(keyOf(asked));
  }

  #addAllOf(peer: string): void {
    for (const { metadata } of this.#namespaces.byIndex(BY_PEER, peer)) this.#addAllIn(metadata.name);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    if (!this.#caches.every(({ synced }) => synced)) return {};
    const asked = this.#asked.get(key);
    const tenant = this.#namespaces.get(refOf(key).namespace ?? '');
    // What was made goes with its owner, and everything goes with its namespace.
    if (asked === undefined || tenant === undefined || tenant.metadata.deletionTimestamp !== undefined)
      return {};
    if (asked.metadata.deletionTimestamp !== undefined) return {};
    const peer = peerOf(tenant);
    const { policy, closed } = forgeGuestPolicy(asked, {
      peer,
      bounds: this.#bounds(tenant),
      tenantOf: (home) => this.#tenantOf(peer, home),
    });
    const made = this.#made.get(`${policy.metadata.namespace}/${policy.metadata.name}`);
    const put = await this.#put(tenant, { made, policy, signal });
    if (put.waitMs > 0) return { requeueAfterMs: put.waitMs };
    const isFormer = stateOf(this.#isolationOf(tenant)) === 'Former';
    const obstacle = isFormer ? FORMER_ISOLATION : put.refusal;
    const status: GuestNetworkPolicyStatus =
      obstacle === undefined
        ? { observedGeneration: asked.metadata.generation ?? 1, ...(closed.length > 0 && { closed }) }
        : { closed: [`all: ${obstacle}`.slice(0, MAX_MESSAGE_LENGTH)] };
    const waitMs = await this.#say(peer, asked, { status, signal });
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    return put.isTooMuch === true ? { requeueAfterMs: LOOK_AGAIN_MS } : {};
  }

  async #put(tenant: Namespace, { made, policy, signal }: Putting): Promise<Put> {
    if (made !== undefined && isAsManifest(made, policy)) return { waitMs: 0 };
    const peer = peerOf(tenant);
    const key = `${policy.metadata.namespace}/${policy.metadata.name}`;
    const bytes = versionBytes(policy);
    // Where nothing closes all pods, a policy that is not made would be open.
    const isClosed = this.#isolationOf(tenant) !== undefined;
    const { client } = this.#options;
    if (isClosed && !this.#hasRoom(peer, key, bytes)) {
      if (made !== undefined) await deleteByUid(client, networkPolicies, made, { signal });
      const refusal = `the policies of peer ${peer} would have more than ${this.#standing.mostBytes} bytes here`;
      return { waitMs: 0, refusal, isTooMuch: true };
    }
    const waitMs = this.#writes.turn(peer, key, bytes);
    if (waitMs === 0) {
      const refusal = await this.#apply(policy, signal);
      return { waitMs: 0, ...(refusal !== undefined && { refusal }) };
    }
    // What must be closed may not wait, and to delete is small.
    if (isClosed && made !== undefined && waitMs > CLOSED_WITHIN_MS && opensMore(made, policy)) {
      await deleteByUid(client, networkPolicies, made, { signal });
    }
    return { waitMs };
  }

  #hasRoom(peer: string, key: string, bytes: number): boolean {
    const tenants = this.#namespaces.byIndex(BY_PEER, peer).map(({ metadata }) => metadata.name);
    return this.#standing.fits(tenants, key, bytes);
  }

  /** A status is stored with all that the peer has asked for. Returns how long it has to wait for its turn, milliseconds. */
  async #say(
    peer: string,
    asked: GuestNetworkPolicy,
    { status, signal }: { status: GuestNetworkPolicyStatus; signal: AbortSignal },
  ): Promise<number> {
    if (deepEqual(asked.status, status)) return 0;
    const waitMs = this.#writes.turn(peer, `${keyOf(asked)} says`, versionBytes(asked));
    if (waitMs > 0) return waitMs;
    const named = { apiVersion: API_VERSION, kind: 'GuestNetworkPolicy', ...asked };
    await replaceStatusIfDiffers(this.#options.client, guestNetworkPolicies, named, {
      status,
      signal,
    }).catch(
      // It has changed meanwhile, and comes again.
      ignoring('NotFound', 'Conflict'),
    );
    return 0;
  }

  /** Why the API server does not take it: a peer may have written what no NetworkPolicy can have. */
  async #apply(policy: NetworkPolicyManifest, signal: AbortSignal): Promise<string | undefined> {
    try {
      await applyManifests(this.#options.client, [policy], { signal });
      return undefined;
    } catch (error) {
      if (hasCode(error, 'Invalid')) return errorMessage(error);
      throw error;
    }
  }

  /** A tenant that is not kept apart has no policy that closes all of its pods. */
  #bounds({ metadata }: Namespace): ReturnType<typeof guestBounds> | undefined {
    if (this.#isolationOf({ metadata }) === undefined) return undefined;
    const prefixes = metadata.annotations?.[ANNOTATION_PEER_PREFIXES]?.split(',') ?? [];
    return guestBounds({ peer: metadata.labels?.[LABEL_PEER] ?? '', prefixes, own: this.#own.current });
  }

  #isolationOf({ metadata }: Pick<Namespace, 'metadata'>): NetworkPolicy | undefined {
    return this.#isolations.get(`${metadata.name}/${ISOLATION_NAME}`);
  }

  #tenantOf(peer: string, home: string): string | undefined {
    return this.#namespaces
      .byIndex(BY_PEER, peer)
      .find(({ metadata }) => metadata.annotations?.[ANNOTATION_HOME_NAMESPACE] === home)?.metadata.name;
  }
}

interface Putting {
  made: NetworkPolicy | undefined;
  policy: NetworkPolicyManifest;
  signal: AbortSignal;
}

interface Put {
  /** For its turn, milliseconds. */
  waitMs: number;
  /** Why it is not there. */
  refusal?: string;
  isTooMuch?: boolean;
}

/** Former: it opens what guests may do to all of them, also to pods about which their home speaks. */
const stateOf = (isolation: NetworkPolicy | undefined): 'None' | 'Former' | 'Closed' => {
  if (isolation === undefined) return 'None';
  const { ingress = [], egress = [] } = isolation.spec ?? {};
  return ingress.length + egress.length > 0 ? 'Former' : 'Closed';
};

const peerOf = ({ metadata }: Namespace): string => metadata.labels?.[LABEL_PEER] ?? '';

/** What of a tenant namespace decides what its pods are allowed. */
const factsOf = (namespace: Namespace | undefined): unknown =>
  namespace && [
    peerOf(namespace),
    namespace.metadata.annotations?.[ANNOTATION_PEER_PREFIXES],
    namespace.metadata.annotations?.[ANNOTATION_HOME_NAMESPACE],
    namespace.metadata.deletionTimestamp,
  ];

/** The key of the one that it was made from. */
const sourceOf = ({ metadata }: NetworkPolicy): string =>
  `${metadata.namespace}/${metadata.ownerReferences?.[0]?.name ?? ''}`;
