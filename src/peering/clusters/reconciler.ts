import { type ForeignCluster, foreignClusters } from '../../api/foreign-cluster.ts';
import { FINALIZER_PEERING } from '../../api/names.ts';
import { type Tunnel, TUNNEL_CONDITIONS } from '../../api/tunnel.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { addFinalizer, removeFinalizer } from '../../kube/finalizers.ts';
import { deepEqual } from '../../lib/equality.ts';
import { ignoring } from '../../lib/errors.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';
import { mergePatchOf } from '../../lib/merge-patch.ts';
import type { ForeignClusterFacts } from './conditions.ts';
import { DialTargets } from './dial-targets.ts';
import { DiscoveredClusters, graceEndOf, isForgettable } from './discovered.ts';
import { BY_IDENTITY, idOf, isDeleting, isInUse, isPeered, primaryOf } from './foreign-cluster.ts';
import { networkSettlesAt } from './network.ts';
import type { ReconcilerOptions } from './options.ts';
import { endpointsOf, nextExpiryOf } from './sightings.ts';
import { StatusPaces } from './status-paces.ts';
import { forgeStatus, isHandingOver, newsOf, ownPart } from './status.ts';

const CONCURRENCY = 4;
/** A key with this prefix is the ClusterID of a peer; the others are names of ForeignClusters. */
const PEER = 'peer/';
const LEAST_REQUEUE_MS = 250;
const HAND_OVER_MS = 100;
const NO_PEERING = { phase: 'None' } as const;

/** Writes status and finalizer of ForeignClusters, makes those of peers that came by themselves, removes the forgotten ones. */
export class ForeignClusterReconciler {
  readonly #options: ReconcilerOptions;
  readonly #controller: Controller;
  readonly #targets: DialTargets;
  readonly #discovered: DiscoveredClusters;
  readonly #paces: StatusPaces;
  /** By UID, the monotonic time at which we first saw the deletion: the clock of the API server is not trusted alone. */
  readonly #deletions = new Map<string, number>();

  constructor(options: ReconcilerOptions) {
    const { clock, log, metrics } = options;
    this.#options = options;
    this.#controller = new Controller({
      name: 'foreignclusters',
      concurrency: CONCURRENCY,
      reconcile: async (key, { signal }) => this.#reconcile(key, signal),
      clock,
      log,
      ...(metrics && { metrics }),
    });
    this.#targets = new DialTargets(options, (name) => this.#controller.add(name));
    this.#discovered = new DiscoveredClusters(options);
    this.#paces = new StatusPaces(clock);
  }

  components(): Component[] {
    const follow = subscribing('foreign clusters', () => this.#follow());
    return [follow, ...this.#targets.components(), this.#controller];
  }

  policiesChanged(): void {
    for (const { metadata } of this.#options.clusters.list()) this.#controller.add(metadata.name);
    this.#targets.refresh();
  }

  /** What is wanted of that cluster, or how far a peering with it has come, may have changed. */
  peerChanged(clusterID: string): void {
    this.#addPeer(clusterID);
    this.#targets.refresh();
  }

  #follow(): (() => void)[] {
    const { clusters, links, outgoing, incoming, tunnels } = this.#options;
    const onPeer = (clusterID: string): void => this.peerChanged(clusterID);
    const ends = [
      clusters.onChange((key, current, previous) => {
        this.#controller.add(key);
        for (const cluster of [current, previous]) {
          const id = cluster && idOf(cluster);
          if (id !== undefined) this.#addPeer(id);
        }
        this.#targets.refresh();
      }),
      links().onChange(({ clusterID, target }) => {
        if (clusterID !== undefined) onPeer(clusterID);
        if (target !== undefined) this.#controller.add(target);
      }),
      outgoing().onChange(onPeer),
      incoming().onChange(onPeer),
      ...(tunnels === undefined ? [] : [tunnels.onChange((...change) => this.#onTunnel(...change))]),
    ];
    this.policiesChanged();
    for (const { clusterID } of links().views()) this.#addPeer(clusterID);
    return ends;
  }

  /** Round-trip times and bytes change all the time; they are not shown. */
  #onTunnel(clusterID: string, current: Tunnel | undefined, previous: Tunnel | undefined): void {
    const shown = [current, previous].map((tunnel) => [
      tunnel?.spec.peer === undefined,
      tunnel?.status?.conditions?.find(({ type }) => type === TUNNEL_CONDITIONS.ready),
    ]);
    if (deepEqual(shown[0], shown[1])) return;
    const known = this.#options.clusters.byIndex(BY_IDENTITY, clusterID);
    for (const { metadata } of known) this.#controller.add(metadata.name);
  }

  /** Adds all objects about a cluster; where there is none, the cluster itself. */
  #addPeer(clusterID: string): void {
    const known = this.#options.clusters.byIndex(BY_IDENTITY, clusterID);
    for (const { metadata } of known) this.#controller.add(metadata.name);
    if (known.length === 0) this.#controller.add(PEER + clusterID);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    if (key.startsWith(PEER)) return this.#discovered.welcome(key.slice(PEER.length), signal);
    const cluster = this.#options.clusters.get(key);
    if (cluster === undefined) return {};
    if (isDeleting(cluster)) return this.#release(cluster, signal);
    const { client, clock } = this.#options;
    if (isForgettable(cluster, { isInUse: isInUse(this.#options, cluster), now: clock.now() })) {
      return this.#discovered.forget(cluster, signal);
    }
    const seen = this.#factsOf(cluster);
    const change = { finalizer: FINALIZER_PEERING, signal };
    const holds = cluster.metadata.finalizers?.includes(FINALIZER_PEERING) ?? false;
    if (holds !== mustHold(seen)) {
      // The status follows when the cache shows this write: the next write is made from that version.
      await (holds ? removeFinalizer : addFinalizer)(client, foreignClusters, cluster, change);
      return {};
    }
    const waitMs = await this.#writeStatus(seen, signal);
    return waitMs > 0 ? { requeueAfterMs: waitMs } : this.#again(seen);
  }

  #factsOf(cluster: ForeignCluster): ForeignClusterFacts {
    const { clusters, own, links, clock, intent, outgoing, incoming, limits } = this.#options;
    const { name } = cluster.metadata;
    const clusterID = idOf(cluster);
    const siblings = clusterID === undefined ? [cluster] : clusters.byIndex(BY_IDENTITY, clusterID);
    const primary = primaryOf(siblings)?.metadata.name ?? name;
    const view = clusterID === undefined ? undefined : links().view(clusterID);
    const reports = {
      outgoing: clusterID === undefined ? NO_PEERING : outgoing().report(clusterID),
      incoming: clusterID === undefined ? NO_PEERING : incoming().report(clusterID),
    };
    const keep = view !== undefined || isPeered(reports.outgoing, reports.incoming);
    const now = clock.now();
    return {
      cluster,
      clusterID,
      siblings,
      duplicateOf: primary === name ? undefined : primary,
      isOurselves: clusterID === own,
      view,
      problem: links().problem(primary),
      isDialled: this.#targets.dials(primary),
      hasEndpoint: endpointsOf(siblings, { view, now, keep }).length > 0,
      intent: clusterID === undefined ? undefined : intent(clusterID),
      ...reports,
      tunnel: clusterID === undefined ? undefined : this.#options.tunnels?.get(clusterID),
      now,
      incomingTtlMs: limits.incomingTtlMs,
    };
  }

  /**
   * One patch of our own fields where any differs. It names the version, so that it is never made from an old state.
   * Discovery patches its fields without a version, so that of both it is us who try again. Returns how long to wait where it
   * changes too often, in milliseconds.
   */
  async #writeStatus(seen: ForeignClusterFacts, signal: AbortSignal): Promise<number> {
    const { client, events } = this.#options;
    const { cluster } = seen;
    const after = forgeStatus(seen);
    const status = mergePatchOf(ownPart(cluster.status), after);
    if (status === undefined) return 0;
    const waitMs = this.#paces.turn(seen);
    if (waitMs > 0) return waitMs;
    const { name, uid, resourceVersion } = cluster.metadata;
    const patch = { type: 'merge', body: { metadata: { uid, resourceVersion }, status } } as const;
    const writing = client.patch(foreignClusters, { name }, patch, { subresource: 'status', signal });
    if ((await writing.catch(ignoring('NotFound'))) === undefined) return 0;
    const subject = { apiVersion: API_VERSION, kind: 'ForeignCluster', metadata: cluster.metadata };
    for (const { type, reason, message } of newsOf(cluster.status, after)) {
      events.event(subject, type, reason, message);
    }
    return 0;
  }

  /** When time alone will change something: a sighting expires, ours is to be renewed, a grace period ends, a tunnel stays down. */
  #again(seen: ForeignClusterFacts): ReconcileResult {
    const { cluster, view, now, incomingTtlMs } = seen;
    const incoming = cluster.status?.sightings?.Incoming;
    const renewal =
      view?.dialledBy === 'Them' && incoming !== undefined
        ? Date.parse(incoming.expires) - incomingTtlMs / 2
        : undefined;
    const moments = [nextExpiryOf(cluster, now), renewal, graceEndOf(cluster), networkSettlesAt(seen)].filter(
      (moment) => moment !== undefined && moment > now,
    ) as number[];
    if (moments.length === 0) return {};
    return { requeueAfterMs: Math.max(LEAST_REQUEUE_MS, Math.min(...moments) - now) };
  }

  /** Somebody has deleted it, so nothing is wanted any more and both peerings are taken down; then the object may go. */
  async #release(cluster: ForeignCluster, signal: AbortSignal): Promise<ReconcileResult> {
    const { client, log, limits } = this.#options;
    const { name, uid, finalizers = [] } = cluster.metadata;
    if (!finalizers.includes(FINALIZER_PEERING)) return {};
    const seen = this.#factsOf(cluster);
    const leftMs = this.#deletionLeftMs(cluster);
    const isBusy = seen.duplicateOf === undefined && isPeered(seen.outgoing, seen.incoming);
    if (leftMs > 0 && isHandingOver(seen)) return { requeueAfterMs: HAND_OVER_MS };
    if (isBusy && leftMs > 0) {
      const waitMs = await this.#writeStatus(seen, signal);
      return { requeueAfterMs: waitMs > 0 ? Math.min(waitMs, leftMs) : leftMs };
    }
    if (isBusy) {
      log.warn('a peering was not taken down in time; its ForeignCluster is released nevertheless', {
        name,
        afterMs: limits.unpeerMs,
        outgoing: seen.outgoing.phase,
        incoming: seen.incoming.phase,
      });
    }
    await removeFinalizer(client, foreignClusters, cluster, { finalizer: FINALIZER_PEERING, signal });
    this.#deletions.delete(uid);
    return {};
  }

  #deletionLeftMs({ metadata }: ForeignCluster): number {
    const { clock, limits } = this.#options;
    const { uid, deletionTimestamp = '' } = metadata;
    const first = this.#deletions.get(uid) ?? clock.monotonic();
    this.#deletions.set(uid, first);
    const ageMs = Math.max(clock.monotonic() - first, clock.now() - Date.parse(deletionTimestamp));
    return limits.unpeerMs - ageMs;
  }
}

/** Whether the object needs our finalizer: while something may have to be taken down, its deletion waits for that. */
function mustHold({
  clusterID,
  duplicateOf,
  isOurselves,
  intent,
  outgoing,
  incoming,
}: ForeignClusterFacts): boolean {
  if (clusterID === undefined || duplicateOf !== undefined || isOurselves) return false;
  return intent?.wanted === true || isPeered(outgoing, incoming);
}
