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
import { refOf } from '../../kube/store.ts';
import { patchMetadataIfDiffers } from '../../kube/write.ts';
import { eachAtOnce } from '../../lib/each-at-once.ts';
import { deepEqual } from '../../lib/equality.ts';
import { ignoring } from '../../lib/errors.ts';
import { Background, type Component } from '../../lib/lifecycle.ts';
import type { HostingParts } from '../parts.ts';

type TenantNetworkOptions = Omit<HostingParts, 'events' | 'random'>;

/** How long a tunnel may be down before its endpoints are withheld: usually the peer's own agent withholds them first. */
export const HOLD_MS = 5_000;

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

  constructor(options: TenantNetworkOptions) {
    this.#options = options;
    const { caches, clock, metrics } = options;
    const log = options.log.named('tenant-network');
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
    const change = waitMs === 'Ready' ? released : withheld;
    const changed = slices.flatMap((slice) => change(slice) ?? []);
    await this.#write(changed, signal);
    return {};
  }

  async #bound(tenant: KubeObject, tunnel: Tunnel | undefined, signal: AbortSignal): Promise<void> {
    const prefixes = peerPrefixes(tunnel);
    const annotations = { [ANNOTATION_PEER_PREFIXES]: prefixes === '' ? null : prefixes };
    const marks = { annotations, signal };
    await patchMetadataIfDiffers<KubeObject>(this.#options.client, namespaces, tenant, marks);
  }

  async #write(changed: EndpointSlice[], signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    await eachAtOnce(changed, WRITES_AT_ONCE, async (slice) => {
      const kind = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' };
      const writing = client.replace(endpointSlices, { ...kind, ...slice }, { signal });
      // Gone, or written by somebody else: the watch tells of that, and the peer is reconciled again.
      await writing.catch(ignoring('NotFound', 'Conflict'));
    });
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

/** What of a Tunnel matters here; the rest changes with every probe. */
const factsOf = (tunnel: Tunnel | undefined): unknown =>
  tunnel && [peerPrefixes(tunnel), tunnel.status?.conditions?.find(({ type }) => type === 'Ready')];
