import { type ForeignCluster, foreignClusters } from '../../api/foreign-cluster.ts';
import { ANY_ADDRESSES, type Tunnel, tunnels } from '../../api/tunnel.ts';
import type { Cache } from '../../kube/cache.ts';
import { Controller, type ControllerMetrics } from '../../kube/controller.ts';
import { deepEqual } from '../../lib/equality.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Listeners, Subscriptions } from '../../lib/listeners.ts';
import { GatewayAbsence } from './absence.ts';
import { AddressBook } from './address-book.ts';
import type { NetworkDocument } from '../../api/peer-documents.ts';
import { checkDocument, composeDocument } from './document.ts';
import { Inbox } from './inbox.ts';
import { type OwnNetworkOptions, OwnNetworkPublisher } from './own-network.ts';
import { PresharedKeys } from './preshared.ts';
import {
  type NetworkPeer,
  networkPeers,
  type NetworkPeers,
  podViews,
  serviceRangesFor,
  transitFor,
  type TunnelServices,
} from './tunnel-spec.ts';
import { type ExchangeMetrics, TunnelReconciler } from './tunnels.ts';

export interface ExchangeOptions extends Omit<OwnNetworkOptions, 'metrics'> {
  /** Our ClusterID. */
  own: string;
  /** Whether a peer of which its ForeignCluster does not say so may keep its own addresses. */
  identityViews: boolean;
  /** Whether tunnels get a preshared key as well. */
  presharedKeys: boolean;
  /** Whether there is a peering link to that cluster now. */
  isLinked: (clusterID: string) => boolean;
  /** Services between the two clusters, for the gateways. `onChange` is as that of this class. */
  services?: {
    of(clusterID: string): TunnelServices;
    onChange(listener: (clusterID: string) => void): () => void;
  };
  /**
   * Whether a policy of ours keeps a peer's pods here from the API server of their home. `onChange` is as that of this class.
   * Default: none does.
   */
  homeApiServers?: {
    isForbidden(clusterID: string): boolean;
    onChange(listener: (clusterID: string) => void): () => void;
  };
  metrics?: ControllerMetrics;
  exchangeMetrics?: ExchangeMetrics;
}

const CONCURRENCY = 4;
const MAX_TOLD = 5;

/**
 * The network between this cluster and its peers, as they agree on it by documents: what each peer is told, what each has said, and
 * the Tunnel that follows. Without a gateway nothing is said and nothing is made.
 *
 *     ForeignCluster, Nodes, tributary-gateway ──▶ documents ──▶ peers
 *     peers ──▶ received ──▶ Tunnel.spec ──▶ IPAM ──▶ Tunnel.status.views ──▶ documents
 */
export class Exchange {
  readonly #options: ExchangeOptions;
  readonly #tunnels: Cache<Tunnel>;
  readonly #clusters: Cache<ForeignCluster>;
  readonly #keeper: OwnNetworkPublisher;
  readonly #preshared: PresharedKeys;
  readonly #absence: GatewayAbsence;
  readonly #inbox: Inbox;
  readonly #book: AddressBook;
  readonly #reconciler: TunnelReconciler;
  readonly #controller: Controller;
  readonly #listeners = new Listeners<[clusterID: string]>();
  /** Calls back when what we say to that cluster may have changed; the returned function ends that. */
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#listeners.add;
  #peers: NetworkPeers = new Map();
  #isReady = false;

  constructor(options: ExchangeOptions) {
    const log = options.log.named('exchange');
    this.#options = { ...options, log };
    const { client, caches, clock, random, metrics, own, namespace, presharedKeys } = options;
    const { isLinked, viewPools } = options;
    const common = { client, clock, log, ...(random && { random }) };
    this.#tunnels = caches.of(tunnels);
    this.#clusters = caches.of(foreignClusters);
    this.#keeper = new OwnNetworkPublisher({ ...options, log });
    this.#preshared = new PresharedKeys({ client, caches, namespace, own, enabled: presharedKeys });
    this.#absence = new GatewayAbsence({
      ...common,
      namespace,
      tunnels: this.#tunnels,
      ...(metrics && { metrics }),
    });
    this.#inbox = new Inbox({ isPeered: (clusterID) => this.#peers.has(clusterID), isLinked });
    this.#book = new AddressBook({
      pools: viewPools,
      reserved: () => this.#keeper.reserved(),
      avoided: () => this.#keeper.localRoutes(),
      log,
    });
    this.#reconciler = this.#makeReconciler();
    this.#controller = new Controller({
      ...common,
      name: 'tunnels',
      concurrency: CONCURRENCY,
      reconcile: async (key, context) => this.#reconciler.reconcile(key, context),
      ...(metrics && { metrics }),
    });
  }

  /** In the order in which they are started, before the peering links. */
  components(): Component[] {
    return [
      this.#tunnels,
      this.#clusters,
      ...this.#keeper.caches(),
      ...this.#preshared.caches(),
      this.#wiring(),
      ...this.#keeper.actors(),
      ...this.#absence.actors(),
      this.#controller,
    ];
  }

  /** What we say to that cluster now. Throws Unavailable while not all of it is known. */
  documents(clusterID: string): { network?: NetworkDocument } {
    if (!this.#isReady)
      throw new TributaryError('Unavailable', 'it is not known yet what of the network to tell');
    const peer = this.#peers.get(clusterID);
    const own = this.#keeper.current;
    if (peer === undefined || own === undefined) return {};
    const tunnel = this.#tunnels.get(clusterID);
    const presharedHalf = this.#preshared.half(clusterID);
    const network = composeDocument({
      facts: own.facts,
      own: own.network,
      ...(tunnel && { tunnel }),
      transit: this.#transit(peer),
      ...(presharedHalf !== undefined && { presharedHalf }),
    });
    return { network };
  }

  /** Prefixes of our pods that this cluster is told of, where it may reach any; undefined while that is not known. */
  podsFor(clusterID: string): readonly string[] | undefined {
    const own = this.#keeper.current?.network;
    if (!this.#isReady || own === undefined) return undefined;
    const peer = this.#peers.get(clusterID);
    return peer === undefined || peer.access === 'None' ? [] : own.pods;
  }

  /** Takes a document whose form was checked, from a peer whose identity is proved. Throws what the peer is to be told. */
  async received(
    { clusterID }: { clusterID: string },
    { network }: { network?: NetworkDocument | null },
  ): Promise<void> {
    await Promise.resolve();
    if (network === undefined) return;
    const { document, problems } =
      network === null ? { document: null, problems: [] } : checkDocument(network);
    if (!this.#inbox.hear(clusterID, document)) {
      throw new TributaryError('Unavailable', 'the network is not agreed on yet');
    }
    if (this.#peers.has(clusterID)) this.#controller.add(clusterID);
    if (problems.length === 0) return;
    const more = problems.length > MAX_TOLD ? `; and ${problems.length - MAX_TOLD} more` : '';
    throw new TributaryError('Invalid', `network: ${problems.slice(0, MAX_TOLD).join('; ')}${more}`);
  }

  #makeReconciler(): TunnelReconciler {
    const { client, log, exchangeMetrics, services, homeApiServers } = this.#options;
    return new TunnelReconciler({
      client,
      log,
      tunnel: (clusterID) => this.#tunnels.get(clusterID),
      peer: (clusterID) => this.#peers.get(clusterID),
      isStillPeered: async (clusterID, signal) => this.#isStillPeered(clusterID, signal),
      heard: (clusterID) => this.#inbox.get(clusterID),
      forgotten: (clusterID) => this.#inbox.forget(clusterID),
      ownID: this.#options.own,
      again: (clusterID) => this.#controller.add(clusterID),
      own: () => {
        const { network, facts } = this.#keeper.current ?? {};
        return network && facts && { network, publicKey: facts.publicKey };
      },
      transit: (peer) => this.#transit(peer),
      ...(services && { services: (clusterID) => services.of(clusterID) }),
      forbidsHomeApiServer: (clusterID) => homeApiServers?.isForbidden(clusterID) ?? false,
      book: this.#book,
      preshared: this.#preshared,
      ...(exchangeMetrics && { metrics: exchangeMetrics }),
    });
  }

  async #isStillPeered(clusterID: string, signal: AbortSignal): Promise<boolean> {
    const { items } = await this.#options.client.list(foreignClusters, { signal });
    if (!this.#networkPeers(items).has(clusterID)) return false;
    this.#clusters.relist(`the cache has no peering with ${clusterID}`);
    return true;
  }

  #networkPeers(clusters: Iterable<ForeignCluster>): NetworkPeers {
    return networkPeers(clusters, this.#options.identityViews ? { ownAddresses: [ANY_ADDRESSES] } : {});
  }

  /** To the peer, our ClusterIPs are one more prefix that we forward for our pods: it need not know what they are. */
  #transit(peer: NetworkPeer): string[] {
    const ranges = serviceRangesFor(peer, this.#keeper.current?.network ?? {});
    return [...transitFor(peer, this.#tunnels.list(), this.#peers), ...ranges];
  }

  /** Starts when all caches are filled, so that all stored views are known before the first one is assigned. */
  #wiring(): Component {
    const subscriptions = new Subscriptions();
    return {
      name: 'exchange wiring',
      start: () => {
        this.#peers = this.#networkPeers(this.#clusters.list());
        this.#book.restore(this.#tunnels.list());
        this.#reconciler.restore(this.#tunnels.list());
        subscriptions.add(
          this.#tunnels.onChange((key, current, previous) => this.#onTunnel(key, current, previous)),
          this.#clusters.onChange(() => this.#onClusters()),
          this.#keeper.onChange(() => this.#lookAtAll()),
          this.#options.services?.onChange((clusterID) => this.#controller.add(clusterID)) ??
            (() => undefined),
          this.#options.homeApiServers?.onChange((clusterID) => this.#controller.add(clusterID)) ??
            (() => undefined),
          this.#preshared.onChange(() => {
            this.#lookAtAll();
            for (const clusterID of this.#preshared.peers()) this.#controller.add(clusterID);
          }),
        );
        // Also clusters that are no peers any more, but of which something is left.
        for (const { metadata } of this.#tunnels.list()) this.#controller.add(metadata.name);
        for (const clusterID of this.#preshared.peers()) this.#controller.add(clusterID);
        this.#isReady = true;
        this.#lookAtAll();
      },
      stop: () => {
        subscriptions.end();
      },
    };
  }

  #onTunnel(key: string, current: Tunnel | undefined, previous: Tunnel | undefined): void {
    const isNews = !deepEqual(saidOf(current), saidOf(previous));
    const { metadata, spec } = current ?? {};
    const before = previous?.metadata;
    if (
      isNews ||
      !deepEqual(spec, previous?.spec) ||
      !deepEqual(metadata?.annotations, before?.annotations)
    ) {
      this.#look(key);
    }
    // Our pods at one peer are reached through us by those at the others.
    if (!deepEqual(forwardedOf(current), forwardedOf(previous))) this.#lookAtAll();
  }

  #onClusters(): void {
    const before = this.#peers;
    this.#peers = this.#networkPeers(this.#clusters.list());
    const changed = [...new Set([...before.keys(), ...this.#peers.keys()])].filter(
      (id) => !deepEqual(before.get(id), this.#peers.get(id)),
    );
    if (changed.length === 0) return;
    for (const clusterID of changed) this.#look(clusterID);
    this.#lookAtAll();
  }

  #lookAtAll(): void {
    for (const clusterID of this.#peers.keys()) this.#look(clusterID);
  }

  #look(clusterID: string): void {
    this.#controller.add(clusterID);
    this.#listeners.tell(clusterID);
  }
}

const saidOf = (tunnel: Tunnel | undefined): unknown =>
  tunnel && { views: tunnel.status?.views, refused: tunnel.status?.refused, uid: tunnel.metadata.uid };

const forwardedOf = (tunnel: Tunnel | undefined): unknown =>
  tunnel && { transit: tunnel.spec.transit, views: podViews(tunnel.status?.views) };
