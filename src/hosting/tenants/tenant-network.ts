import {
  ANNOTATION_PEER_PREFIXES,
  ANNOTATION_WITHHELD,
  LABEL_SLICE_MANAGED_BY,
  SLICE_MANAGER,
} from '../../api/names.ts';
import { endpointSlices, namespaces } from '../../api/resources.ts';
import { LABEL_TENANCY, peerOf, TENANCY_CONTRACT } from '../../api/tenant-labels.ts';
import { type Tunnel, TUNNEL_CONDITIONS, tunnels } from '../../api/tunnel.ts';
import type { Endpoint, EndpointSlice, KubeObject, Namespace } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { keyOf, refOf } from '../../kube/store.ts';
import { patchMetadataIfDiffers } from '../../kube/write.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { deepEqual } from '../../lib/equality.ts';
import { ignoring } from '../../lib/errors.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import type { HostingParts } from '../parts.ts';
import { type ByteRate, PeerWrites, versionBytes } from '../peer-writes.ts';

interface TenantNetworkOptions extends Omit<HostingParts, 'events' | 'random'> {
  rate?: ByteRate;
}

/** How long a tunnel may be down before its endpoints are withheld: usually the peer's own agent withholds them first. */
export const HOLD_MS = 5_000;

/** How long a slice may wait for its turn to be withheld; then it is written without its endpoints, which is small. */
export const WITHHELD_WITHIN_MS = 30_000;
/** 1,000 slices of 20 KiB are 20 MiB. To withhold and to let go each have as much: what must stop does not wait for what may begin. */
const VERDICT_WRITES: ByteRate = { burstMiB: 24, mibPerMinute: 1 };
/** Those whose turns come within so long are written together. */
const TOGETHER_MS = 1_000;
/** Without its endpoints, a slice that is still as large waits all the same: it is its annotations that are large. */
const SMALL_BYTES = 16 * 1024;

const BY_PEER = 'peer';
const BY_NAMESPACE = 'namespace';
const CONCURRENCY = 4;
/** Writes of one peer's slices at a time. */
const WRITES_AT_ONCE = 8;

/**
 * What the network says about tenants, for each peer: in which prefixes its endpoints may be (admission reads that from the
 * tenant namespace, see policies/services.ts), and which endpoints are withheld while its tunnel is down. Endpoints are
 * withheld here so that nothing is sent into a broken tunnel even when the peer's own agent cannot say so.
 */
export class TenantNetwork implements Component {
  readonly name = 'network of tenants';
  readonly #options: TenantNetworkOptions;
  readonly #tunnels: Cache<Tunnel>;
  readonly #namespaces: Cache<Namespace>;
  readonly #slices: Cache<EndpointSlice>;
  readonly #controller: Controller;
  readonly #background = new Background();
  readonly #withholding: PeerWrites;
  readonly #releasing: PeerWrites;

  constructor(options: TenantNetworkOptions) {
    this.#options = options;
    const { caches, clock, metrics, rate = VERDICT_WRITES } = options;
    const log = options.log.named('tenant-network');
    this.#withholding = new PeerWrites({ clock, ...rate });
    this.#releasing = new PeerWrites({ clock, ...rate });
    this.#tunnels = caches.of(tunnels);
    this.#namespaces = caches.of(namespaces, {
      only: ({ metadata }) => metadata.labels?.[LABEL_TENANCY] === TENANCY_CONTRACT,
      indexes: { [BY_PEER]: (namespace) => [peerOf(namespace)] },
    });
    this.#slices = caches.of(endpointSlices, {
      list: { labelSelector: `${LABEL_SLICE_MANAGED_BY}=${SLICE_MANAGER}` },
      indexes: { [BY_NAMESPACE]: ({ metadata }) => [metadata.namespace ?? ''] },
    });
    this.#controller = new Controller({
      clock,
      log,
      name: 'tenant-network',
      concurrency: CONCURRENCY,
      reconcile: async (key, { signal }) => this.#reconcile(key, signal),
      ...(metrics && { metrics }),
    });
  }

  /** Returns at once: where Tunnels are not served or may not be read, peering works without a network. */
  start(signal: AbortSignal): void {
    this.#tunnels.onChange((clusterID, current, previous) => {
      if (!deepEqual(factsOf(current), factsOf(previous))) this.#controller.add(clusterID);
    });
    this.#namespaces.onChange((_key, current, previous) => {
      for (const namespace of [current, previous]) if (namespace) this.#controller.add(peerOf(namespace));
    });
    this.#slices.onChange((key) => {
      const { namespace = '' } = refOf(key);
      const tenant = this.#namespaces.get(namespace);
      if (tenant !== undefined) this.#controller.add(peerOf(tenant));
    });
    this.#background.run(async (signal) => {
      await Promise.allSettled(this.#caches.map(async (cache) => cache.start(signal)));
      for (const namespace of this.#namespaces.list()) this.#controller.add(peerOf(namespace));
    });
    this.#controller.start(signal);
  }

  async stop(): Promise<void> {
    await this.#background.stop();
    await this.#controller.stop();
    await Promise.all(this.#caches.map(async (cache) => cache.stop()));
  }

  get #caches(): (Cache<Tunnel> | Cache<Namespace> | Cache<EndpointSlice>)[] {
    return [this.#tunnels, this.#namespaces, this.#slices];
  }

  async #reconcile(peer: string, signal: AbortSignal): Promise<ReconcileResult> {
    if (!this.#caches.every(({ synced }) => synced)) return {};
    const tunnel = this.#tunnels.get(peer);
    const tenants = this.#namespaces
      .byIndex(BY_PEER, peer)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    for (const tenant of tenants) await this.#bound(tenant, tunnel, signal);
    const slices = tenants.flatMap(({ metadata }) => this.#slices.byIndex(BY_NAMESPACE, metadata.name));
    const waitMs = withholdIn(tunnel, this.#options.clock.now());
    if (waitMs !== 'Ready' && waitMs > 0) return { requeueAfterMs: waitMs };
    const isReady = waitMs === 'Ready';
    // Those to which traffic goes come first.
    const ordered = isReady ? slices : slices.toSorted((one, other) => openIn(other) - openIn(one));
    const turns = await eachAtOnce(ordered, WRITES_AT_ONCE, async (slice) =>
      isReady ? this.#release(peer, slice, signal) : this.#withhold(peer, slice, signal),
    );
    const nextMs = turns.reduce((least, ms) => (ms > 0 ? Math.min(least, ms) : least), Infinity);
    return nextMs === Infinity ? {} : { requeueAfterMs: Math.max(TOGETHER_MS, nextMs) };
  }

  /** Returns how long it has to wait for its turn, milliseconds; 0: it is done. */
  async #withhold(peer: string, slice: EndpointSlice, signal: AbortSignal): Promise<number> {
    const held = withheld(slice);
    if (held === undefined) return 0;
    const key = keyOf(slice);
    const turns = this.#withholding;
    const waitMs = turns.untilTurn(peer, key) || turns.turn(peer, key, versionBytes(held));
    if (waitMs === 0) await this.#write(held, signal);
    else if (waitMs > WITHHELD_WITHIN_MS && openIn(slice) > 0) {
      const small = { ...held, endpoints: [] };
      if (versionBytes(small) <= SMALL_BYTES) {
        // Marked and without endpoints, it needs its turn no more.
        await this.#write(small, signal);
        return 0;
      }
    }
    return waitMs;
  }

  async #release(peer: string, slice: EndpointSlice, signal: AbortSignal): Promise<number> {
    const free = released(slice);
    if (free === undefined) return 0;
    const key = keyOf(slice);
    const turns = this.#releasing;
    const waitMs = turns.untilTurn(peer, key) || turns.turn(peer, key, versionBytes(free));
    if (waitMs === 0) await this.#write(free, signal);
    return waitMs;
  }

  async #bound(tenant: KubeObject, tunnel: Tunnel | undefined, signal: AbortSignal): Promise<void> {
    const prefixes = peerPrefixes(tunnel);
    const annotations = { [ANNOTATION_PEER_PREFIXES]: prefixes === '' ? null : prefixes };
    const marks = { annotations, signal };
    await patchMetadataIfDiffers<KubeObject>(this.#options.client, namespaces, tenant, marks);
  }

  async #write(slice: EndpointSlice, signal: AbortSignal): Promise<void> {
    const kind = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' };
    const writing = this.#options.client.replace(endpointSlices, { ...kind, ...slice }, { signal });
    // Gone, or written by somebody else: the watch tells of that, and the peer is reconciled again.
    await writing.catch(ignoring('NotFound', 'Conflict'));
  }
}

/** `Ready` when the tunnel carries packets; else how long to wait before its endpoints are withheld, milliseconds. */
export function withholdIn(tunnel: Tunnel | undefined, nowMs: number): number | 'Ready' {
  const ready = tunnel?.status?.conditions?.find(({ type }) => type === TUNNEL_CONDITIONS.ready);
  if (ready?.status === 'True') return 'Ready';
  const since = Date.parse(ready?.lastTransitionTime ?? '');
  // Clocks of two processes may differ: never wait longer than HOLD_MS.
  return Number.isNaN(since) ? 0 : Math.min(HOLD_MS, Math.max(0, since + HOLD_MS - nowMs));
}

/** The prefixes under which we see a peer, in which its endpoints may be; as the annotation's value, empty for none. */
export const peerPrefixes = (tunnel: Tunnel | undefined): string =>
  [...new Set((tunnel?.status?.views ?? []).map(({ as }) => as))].toSorted().join(',');

/** The slice with no endpoint ready, and marked as withheld; undefined where it is so already. */
export function withheld(slice: EndpointSlice): EndpointSlice | undefined {
  const { metadata, endpoints } = slice;
  const isMarked = metadata.annotations?.[ANNOTATION_WITHHELD] !== undefined;
  if (isMarked && (endpoints ?? []).every(isOut)) return undefined;
  return {
    ...slice,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [ANNOTATION_WITHHELD]: 'TunnelDown' } },
    endpoints: (endpoints ?? []).map((endpoint) => ({
      ...endpoint,
      conditions: { ...endpoint.conditions, ready: false, serving: false },
    })),
  };
}

/** The slice without the mark; its owner then says which endpoints are ready. Undefined where there is no mark. */
export function released(slice: EndpointSlice): EndpointSlice | undefined {
  const { [ANNOTATION_WITHHELD]: mark, ...annotations } = slice.metadata.annotations ?? {};
  return mark === undefined ? undefined : { ...slice, metadata: { ...slice.metadata, annotations } };
}

const isOut = ({ conditions }: Endpoint): boolean =>
  conditions?.ready === false && conditions.serving === false;

/** To how many endpoints of it traffic may go. */
const openIn = ({ endpoints }: EndpointSlice): number =>
  (endpoints ?? []).filter((endpoint) => !isOut(endpoint)).length;

/** What of a Tunnel matters here; the rest changes with every probe. */
const factsOf = (tunnel: Tunnel | undefined): unknown =>
  tunnel && [peerPrefixes(tunnel), tunnel.status?.conditions?.find(({ type }) => type === 'Ready')];
