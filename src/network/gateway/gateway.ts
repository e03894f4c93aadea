import {
  GATEWAY_CONFIG_MAP,
  NETWORK_CONFIG_MAP,
  type OwnNetwork,
  PRESHARED_SECRET,
  readOwnNetwork,
  WIREGUARD_SECRET,
} from '../../api/own-network.ts';
import type { Tunnel } from '../../api/tunnel.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { joinEndpoint } from '../../lib/endpoint.ts';
import { errorMessage } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Subscriptions } from '../../lib/listeners.ts';
import { exportedTo } from '../exchange/document.ts';
import type { HostConfig, HostReport, WireGuardPeerState } from '../host/host-config.ts';
import { gatewayPlan } from '../plan/gateway.ts';
import { AbroadPods } from './abroad-pods.ts';
import { inStep, knockAgainMs, observeAgainMs } from './calm.ts';
import { GatewayCaches } from './caches.ts';
import { LastingReport } from './host-report.ts';
import { TunnelKey } from './key.ts';
import { LocalRoutes, localRoutes, ROUTES_MS } from './local-routes.ts';
import { NodeWatch } from './node-watch.ts';
import type { GatewayOptions } from './options.ts';
import { keepaliveSeconds, PeerWatch } from './peer-watch.ts';
import {
  gatewayPeers,
  hasToken,
  hostedByPeer,
  neverDialled,
  probeTargets,
  refusedPeers,
  waysOf,
} from './peers.ts';
import { Reports } from './reports.ts';
import { differInNumbersOnly } from '../tunnel-numbers.ts';
import { EndpointResolver } from './resolver.ts';
import { StrayPods } from './stray-pods.ts';

/** How often the host is set without any news, to put back what was removed unnoticed. */
const RESYNC_MS = 30_000;
/** How soon the host is set again while WireGuard is not running or the kernel refuses something. */
const PROBLEM_MS = 1000;
/** How soon it is asked again whether we lead. Nothing tells of a Lease that is renewed late, and packets may be lost till then. */
const LEADING_MS = 250;

/** How many problems of the host are logged at once. */
const MOST_LOGGED = 16;

type Key = 'key' | 'host' | 'observe' | 'routes' | 'nodes';

/**
 * The active gateway. It is level-triggered: each step reads all it needs from the caches and from the host.
 *
 *     key      make the Secret, tell peers the public half, then use the key
 *     routes   routes of others on this host, which views of peers avoid; apart from `key`, which does not wait for them
 *     nodes    knocks at every other node, through VXLAN; who does not answer is told beside the key
 *     host     caches ── plan ── host.set; again after any change, by us or by others
 *     observe  WireGuard and probes ── where each peer is dialled, status, metrics; every second, and every ten while all answer
 *
 * It is started by the holder of the Lease only. Stopping leaves the host as it is.
 */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #caches: GatewayCaches;
  readonly #abroad: AbroadPods;
  readonly #strays: StrayPods;
  readonly #keys: TunnelKey;
  readonly #routes: LocalRoutes;
  readonly #nodes: NodeWatch;
  readonly #resolver: EndpointResolver;
  readonly #watch: PeerWatch;
  readonly #reports: Reports;
  readonly #controller: Controller;
  #report: HostReport | undefined;
  readonly #settled = new LastingReport();
  #observed = false;
  /** The ways to peers' gateways that the host was last set with. */
  #led: ReadonlySet<string> = new Set();
  /** The peers as WireGuard last told them, and why it does not tell them any more. */
  #states: readonly WireGuardPeerState[] = [];
  #untold = '';
  /** Public keys. */
  readonly #warnedOf = new Set<string>();
  readonly #subscriptions = new Subscriptions();

  constructor(options: GatewayOptions) {
    const { client, clock, log, namespace, probeSeconds, events, controllerMetrics } = options;
    this.#options = options;
    const caches = new GatewayCaches(options.caches, namespace);
    this.#caches = caches;
    const { virtualNodes } = caches;
    this.#routes = new LocalRoutes({ host: options.host, events });
    this.#nodes = new NodeWatch({ log: log.named('nodes'), ...options.nodes });
    const wake = (): void => this.#add('host');
    const abroad = (this.#abroad = new AbroadPods({ client, clock, log, virtualNodes, onChange: wake }));
    const isVirtual = (node: string): boolean => abroad.isVirtual(node);
    this.#strays = new StrayPods({ client, clock, log, caches, isVirtual, onChange: wake });
    this.#resolver = new EndpointResolver({
      clock,
      log: log.named('endpoints'),
      lookUp: options.lookUp,
      onChange: () => this.#add('observe'),
    });
    this.#watch = new PeerWatch({ clock, resolver: this.#resolver, silenceMs: probeSeconds * 2500 });
    this.#keys = new TunnelKey({
      client,
      log: log.named('key'),
      namespace,
      secret: () => caches.one(caches.privateKey, WIREGUARD_SECRET),
      published: () => caches.one(caches.published, GATEWAY_CONFIG_MAP),
      endpoints: () => this.#endpoints(),
      node: options.nodeName,
      localRoutes: () => this.#localRoutes(),
      ...(options.nameServers && { nameServers: options.nameServers }),
      silentNodes: () => this.#nodes.silent,
    });
    const metrics = controllerMetrics && { metrics: controllerMetrics };
    this.#reports = new Reports({ client, clock, log, events, tunnels: caches.tunnels, ...metrics });
    this.#controller = new Controller({
      name: 'gateway',
      concurrency: 4,
      clock,
      log,
      ...metrics,
      reconcile: async (key, { signal }) => inStep(await this.#reconcile(key as Key, signal), clock),
    });
  }

  /** Caches that a standby keeps filled, so that it need not ask when it takes over. In the order of their start. */
  caches(): Component[] {
    return [...this.#caches.components(), this.#abroad, this.#strays];
  }

  /** The part that acts, started after the caches by the holder of the Lease. In the order of their start. */
  components(): Component[] {
    const entry: Component = {
      name: 'gateway wiring',
      start: () => this.#wire(),
      stop: () => this.#subscriptions.end(),
    };
    return [this.#reports.controller, this.#controller, entry];
  }

  #add(key: Key): void {
    this.#controller.add(key);
  }

  #wire(): void {
    const { host, prober } = this.#options;
    const { tunnels, network, published, privateKey, preshared, namespaces, hostedPods } = this.#caches;
    const wake = (...keys: Key[]) => {
      return (): void => keys.forEach((key) => this.#add(key));
    };
    this.#subscriptions.add(
      tunnels.onChange((_, current, previous) => {
        if (!differInNumbersOnly(current, previous)) wake('host', 'observe')();
      }),
      network.onChange(wake('key', 'host')),
      published.onChange(wake('key')),
      privateKey.onChange(wake('key')),
      preshared.onChange(wake('host')),
      namespaces.onChange(wake('host')),
      hostedPods.onChange(wake('host')),
      host.onChange(wake('host')),
      // The path MTU is part of the plan.
      prober.onChange(wake('observe', 'host')),
      prober.onMiss(wake('observe')),
    );
    wake('key', 'host', 'observe', 'routes', 'nodes')();
  }

  async #reconcile(key: Key, signal: AbortSignal): Promise<ReconcileResult | void> {
    if (key === 'host') return this.#setHost(signal);
    if (key === 'observe') return this.#observe();
    if (key === 'routes') return this.#lookAtRoutes();
    if (key === 'nodes') return this.#knock();
    if (await this.#keys.step(signal)) this.#add('host');
  }

  async #lookAtRoutes(): Promise<ReconcileResult> {
    await this.#routes.read();
    this.#routes.warn(this.#caches.liveTunnels(), this.#localRoutes() ?? []);
    this.#add('key');
    return { requeueAfterMs: ROUTES_MS };
  }

  async #knock(): Promise<ReconcileResult> {
    const { nodeName, probeSeconds, leading } = this.#options;
    const network = this.#network();
    if (network !== undefined && this.#report !== undefined && leading()) {
      if (await this.#nodes.look(network, nodeName)) this.#add('key');
    }
    return { requeueAfterMs: knockAgainMs(probeSeconds, this.#nodes.isCalm) };
  }

  async #setHost(signal: AbortSignal): Promise<ReconcileResult> {
    if (!this.#options.leading()) return { requeueAfterMs: LEADING_MS };
    const desired = this.desired();
    // Without our own ranges nothing is decided, above all no removal, and neither before it is known where peers and pods are.
    if (desired === undefined || !this.#observed) return { requeueAfterMs: RESYNC_MS };
    const { host, log, responder, clock } = this.#options;
    const before = this.#report?.problems ?? [];
    const network = this.#network();
    const leading = new Set(waysOf(this.#caches.liveTunnels(), network));
    // While the host is being changed, nobody knows what it does.
    this.#led = this.#led.intersection(leading);
    const report = await host.set(desired, signal);
    if (report.isUnfiltered !== true && leading.size > this.#led.size) {
      this.#led = leading;
      this.#add('observe');
    }
    this.#report = report;
    this.#settled.learn(report, clock.monotonic());
    responder.setAddress(network?.gatewayAddress);
    if (report.changes > 0) log.info('host network changed', { changes: report.changes });
    const { problems } = report;
    const told = new Set(before.map(({ message }) => message));
    const news = problems.filter(({ message }) => !told.has(message));
    for (const { reason, message } of news.slice(0, MOST_LOGGED))
      log.warn('host network not as wanted', { reason, problem: message });
    if (problems.length !== before.length || news.length > 0) this.#add('observe');
    return { requeueAfterMs: problems.length > 0 ? PROBLEM_MS : RESYNC_MS };
  }

  /** ClusterIDs, of tunnels that are not being removed. */
  peers(): string[] {
    return this.#caches.liveTunnels().map(({ metadata }) => metadata.name);
  }

  /** What the host should be now. Undefined: not known yet. */
  desired(): HostConfig | undefined {
    const { nodeName, link, vxlanLink, mtu, port, wireguard, prober } = this.#options;
    const network = this.#network();
    const { key } = this.#keys;
    if (network === undefined || key === undefined || !this.#strays.isKnown) return undefined;
    const caches = this.#caches;
    const hosted = hostedByPeer(caches.hostedPods.list(), (name) => caches.namespaces.get(name));
    const peers = gatewayPeers({
      tunnels: caches.liveTunnels(),
      network,
      publicKey: key.publicKey,
      preshared: caches.one(caches.preshared, PRESHARED_SECRET),
      abroad: this.#abroad.addresses(),
      clients: this.#abroad.addresses(hasToken),
      hosted,
      endpointOf: (clusterID) => this.#watch.endpointOf(clusterID),
      probes: prober.results(),
      mtu,
    });
    const plan = gatewayPlan({
      network,
      nodeName,
      link,
      vxlanLink,
      mtu,
      port,
      ...present({ wireguard }),
      privateKey: key.privateKey,
      peers,
      hosted: [...hosted.values()].flat(),
      strays: this.#strays.ways,
    });
    return this.#withPeers(plan);
  }

  #withPeers(plan: HostConfig): HostConfig {
    if (plan.wireguard === undefined) return plan;
    const keepalive = keepaliveSeconds(this.#isDialable());
    const { astray } = this.#watch;
    const peers = plan.wireguard.peers
      .filter(({ publicKey }) => !astray.has(publicKey))
      .map((peer) => ({ ...peer, keepalive }));
    return { ...plan, wireguard: { ...plan.wireguard, peers } };
  }

  async #observe(): Promise<ReconcileResult> {
    const { prober, nodeName, clock, mtu, probeSeconds } = this.#options;
    const network = this.#network();
    const tunnels = this.#caches.liveTunnels();
    const states = await this.#wireguardPeers();
    const own = network === undefined ? [] : neverDialled(network, tunnels);
    const moved = this.#watch.observe({ tunnels, states, probes: prober.results(), own });
    if (moved || !this.#observed) this.#add('host');
    if (moved) this.#warnOfAstray(tunnels);
    this.#observed = true;
    const settled = this.#settled.at(clock.monotonic());
    const endpointOf = ({ metadata }: Tunnel): string | undefined => this.#watch.endpointOf(metadata.name);
    // A packet that is sent before the peer's rules and routes are there is not translated, or as it was before, and conntrack
    // remembers that for as long as others follow it: the peer would never be measured.
    const led = tunnels.filter((tunnel) => waysOf([tunnel], network).every((way) => this.#led.has(way)));
    prober.setTargets(probeTargets(led, { network, ownKey: this.#keys.key?.publicKey, endpointOf }));
    this.#reports.observe({
      now: clock.now(),
      gateway: nodeName,
      linkMtu: mtu,
      ...present({ by: this.#report?.wireguard, host: settled }),
      tunnels,
      exported: network === undefined ? [] : exportedTo(network, []),
      dialable: this.#isDialable(),
      refused: refusedPeers(tunnels, this.#keys.key?.publicKey ?? ''),
      probes: prober.results(),
      endpointOf,
      stateOf: (tunnel) => this.#watch.stateOf(tunnel),
      receivedMs: (tunnel) => this.#watch.receivedMs(tunnel),
    });
    this.#options.metrics.show(this.#reports.samples(), this.#report?.wireguard);
    const requeueAfterMs = observeAgainMs({
      probeSeconds,
      tunnels: tunnels.length,
      probed: led.length,
      isAnswered: prober.isCalm,
      isTold: this.#untold === '',
      problems: this.#report?.problems.length,
    });
    return { requeueAfterMs };
  }

  /** Warns once of each peer, which may do so with every packet. */
  #warnOfAstray(tunnels: readonly Tunnel[]): void {
    for (const tunnel of tunnels) {
      const { publicKey, endpoint } = this.#watch.stateOf(tunnel) ?? {};
      if (publicKey === undefined || !this.#watch.astray.has(publicKey)) continue;
      if (this.#warnedOf.has(publicKey)) continue;
      this.#warnedOf.add(publicKey);
      this.#options.log.warn(
        'a peer sends from an address that leads into a tunnel; it is taken out and begins anew',
        { tunnel: tunnel.metadata.name, endpoint },
      );
    }
  }

  /** When WireGuard does not answer, all else is reported nevertheless, above all that it does not run. */
  async #wireguardPeers(): Promise<readonly WireGuardPeerState[]> {
    const { host, link, log } = this.#options;
    let untold = '';
    try {
      this.#states = await host.wireguardPeers(link);
    } catch (error) {
      untold = errorMessage(error);
    }
    if (untold !== '' && untold !== this.#untold) log.warn('WireGuard tells nothing', { error: untold });
    this.#untold = untold;
    return this.#states;
  }

  #localRoutes(): string[] | undefined {
    const { destinations } = this.#routes;
    return destinations && localRoutes(destinations, this.#network());
  }

  #network(): OwnNetwork | undefined {
    return readOwnNetwork(this.#caches.one(this.#caches.network, NETWORK_CONFIG_MAP)?.data);
  }

  /** Undefined while the node's address is not known. */
  #endpoints(): readonly string[] | undefined {
    const { endpoints, nodeName, nodeAddress, port } = this.#options;
    if (endpoints !== undefined) return endpoints;
    const address = this.#network()?.nodes.find(({ name }) => name === nodeName)?.address ?? nodeAddress;
    return address === undefined ? undefined : [joinEndpoint(address, port)];
  }

  #isDialable(): boolean {
    return (this.#endpoints() ?? []).length > 0;
  }
}
