import {
  LABEL_HOME_UID,
  LABEL_SLICE_MANAGED_BY,
  NATIVE_SLICE_MANAGER,
  SLICE_MANAGER,
} from '../../api/names.ts';
import { ownAddresses } from '../../api/pod.ts';
import { endpointSlices, namespaces, pods } from '../../api/resources.ts';
import { LABEL_TENANCY, peerOf, TENANCY_CONTRACT } from '../../api/tenant-labels.ts';
import type { Draft, EndpointSlice, Namespace, Pod } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { keyOf, refOf } from '../../kube/store.ts';
import { deleteByUid } from '../../kube/write.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { HostingParts } from '../parts.ts';
import { type ByteRate, PeerWrites, versionBytes } from '../peer-writes.ts';
import { StandingBytes } from '../standing-bytes.ts';
import {
  losesEndpoints,
  mendedNative,
  nativeSliceName,
  nativesOf,
  resolveNatives,
  sayingWithout,
  slimGuest,
} from './native-slices.ts';

interface NativeEndpointsOptions extends Omit<HostingParts, 'events' | 'random'> {
  rate?: ByteRate;
  /** Of all slices that are made for one peer. */
  mostBytes?: number;
}

/** A pod may come a moment after the slice that names it, and go a moment before: nobody needs to be told of that. */
export const TELL_AFTER_MS = 15_000;

/** How long a slice may wait for its turn while it names an address that is no longer that of its pod; then it goes until its turn. */
export const WITHDRAWN_WITHIN_MS = 30_000;
/**
 * One pod can be in thousands of slices, each of which is written whole. A slice of 100 endpoints has some 20 KiB, and of each only one write
 * waits: while 1,000 pods behind ten of them are replaced, the last change waits for two seconds at most. Slices of 3 MiB in all wait for less
 * than WITHDRAWN_WITHIN_MS, also when nothing is left of the burst.
 */
const NATIVE_WRITES: ByteRate = { burstMiB: 24, mibPerMinute: 6 };
/** Of all slices that are made for one peer: some 300,000 endpoints. */
const MOST_BYTES = 64 * 1024 * 1024;

const BY_ADDRESS = 'address';
const BY_SOURCE = 'source';
const BY_PEER = 'peer';
const CONCURRENCY = 4;

/**
 * Endpoints of peers that are their own pods here. A peer may not write addresses of this cluster (policies/services.ts): it asks
 * for them in an annotation of its slice, and gets an EndpointSlice of ours with those that are pods of the same peer at this
 * moment, wherever it has put them. So a peer can make no endpoint of anything that a selector of its own could not find, also
 * when an address becomes somebody else's.
 *
 *     slice of the peer, its pods ──▶ slice of ours, owned by the peer's ; addresses without a pod ──▶ slice of the peer
 */
export class NativeEndpoints implements Component {
  readonly name = 'endpoints of guests';
  readonly #options: NativeEndpointsOptions;
  readonly #namespaces: Cache<Namespace>;
  /** Slices of peers. */
  readonly #sources: Cache<EndpointSlice>;
  /** Slices of ours, made from those. */
  readonly #made: Cache<EndpointSlice>;
  /** Of peers. Watched from the first slice on that asks for pods. */
  readonly #pods: Cache<Pod>;
  readonly #controller: Controller;
  readonly #abort = new AbortController();
  readonly #running: Promise<unknown>[] = [];
  /** By key of a peer's slice: since when addresses in it have no pod, monotonic ms. */
  readonly #withoutSince = new Map<string, number>();
  readonly #writes: PeerWrites;
  readonly #standing: StandingBytes;
  #followsPods = false;

  constructor(options: NativeEndpointsOptions) {
    this.#options = options;
    const { caches, clock, metrics, rate = NATIVE_WRITES, mostBytes = MOST_BYTES } = options;
    this.#writes = new PeerWrites({ clock, ...rate });
    this.#standing = new StandingBytes(mostBytes);
    this.#namespaces = caches.of(namespaces, {
      only: ({ metadata }) => metadata.labels?.[LABEL_TENANCY] === TENANCY_CONTRACT,
      indexes: { [BY_PEER]: (namespace) => [peerOf(namespace)] },
    });
    this.#sources = caches.of(endpointSlices, {
      list: { labelSelector: `${LABEL_SLICE_MANAGED_BY}=${SLICE_MANAGER}` },
      indexes: { [BY_ADDRESS]: (slice) => nativesOf(slice).map(({ address }) => address) },
    });
    this.#made = caches.of(endpointSlices, {
      list: { labelSelector: `${LABEL_SLICE_MANAGED_BY}=${NATIVE_SLICE_MANAGER}` },
      indexes: { [BY_SOURCE]: (slice) => [sourceOf(slice)] },
    });
    this.#pods = caches.of(pods, {
      list: { labelSelector: LABEL_HOME_UID },
      transform: slimGuest,
      indexes: { [BY_ADDRESS]: ownAddresses },
      name: 'cache of pods of peers',
    });
    this.#controller = new Controller({
      clock,
      log: options.log.named('native-endpoints'),
      name: 'native-endpoints',
      concurrency: CONCURRENCY,
      reconcile: async (key, { signal }) => this.#reconcile(key, signal),
      ...(metrics && { metrics }),
    });
  }

  /** Returns at once: peering works without it. */
  start(signal: AbortSignal): void {
    this.#namespaces.onChange((name, current, previous) => {
      if (current === undefined || previous !== undefined) return;
      for (const slice of this.#sources.list()) {
        if (slice.metadata.namespace === name) this.#controller.add(keyOf(slice));
      }
    });
    this.#sources.onChange((key) => this.#controller.add(key));
    this.#made.onChange((key, current, previous) => {
      this.#standing.note(key, current);
      for (const slice of [current, previous]) if (slice) this.#controller.add(sourceOf(slice));
    });
    this.#pods.onChange((_key, current, previous) => {
      const addresses = [current, previous].flatMap((pod) => (pod === undefined ? [] : ownAddresses(pod)));
      for (const address of new Set(addresses)) this.#addNaming(address);
    });
    this.#follow(this.#namespaces, this.#sources, this.#made);
    this.#controller.start(signal);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await Promise.all(this.#running);
    await this.#controller.stop();
    const all = [this.#namespaces, this.#sources, this.#made, this.#pods];
    await Promise.all(all.map(async (cache) => cache.stop()));
  }

  #follow(...caches: Pick<Cache<EndpointSlice>, 'start'>[]): void {
    const following = Promise.allSettled(caches.map(async (cache) => cache.start(this.#abort.signal)));
    this.#running.push(
      following.then(() => {
        for (const slice of this.#sources.list()) this.#controller.add(keyOf(slice));
      }),
    );
  }

  #addNaming(address: string): void {
    for (const slice of this.#sources.byIndex(BY_ADDRESS, address)) this.#controller.add(keyOf(slice));
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { namespace = '' } = refOf(key);
    if (![this.#namespaces, this.#sources, this.#made].every(({ synced }) => synced)) return {};
    const tenant = this.#namespaces.get(namespace);
    // What is in a namespace goes with it.
    if (tenant === undefined || tenant.metadata.deletionTimestamp !== undefined) {
      this.#withoutSince.delete(key);
      return {};
    }
    const source = this.#sources.get(key);
    const made = this.#made.byIndex(BY_SOURCE, key);
    if (source === undefined || nativesOf(source).length === 0) {
      this.#withoutSince.delete(key);
      await this.#remove(made, signal);
      return source === undefined ? {} : this.#say(key, source, { without: [], signal });
    }
    if (!this.#pods.synced) {
      if (!this.#followsPods) this.#follow(this.#pods);
      this.#followsPods = true;
      return {};
    }
    const peer = peerOf(tenant);
    const { slice, without } = resolveNatives(source, (address) => this.#podAt(address, peer));
    const name = nativeSliceName(source);
    const isOld = ({ metadata }: EndpointSlice): boolean => slice === undefined || metadata.name !== name;
    await this.#remove(made.filter(isOld), signal);
    const current = made.find((it) => !isOld(it));
    const waitMs = slice === undefined ? 0 : await this.#put(peer, { key, slice, current, signal });
    const said = await this.#say(key, source, { without, signal });
    return waitMs === 0 ? said : { requeueAfterMs: Math.min(waitMs, said.requeueAfterMs ?? Infinity) };
  }

  /** Returns how long it has to wait for its turn, milliseconds; 0: it is as it should be. */
  async #put(peer: string, { key, slice, current, signal }: Putting): Promise<number> {
    const { client } = this.#options;
    const mended = current && mendedNative(current, slice);
    if (current !== undefined && mended === undefined) return 0;
    const bytes = versionBytes(slice);
    if (!this.#hasRoom(peer, slice, bytes)) {
      if (current !== undefined) await this.#remove([current], signal);
      throw new TributaryError(
        'Invalid',
        `no endpoints are made of ${key}: those of peer ${peer} would have more than ${this.#standing.mostBytes} bytes`,
      );
    }
    const waitMs = this.#writes.turn(peer, key, bytes);
    if (waitMs === 0) {
      if (mended === undefined) await client.create(endpointSlices, slice, { signal });
      else await client.replace(endpointSlices, mended, { signal });
      return 0;
    }
    // What must go may not wait, and to delete is small.
    if (current !== undefined && waitMs > WITHDRAWN_WITHIN_MS && losesEndpoints(current, slice)) {
      await this.#remove([current], signal);
    }
    return waitMs;
  }

  #hasRoom(peer: string, { metadata }: Draft<EndpointSlice>, bytes: number): boolean {
    const tenants = this.#namespaces.byIndex(BY_PEER, peer).map((tenant) => tenant.metadata.name);
    return this.#standing.fits(tenants, `${metadata.namespace}/${metadata.name}`, bytes);
  }

  #podAt(address: string, peer: string): Pod | undefined {
    return this.#pods.byIndex(BY_ADDRESS, address).find(({ metadata }) => {
      const tenant = this.#namespaces.get(metadata.namespace ?? '');
      return tenant !== undefined && peerOf(tenant) === peer;
    });
  }

  async #remove(slices: readonly EndpointSlice[], signal: AbortSignal): Promise<void> {
    for (const slice of slices) await deleteByUid(this.#options.client, endpointSlices, slice, { signal });
  }

  /** Home tells people: they cannot see what is here. */
  async #say(
    key: string,
    source: EndpointSlice,
    { without, signal }: { without: readonly string[]; signal: AbortSignal },
  ): Promise<ReconcileResult> {
    const { clock, client } = this.#options;
    const since = this.#withoutSince.get(key) ?? clock.monotonic();
    if (without.length === 0) this.#withoutSince.delete(key);
    else this.#withoutSince.set(key, since);
    const waitMs = without.length === 0 ? 0 : since + TELL_AFTER_MS - clock.monotonic();
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    const saying = sayingWithout(source, without);
    if (saying === undefined) return {};
    const tenant = this.#namespaces.get(source.metadata.namespace ?? '');
    const peer = tenant === undefined ? '' : peerOf(tenant);
    const turnMs = this.#writes.turn(peer, `${key} says`, versionBytes(saying));
    if (turnMs > 0) return { requeueAfterMs: turnMs };
    await client.replace(endpointSlices, saying, { signal });
    return {};
  }
}

interface Putting {
  /** Of the peer's slice. */
  key: string;
  /** As it should be. */
  slice: Draft<EndpointSlice>;
  current: EndpointSlice | undefined;
  signal: AbortSignal;
}

/** The key of the peer's slice that one of ours was made from. */
const sourceOf = ({ metadata }: EndpointSlice): string =>
  `${metadata.namespace}/${metadata.ownerReferences?.[0]?.name ?? ''}`;
