/**
 * The parts of peering, put together: each knows the others by small ports only (src/peering/ports.ts). What reads
 * starts before what acts, and the links when lending and borrowing know what they have to say: a document that is
 * missing would take back what was granted.
 */
import type { Registry } from 'prom-client';

import { acceptancePolicies, type AcceptancePolicy } from '../api/acceptance-policy.ts';
import { forwardingOf } from '../api/cluster-mode.ts';
import { type ForeignCluster, foreignClusters } from '../api/foreign-cluster.ts';
import type { OwnAnnouncement } from '../api/own-announcement.ts';
import { type SearchDomain, searchDomains } from '../api/search-domain.ts';
import { sharingPolicies, type SharingPolicy } from '../api/sharing-policy.ts';
import { type Tunnel, tunnels } from '../api/tunnel.ts';
import { CLUSTER_NAME } from '../api/manifest.ts';
import { ManualSource } from '../discovery/manual.ts';
import { AnnouncementWriter } from '../discovery/own-announcement.ts';
import { foreignClusterIndexes, SightingWriter } from '../discovery/sighting-writer.ts';
import { WanSource } from '../discovery/wan/wan-source.ts';
import { Guardian } from '../hosting/guardian/guardian.ts';
import { guestAdmission } from '../hosting/guests/webhook.ts';
import { NativeEndpoints } from '../hosting/tenants/native-endpoints.ts';
import { TenantNetwork } from '../hosting/tenants/tenant-network.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import type { ClusterBasics, KubeClient } from '../kube/client.ts';
import type { ControllerMetrics } from '../kube/controller.ts';
import type { Credentials } from '../kube/credentials.ts';
import { ClientEventRecorder } from '../kube/events.ts';
import { systemRandom } from '../lib/backoff.ts';
import { hostAndPort, parseEndpoint } from '../lib/endpoint.ts';
import { present } from '../lib/fields.ts';
import { type Component, subscribing } from '../lib/lifecycle.ts';
import { isOnLoopback } from '../lib/never-dialled.ts';
import { Borrowing } from '../peering/borrowing/borrowing.ts';
import { clusterIndexes, Clusters } from '../peering/clusters/clusters.ts';
import { peeringMetrics } from '../peering/metrics.ts';
import { PeeringCertificate } from '../peering/identity/certificate.ts';
import type { ClusterIdentity } from '../peering/identity/store.ts';
import { Lending } from '../peering/lending/lending.ts';
import { LinkRegistry } from '../peering/link/registry.ts';
import { ModeKeeper } from '../peering/mode/mode.ts';
import { StockWatcher } from '../peering/offer/stock-watcher.ts';
import type { AgentLauncher } from '../peering/ports.ts';
import { type ApiAccess, PROTOCOLS } from '../peering/protocol/documents.ts';
import { REACH_PORTS, type ReachAddress, type ReachPeers } from '../peering/reach/ports.ts';
import { Reach } from '../peering/reach/reach.ts';
import type { PeeringEndpoint } from '../server/peering/endpoint.ts';
import { VERSION } from '../version.ts';
import { dashboard } from './dashboard.ts';
import { networkExchange, type NetworkExchangeOptions } from './network-exchange.ts';
import { offeredServices } from './offered-services.ts';
import { OffloadingParts } from './offloading.ts';
import { ourPlaces, type OurPlacesParts } from './our-places.ts';
import { type AgentParts, paused } from './parts.ts';
import { peeringEndpoint } from './peering-endpoint.ts';
import { policyStatus } from './policy-status.ts';

interface PeeringOptions {
  parts: AgentParts;
  home: KubeClient;
  /** Of the process. */
  caches: Caches;
  /** How we reach our own API server. */
  credentials: Pick<Credentials, 'server' | 'ca' | 'tlsServerName'>;
  /** Loaded. */
  identity: ClusterIdentity;
  launcher: AgentLauncher;
  metrics: ControllerMetrics;
  /** Of the process. */
  registry: Registry;
  /** Whether API servers come by our Service. */
  inPod: boolean;
  /** Where agents reach API servers of providers that we cannot reach directly. */
  reachAt: ReachAddress;
  exchangeMetrics: NetworkExchangeOptions['exchangeMetrics'];
}

const MS = 1000;

export class Peering {
  readonly #options: PeeringOptions;
  readonly #common: ClusterBasics & { caches: Caches };
  readonly #events: ClientEventRecorder;
  readonly #seen: Cache<ForeignCluster>;
  readonly #domains: Cache<SearchDomain>;
  readonly #acceptance: Cache<AcceptancePolicy>;
  readonly #sharing: Cache<SharingPolicy>;
  readonly #tunnels: Cache<Tunnel>;
  readonly #certificate: PeeringCertificate;
  readonly #stock: StockWatcher;
  readonly #ours: OurPlacesParts;
  readonly #clusters: Clusters;
  readonly #mode: ModeKeeper;
  readonly #lending: Lending;
  readonly #offloading: OffloadingParts;
  readonly #borrowing: Borrowing;
  readonly #network: ReturnType<typeof networkExchange>;
  readonly #services: ReturnType<typeof offeredServices>;
  readonly #links: LinkRegistry;
  readonly #reach: Reach;
  readonly #endpoint: PeeringEndpoint;

  constructor(options: PeeringOptions) {
    this.#options = options;
    const { parts, home, caches, identity } = options;
    const { clock, log, config } = parts;
    const common = (this.#common = { client: home, caches, clock, log });
    this.#events = new ClientEventRecorder({ ...common, component: 'tributary' });
    const indexes = { ...clusterIndexes, ...foreignClusterIndexes };
    this.#seen = caches.of(foreignClusters, { indexes });
    peeringMetrics(options.registry, () => this.#seen.list());
    this.#domains = caches.of(searchDomains);
    this.#acceptance = caches.of(acceptancePolicies);
    this.#sharing = caches.of(sharingPolicies);
    this.#tunnels = caches.of(tunnels);
    const lifeMs = config.leafSeconds * MS;
    const [random, signer] = [systemRandom, identity];
    this.#ours = ourPlaces({ ...common, credentials: options.credentials });
    this.#certificate = new PeeringCertificate({ signer, clock, log, random, lifeMs });
    this.#stock = new StockWatcher(common);
    this.#clusters = this.#makeClusters();
    this.#reach = this.#makeReach();
    this.#lending = this.#makeLending();
    this.#offloading = this.#makeOffloading();
    this.#mode = this.#makeMode();
    this.#borrowing = this.#makeBorrowing();
    this.#network = networkExchange({
      ...options,
      own: identity.clusterID,
      isLinked: (clusterID) => this.#links.view(clusterID) !== undefined,
      services: () => this.#services,
      lending: this.#lending,
    });
    this.#services = this.#makeServices();
    this.#links = this.#makeLinks();
    this.#endpoint = peeringEndpoint({
      parts,
      certificate: this.#certificate,
      links: this.#links,
      reach: this.#reach,
      clusters: this.#clusters,
      seen: this.#seen,
    });
  }

  /** In the order of their start. */
  components(): Component[] {
    const { parts, identity, metrics } = this.#options;
    const common = { ...this.#common, metrics, clusters: this.#seen, ownClusterID: identity.clusterID };
    const sources = [new WanSource({ ...common, domains: this.#domains }), new ManualSource(common)];
    const { systemNamespace: namespace, peeringPort } = parts.config;
    const own = (): OwnAnnouncement => this.#announcement();
    const announcement = new AnnouncementWriter({ ...this.#common, namespace, own });
    // The announcement may come before we listen: mDNS probes for a second first, and a peer that fails to connect tries again.
    const isPortKnown = peeringPort !== 0;
    return [
      this.#events,
      ...(isPortKnown ? [announcement] : []),
      this.#seen,
      this.#domains,
      this.#acceptance,
      this.#sharing,
      this.#tunnels,
      this.#mode.cache(),
      this.#certificate,
      ...this.#clusters.caches(),
      this.#stock,
      this.#reach,
      ...this.#offloading.caches(),
      ...this.#ours.components,
      ...this.#borrowing.caches(),
      ...this.#lending.components(),
      ...new Guardian({ ...this.#common, metrics, events: this.#events }).components(),
      new TenantNetwork({ ...this.#common, metrics }),
      new NativeEndpoints({ ...this.#common, metrics }),
      ...this.#network.components(),
      ...this.#services.components(),
      this.#wiring(),
      this.#endpoint,
      this.#links,
      ...this.#borrowing.actors(),
      ...this.#offloading.actors(),
      ...this.#clusters.components(),
      ...this.#mode.actors(),
      ...this.#policyStatus(),
      ...sources.flatMap((source) => [source, new SightingWriter({ ...common, source })]),
      ...dashboard({ ...this.#options, pods: this.#stock.pods }),
      ...(isPortKnown ? [] : [announcement]),
    ];
  }

  #policyStatus(): Component[] {
    return policyStatus({
      ...this.#common,
      metrics: this.#options.metrics,
      sharing: this.#sharing,
      acceptance: this.#acceptance,
      lending: this.#lending,
      borrowing: this.#borrowing,
      clusters: this.#clusters,
      stock: this.#stock,
    });
  }

  #makeClusters(): Clusters {
    const { parts, identity, metrics } = this.#options;
    return new Clusters({
      ...this.#common,
      metrics,
      events: this.#events,
      own: identity.clusterID,
      systemNamespace: parts.config.systemNamespace,
      clusters: this.#seen,
      acceptance: this.#acceptance,
      sharing: this.#sharing,
      tunnels: this.#tunnels,
      links: () => this.#links,
      outgoing: () => this.#borrowing,
      incoming: () => this.#lending,
      ties: (clusterID) => this.#mode.ties(clusterID),
    });
  }

  #makeMode(): ModeKeeper {
    return new ModeKeeper({
      ...this.#common,
      metrics: this.#options.metrics,
      events: this.#events,
      own: this.#options.identity.clusterID,
      clusters: this.#seen,
      sharing: this.#sharing,
      virtualNodes: this.#offloading.offloading.virtualNodes,
      links: () => this.#links,
      outgoing: () => this.#borrowing,
      incoming: () => this.#lending,
      isBringingBack: () => this.#offloading.offloading.isBringingBack,
      hasForwarded: () => this.#offloading.offloading.hasForwarded,
      intent: (clusterID) => this.#clusters.intent(clusterID),
    });
  }

  #makeReach(): Reach {
    const { parts, reachAt } = this.#options;
    const peers: ReachPeers = {
      isLinked: (clusterID) => this.#links.view(clusterID) !== undefined,
      endpoints: (clusterID) => this.#links.endpoints(clusterID),
      askDial: async (clusterID, stream, signal) => this.#links.call(clusterID, 'dial', { stream }, signal),
      dial: async (target, signal) => this.#links.dialer.open({ ...target, signal }, paused),
    };
    return new Reach({
      ...this.#common,
      log: parts.log.named('reach'),
      peers,
      mayReach: (clusterID) => this.#lending.serves(clusterID),
      apiServer: () => hostAndPort(this.#options.credentials.server),
      listen: { ...reachAt, ports: REACH_PORTS },
    });
  }

  #makeLending(): Lending {
    const { parts, identity, metrics, credentials } = this.#options;
    const { apiServer, credentialSeconds, drainSeconds, systemNamespace } = parts.config;
    const own: ApiAccess = {
      server: credentials.server.origin,
      ...present({ ca: credentials.ca, serverName: credentials.tlsServerName }),
    };
    return new Lending({
      ...this.#common,
      metrics,
      events: this.#events,
      identity,
      systemNamespace,
      stock: this.#stock,
      intents: this.#clusters,
      links: { view: (clusterID) => this.#links.view(clusterID) },
      ...(apiServer !== undefined && { api: { ...own, server: apiServer } }),
      ownApi: own,
      tokenSeconds: credentialSeconds,
      endGraceMs: drainSeconds * MS,
    });
  }

  #makeOffloading(): OffloadingParts {
    const { parts, home, caches, metrics, registry, inPod } = this.#options;
    return new OffloadingParts({
      parts,
      home,
      caches,
      metrics,
      registry,
      inPod,
      events: this.#events,
      tether: () => forwardingOf(this.#mode.current()),
      guests: guestAdmission({
        ...this.#common,
        account: { namespace: parts.config.systemNamespace, name: CLUSTER_NAME },
        pods: this.#stock.pods,
        tenants: this.#lending.tenants,
        heedless: (peer, why) => this.#lending.suspend(peer, why),
      }),
      peerNamespaces: {
        stateOf: (clusterID, namespace) => this.#borrowing.mappingState(clusterID, namespace),
        isNamed: (clusterID, namespace) => this.#borrowing.isNamed(clusterID, namespace),
        onChange: (listener) => this.#borrowing.onChange(listener),
      },
    });
  }

  #makeBorrowing(): Borrowing {
    const { parts, identity, launcher, metrics, credentials } = this.#options;
    const { clusterName, systemNamespace, homeApiServer, drainSeconds } = parts.config;
    return new Borrowing({
      ...this.#common,
      metrics,
      events: this.#events,
      identity,
      clusterName,
      intents: this.#clusters,
      offloadings: this.#offloading.offloading,
      links: () => this.#links,
      reach: this.#reach,
      wayTo: (clusterID) => (this.#reach.wayTo(clusterID) === 'DialBack' ? 'DialBack' : 'Link'),
      launcher,
      systemNamespace,
      ...(homeApiServer && { homeApiServer }),
      ours: this.#ours.read,
      drain: { evictMs: drainSeconds * 1000 },
      ...present({ proxies: parts.config.proxies }),
      allowLoopback: isOnLoopback(credentials.server),
    });
  }

  #makeServices(): ReturnType<typeof offeredServices> {
    return offeredServices({
      ...this.#common,
      metrics: this.#options.metrics,
      events: this.#events,
      lending: this.#lending,
      clusters: this.#clusters,
      ownPods: this.#network,
      links: () => this.#links,
    });
  }

  #makeLinks(): LinkRegistry {
    const { parts, identity, credentials } = this.#options;
    const { clusterName, advertise } = parts.config;
    return new LinkRegistry({
      allowLoopback: isOnLoopback(credentials.server),
      ...present({ proxies: parts.config.proxies }),
      clock: parts.clock,
      log: parts.log.named('links'),
      random: systemRandom,
      identity,
      certificate: this.#certificate,
      self: () => ({ clusterName, software: VERSION, endpoints: advertise }),
      networkKeys: () => this.#clusters.networkKeys(),
      lending: this.#lending,
      borrowing: this.#borrowing,
      network: this.#network,
      services: this.#services,
      dialBack: async (peer, params, signal) => this.#reach.dialBack(peer, params, signal),
    });
  }

  /** Passes changes of one part on to others while all of them run. */
  #wiring(): Component {
    return subscribing('peering wiring', () => [
      this.#mode.onChange(() => {
        this.#clusters.tiesChanged();
        this.#offloading.offloading.tetherChanged();
      }),
      this.#mode.onTies((clusterID) => this.#clusters.tiesChanged(clusterID)),
      this.#lending.onChange((clusterID) => {
        if (!this.#lending.serves(clusterID)) this.#reach.revoke(clusterID);
        this.#links.publish(clusterID);
      }),
      this.#clusters.onChange((clusterID) => this.#links.publish(clusterID)),
      this.#network.onChange((clusterID) => this.#links.publish(clusterID)),
      this.#services.onOffer((clusterID) => this.#links.publish(clusterID)),
      this.#clusters.onNetworkKeys(() => this.#links.describe()),
    ]);
  }

  #announcement(): OwnAnnouncement {
    const { parts, identity } = this.#options;
    const { clusterName, advertise, peeringPort } = parts.config;
    const [first] = advertise;
    // Peers dial the advertised port; if none is advertised, the port that we listen on.
    const port = first === undefined ? (this.#endpoint.port ?? peeringPort) : parseEndpoint(first).port;
    return { clusterID: identity.clusterID, clusterName, endpoints: advertise, port, protocols: PROTOCOLS };
  }
}
