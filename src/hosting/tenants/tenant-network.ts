/**
 * What this cluster does to the endpoints of a peer while packets do not get through to it: it marks them, so that
 * nothing is sent into a hole even when the peer's own agent cannot say so. Pure.
 */
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
import type { Caches } from '../../kube/caches.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Controller, type ControllerMetrics, type ReconcileResult } from '../../kube/controller.ts';
import { patchMetadataIfDiffers } from '../../kube/write.ts';
import type { Clock } from '../../lib/clock.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';

/** A tunnel may be down for so long before its endpoints are withheld: the peer's agent usually says so first. */
export const HOLD_MS = 5_000;

/** Where the tunnel carries packets; else how long to wait before its endpoints are withheld, milliseconds. */
export function withholdIn(tunnel: Tunnel | undefined, nowMs: number): number | 'Ready' {
  const ready = tunnel?.status?.conditions?.find(({ type }) => type === TUNNEL_CONDITIONS.ready);
  if (ready?.status === 'True') return 'Ready';
  const since = Date.parse(ready?.lastTransitionTime ?? '');
  // Clocks of two processes may be apart: never longer than that.
  return Number.isNaN(since) ? 0 : Math.min(HOLD_MS, Math.max(0, since + HOLD_MS - nowMs));
}

/** The prefixes in which a peer's endpoints may be: as what we see it. The annotation's value; empty for none. */
export const peerPrefixes = (tunnel: Tunnel | undefined): string =>
  [...new Set((tunnel?.status?.views ?? []).map(({ as }) => as))].toSorted().join(',');

/** The slice with nothing ready, and marked; undefined where it is so. */
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

/** The mark taken away; whose slice it is then says what is ready. Undefined where there is none. */
export function released(slice: EndpointSlice): EndpointSlice | undefined {
  const { [ANNOTATION_WITHHELD]: mark, ...annotations } = slice.metadata.annotations ?? {};
  return mark === undefined ? undefined : { ...slice, metadata: { ...slice.metadata, annotations } };
}

const isOut = ({ conditions }: Endpoint): boolean =>
  conditions?.ready === false && conditions.serving === false;

interface TenantNetworkOptions {
  client: KubeClient;
  caches: Caches;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
}

const BY_PEER = 'peer';
const BY_NAMESPACE = 'namespace';
const CONCURRENCY = 4;
/** Writes of one peer's slices at a time. */
const WRITES_AT_ONCE = 8;

/**
 * What the network has to say to tenants, for each peer: in which prefixes its endpoints may be (admission reads that
 * from the tenant namespace, see tenant-services-policy.ts), and which of them are withheld while its tunnel is down.
 */
export class TenantNetwork implements Component {
  readonly name = 'network of tenants';
  readonly #options: TenantNetworkOptions;
  readonly #tunnels: Cache<Tunnel>;
  readonly #namespaces: Cache<Namespace>;
  readonly #slices: Cache<EndpointSlice>;
  readonly #controller: Controller;
  readonly #abort = new AbortController();
  #running: Promise<unknown> = Promise.resolve();

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

  /** Returns at once: where Tunnels are not served, or may not be read, peering goes on without a network. */
  async start(signal: AbortSignal): Promise<void> {
    this.#tunnels.onChange((clusterID, current, previous) => {
      if (!deepEqual(factsOf(current), factsOf(previous))) this.#controller.add(clusterID);
    });
    this.#namespaces.onChange((_key, current, previous) => {
      for (const namespace of [current, previous]) if (namespace) this.#controller.add(peerOf(namespace));
    });
    this.#slices.onChange((key) => {
      const [namespace = ''] = key.split('/');
      const tenant = this.#namespaces.get(namespace);
      if (tenant !== undefined) this.#controller.add(peerOf(tenant));
    });
    const starts = this.#caches.map(async (cache) => cache.start(this.#abort.signal));
    this.#running = Promise.allSettled(starts).then(() => {
      for (const namespace of this.#namespaces.list()) this.#controller.add(peerOf(namespace));
    });
    await this.#controller.start(signal);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#running;
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
    await this.#write(
      slices.flatMap((slice) => change(slice) ?? []),
      signal,
    );
    return {};
  }

  async #bound(tenant: KubeObject, tunnel: Tunnel | undefined, signal: AbortSignal): Promise<void> {
    const prefixes = peerPrefixes(tunnel);
    const annotations = { [ANNOTATION_PEER_PREFIXES]: prefixes === '' ? null : prefixes };
    await patchMetadataIfDiffers<KubeObject>(this.#options.client, namespaces, tenant, {
      annotations,
      signal,
    });
  }

  async #write(changed: EndpointSlice[], signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const work = async (): Promise<void> => {
      for (let slice = changed.shift(); slice !== undefined; slice = changed.shift()) {
        try {
          const kind = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' };
          await client.replace(endpointSlices, { ...kind, ...slice }, { signal });
        } catch (error) {
          // Gone, or written meanwhile: the watch brings that, and it is looked at again.
          if (!hasCode(error, 'NotFound', 'Conflict')) throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(WRITES_AT_ONCE, changed.length) }, work));
  }
}

/** What is acted on; the rest of a Tunnel changes with every probe. */
const factsOf = (tunnel: Tunnel | undefined): unknown =>
  tunnel && [peerPrefixes(tunnel), tunnel.status?.conditions?.find(({ type }) => type === 'Ready')];
