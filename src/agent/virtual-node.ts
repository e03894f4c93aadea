import type { Registry } from 'prom-client';

import { NODE_LEASES } from '../api/agent-lease.ts';
import { LABEL_PROVIDER } from '../api/names.ts';
import { nodeNameOf } from '../api/node-labels.ts';
import { tunnels } from '../api/tunnel.ts';
import { type VirtualNode, virtualNodes } from '../api/virtual-node.ts';
import { CertificateFiles } from '../certificates/certificate-files.ts';
import { authoritiesFromFile, ClientAuthorities } from '../certificates/client-authorities.ts';
import { ServingCertificate } from '../certificates/serving-certificate.ts';
import type { Caches } from '../kube/caches.ts';
import type { KubeClient } from '../kube/client.ts';
import { ClientEventRecorder } from '../kube/events.ts';
import { fenced } from '../kube/fenced-client.ts';
import { createClient } from '../kube/http-client.ts';
import { LeaseKeeper } from '../kube/lease-keeper.ts';
import { SpareConnection } from '../kube/spare-connection.ts';
import { systemRandom } from '../lib/backoff.ts';
import { cpuSeconds } from '../lib/clock.ts';
import { errorMessage, hasCode, TributaryError } from '../lib/errors.ts';
import type { Component, Lifecycle } from '../lib/lifecycle.ts';
import type { KeyPair, Source } from '../lib/source.ts';
import { TunnelView } from '../network/tunnel-view.ts';
import type { ForeignClusterOptions } from '../provider/foreign.ts';
import type { OwnDns } from '../provider/home-dns.ts';
import { virtualNodeMetrics } from '../provider/metrics.ts';
import { PodTally } from '../provider/pod-tally.ts';
import { Provider } from '../provider/provider.ts';
import { HomeHistory } from '../provider/restored/home-history.ts';
import { ForeignUsage, runningPods } from '../provider/usage.ts';
import { apiServerReviews } from '../server/kubelet/auth.ts';
import { ServerMetrics } from '../server/kubelet/metrics.ts';
import { ResourceMetrics } from '../server/kubelet/resource-metrics.ts';
import { KubeletServer } from '../server/kubelet/server.ts';
import { NodePorts } from '../server/node-ports/node-ports.ts';
import type { NodePortSources } from '../server/node-ports/sources.ts';
import { VERSION } from '../version.ts';
import { AgentLease } from './agent-lease.ts';
import { kubeletBackend } from './kubelet-backend.ts';
import { ownDns } from './own-dns.ts';
import { type AgentParts, controllerMetrics, lifecycleOf, startUnless } from './parts.ts';

const WAIT_FOR_OBJECT_MS = 2_000;
/** As for a kubelet: 40 s, renewed every 10 s. */
const NODE_LEASE_MS = 40_000;
/**
 * By then two renewals of the Node's Lease have failed. The foreign cluster should notice that home is away at about the
 * same time.
 */
const HOME_SILENT_MS = NODE_LEASE_MS / 2;

interface VirtualNodeOptions {
  parts: AgentParts;
  home: KubeClient;
  /** PEM of the authorities of that API server. */
  homeCa?: string | undefined;
  /** Of all virtual nodes of the process, at that API server. */
  caches: Caches;
  /** Of the VirtualNode. */
  virtualNode: string;
  /** Where the home API server reaches the kubelet API. */
  address: string;
  /** 0 takes a free one. */
  kubeletPort: number;
  /** Of this virtual node alone. */
  registry: Registry;
  /** What the kubelet API shows at /metrics. */
  metrics: () => Promise<string>;
  /** It answers on the node ports of Services; at an address that no kube-proxy looks after. */
  servesNodePorts?: boolean;
  /** Likewise, together with all virtual nodes of the process. */
  nodePorts?: NodePortSources;
  /** Its account may read all virtual nodes, Tunnels and volumes, and the process needs many of them. */
  sharesWatches?: boolean;
  /** Of a process that approves serving certificates: does it for its own. */
  approver?: KubeClient;
}

/** One virtual node with all that belongs to it; a process may have several. */
export class VirtualNodeAgent implements Component {
  readonly name: string;
  readonly #options: VirtualNodeOptions;
  readonly #stopped = new AbortController();
  readonly #lost = new AbortController();
  /** Reads as the process does, and writes while this agent is the one that acts. */
  readonly #home: KubeClient;
  #lease: AgentLease | undefined;
  #lifecycle: Lifecycle | undefined;
  #kubelet: KubeletServer | undefined;
  #provider: Provider | undefined;

  constructor(options: VirtualNodeOptions) {
    this.#options = options;
    this.name = options.virtualNode;
    this.#home = fenced(options.home, this.#check);
  }

  /** Fires when another agent of this VirtualNode has taken over; this one is then to be stopped. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** The agent that acts in its place, while this one stands by. */
  get standsByFor(): string | undefined {
    return this.#lifecycle?.starting === this.#lease?.name ? this.#lease?.holder : undefined;
  }

  readonly #check = (): void => {
    if (this.#lease === undefined) throw new TributaryError('Aborted', 'the agent has not started');
    this.#lease.check();
  };

  /** What it waits for while it starts; undefined when all is up. */
  get starting(): string | undefined {
    return this.#lifecycle === undefined ? 'waiting for the VirtualNode' : this.#lifecycle.starting;
  }

  /** The VirtualNode is gone, and its Node, too: nothing is left to do at home. */
  get isOver(): boolean {
    const { virtualNodes: own, nodes, nodeName } = this.#provider ?? {};
    if (own?.synced !== true || nodes?.synced !== true || nodeName === undefined) return false;
    return own.get(this.name) === undefined && nodes.get(nodeName) === undefined;
  }

  get order(): string[] {
    return this.#lifecycle?.order ?? [];
  }

  async start(signal: AbortSignal): Promise<void> {
    const onAbort = (): void => this.#stopped.abort(signal.reason);
    // Until it has stopped: agents follow one another under the same signal, which would hold all of them.
    signal.addEventListener('abort', onAbort, { once: true, signal: this.#stopped.signal });
    if (signal.aborted) onAbort();
    const { parts, home } = this.#options;
    const virtualNode = await waitForVirtualNode(home, this.name, parts, this.#stopped.signal);
    const onLost = (reason: string): void => this.#lost.abort(new Error(reason));
    // Before Kubernetes looks next, which counts the node as lost.
    const onRegained = (): void => lease.wake();
    const ownerUid = (): string => (this.#provider?.virtualNodes.get(this.name) ?? virtualNode).metadata.uid;
    this.#lease = new AgentLease({ parts, home, virtualNode, ownerUid, onRegained, onLost });
    const network = this.#network(virtualNode);
    const history = homeHistory(parts, this.#home, nodeNameOf(virtualNode));
    const lease = nodeLease(parts, this.#home, { nodeName: nodeNameOf(virtualNode), history });
    const dns = await ownDns(parts.config);
    const { provider, events } = this.#createProvider(virtualNode, { network, lease, history, dns });
    const kubelet = await this.#kubeletComponents(provider);
    this.#lifecycle = lifecycleOf(
      [
        events,
        ...(network === undefined ? [] : [network]),
        ...provider.caches(),
        this.#lease,
        ...kubelet,
        ...provider.actors(),
        ...this.#nodePorts(provider),
        readiness(provider),
        lease,
      ],
      parts,
    );
    await startUnless(this.lost, this.#lifecycle, this.#stopped.signal);
  }

  async stop(): Promise<void> {
    await this.#lifecycle?.stop();
    this.#stopped.abort(new Error('stopped'));
  }

  /** Undefined unless the foreign cluster is a peer: only peers have a Tunnel. */
  #network(virtualNode: VirtualNode): TunnelView | undefined {
    const { parts, home, caches, sharesWatches = false } = this.#options;
    const { clock, log } = parts;
    const provider = virtualNode.metadata.labels?.[LABEL_PROVIDER];
    if (provider === undefined) return undefined;
    // The account of one that people have set up may read no other Tunnel.
    const own = caches.of(
      tunnels,
      sharesWatches
        ? { only: ({ metadata }) => metadata.name === provider }
        : { list: { fieldSelector: `metadata.name=${provider}` } },
    );
    return new TunnelView({ home, provider, tunnels: own, clock, log });
  }

  #createProvider(
    virtualNode: VirtualNode,
    {
      network,
      lease,
      history,
      dns,
    }: { network: TunnelView | undefined; lease: LeaseKeeper; history: HomeHistory; dns: OwnDns },
  ): { provider: Provider; events: ClientEventRecorder } {
    const { parts, homeCa, caches, registry, address, kubeletPort, sharesWatches } = this.#options;
    const { clock, log } = parts;
    const home = this.#home;
    const connect: ForeignClusterOptions['connect'] = (credentials, options) =>
      fenced(createClient(credentials, options), this.#check);
    const events = new ClientEventRecorder({ client: home, clock, log, component: 'tributary' });
    const provider = new Provider({
      virtualNode,
      home,
      foreign: { homeCa, proxies: parts.config.proxies, connect },
      events,
      metrics: controllerMetrics(registry),
      nodeAddress: address,
      // The Node says where it is only once it listens.
      kubeletPort: () => this.#kubelet?.port ?? kubeletPort,
      version: VERSION,
      ...(network !== undefined && { network }),
      caches,
      ...(sharesWatches !== undefined && { sharesWatches }),
      dns,
      history,
      predecessorAt: () => this.#lease?.predecessorAt,
      homeAnswers: () => clock.monotonic() - lease.renewedAt < HOME_SILENT_MS,
      clock,
      log,
    });
    this.#provider = provider;
    const { nodeName, nodes, homePods, contact } = provider;
    const tally = new PodTally();
    homePods.onChange(tally.change);
    virtualNodeMetrics(registry, {
      nodeName,
      node: () => nodes.get(nodeName),
      pods: tally,
      isReachable: () => contact.state.ok,
    });
    return { provider, events };
  }

  /** The kubelet API and what it stands on: its certificate, and whose client certificates it believes. */
  async #kubeletComponents(provider: Provider): Promise<Component[]> {
    const { parts, home, caches, registry, kubeletPort, metrics } = this.#options;
    const { config, clock, log } = parts;
    const serverMetrics = new ServerMetrics(registry);
    const certificate = this.#servingCertificate(provider, ({ expiresMs }) => {
      if (expiresMs !== undefined) serverMetrics.certificateExpires(expiresMs);
    });
    const authorities = new ClientAuthorities(caches);
    const fromFile =
      config.clientCaFile === undefined ? undefined : await authoritiesFromFile(config.clientCaFile);
    const figures = new ResourceMetrics({
      nodeName: provider.nodeName,
      startTimeMs: clock.now(),
      own: () => ({ cpuSeconds: cpuSeconds(), memoryBytes: process.memoryUsage.rss() }),
    });
    const usage = new ForeignUsage(provider, figures, { clock, log: log.named('usage') });
    const spare = new SpareConnection(clock);
    this.#kubelet = new KubeletServer({
      nodeName: provider.nodeName,
      port: kubeletPort,
      backend: kubeletBackend(provider, clock, spare, {
        statsSummary: async () => {
          await usage.refresh();
          return figures.summary(await runningPods(provider.homePods), clock.now());
        },
        metricsResource: async () => usage.refresh().then(() => figures.exposition(clock.now())),
        metrics,
      }),
      reviews: apiServerReviews(home),
      servingCertificate: certificate,
      clientAuthorities: fromFile ?? authorities.source,
      clock,
      log: log.named('kubelet'),
      metrics: serverMetrics,
    });
    return [certificate, ...(fromFile === undefined ? [authorities] : []), spare, this.#kubelet];
  }

  #nodePorts(provider: Provider): Component[] {
    const { parts, address: host, servesNodePorts = false, nodePorts: together } = this.#options;
    const { clock, log } = parts;
    const { nodePorts } = provider;
    if (together !== undefined) {
      return [together.partOf({ list: () => nodePorts.list(), onChange: nodePorts.onChange })];
    }
    if (!servesNodePorts) return [];
    return [
      new NodePorts({
        host,
        wanted: () => nodePorts.list(),
        onChange: nodePorts.onChange,
        clock,
        log: log.named('node-ports'),
      }),
    ];
  }

  #servingCertificate(
    provider: Provider,
    changed: (state: { expiresMs?: number }) => void,
  ): Component & Source<KeyPair> {
    const { parts, address, approver } = this.#options;
    const { config, clock, log } = parts;
    const { tlsCertFile, tlsPrivateKeyFile } = config;
    if (tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined) {
      return new CertificateFiles({
        certificatePath: tlsCertFile,
        keyPath: tlsPrivateKeyFile,
        changed,
        clock,
        log,
      });
    }
    return new ServingCertificate({
      client: this.#home,
      clock,
      log: log.named('serving-certificate'),
      random: systemRandom,
      nodeName: provider.nodeName,
      addresses: () => ({ dnsNames: [], ips: [address] }),
      changed,
      ...(approver !== undefined && { approver }),
    });
  }
}

/** The last component: the Node becomes Ready only when all others have started. */
const readiness = (provider: Provider): Component => ({
  name: 'ready',
  start: () => provider.setListening(true),
  stop: async () => provider.markStopped(),
});

const homeHistory = ({ config, clock, log }: AgentParts, home: KubeClient, nodeName: string): HomeHistory =>
  new HomeHistory({
    home,
    nodeName,
    keepMs: config.restoredKeepSeconds * 1000,
    clock,
    log: log.named('history'),
  });

const nodeLease = (
  { clock, log }: AgentParts,
  home: KubeClient,
  { nodeName, history }: { nodeName: string; history: HomeHistory },
): LeaseKeeper =>
  new LeaseKeeper({
    client: home,
    clock,
    log,
    namespace: NODE_LEASES,
    name: nodeName,
    identity: nodeName,
    durationMs: NODE_LEASE_MS,
    marks: history,
  });

/** The VirtualNode may be created after its agent; until then the agent only logs that it waits. */
async function waitForVirtualNode(
  home: KubeClient,
  name: string,
  { clock, log }: AgentParts,
  signal: AbortSignal,
): Promise<VirtualNode> {
  for (let said = ''; ;) {
    try {
      return await home.get(virtualNodes, { name }, { signal });
    } catch (error) {
      if (hasCode(error, 'Aborted')) throw error;
      const why = errorMessage(error);
      if (why !== said) log.warn('waiting for the VirtualNode', { virtualNode: name, error: why });
      said = why;
      await clock.sleep(WAIT_FOR_OBJECT_MS, signal);
    }
  }
}
