import type { EventReason } from '../api/reasons/events.ts';
import { timestamp } from '../api/conditions.ts';
import { LABEL_PROVIDER, OFFLOADED_REASONS } from '../api/names.ts';
import { nodeNameOf } from '../api/node-labels.ts';
import { nodes } from '../api/resources.ts';
import { API_VERSION, type VirtualNode, virtualNodes } from '../api/virtual-node.ts';
import type { Node, Pod } from '../api/wire.ts';
import type { Basics } from '../lib/basics.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Controller, ControllerMetrics } from '../kube/controller.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Cache } from '../kube/cache.ts';
import type { Informer } from '../kube/informer.ts';
import { Caches } from '../kube/caches.ts';
import type { Component } from '../lib/lifecycle.ts';
import { LossBudget } from '../lib/loss-budget.ts';
import { type ControllerName, createControllers } from './controllers.ts';
import { EventsHome, type EventsHomeOptions } from './events/events-home.ts';
import { ForeignCluster, type ForeignClusterOptions } from './foreign.ts';
import { isOther } from './forge/additions.ts';
import type { ForgeContext } from './forge/context.ts';
import { type HomeApiServerWay, homeApiServerWay } from './home-api-server.ts';
import { complainOfDns, type HomeDnsWay, homeDnsWay, NO_DNS, type OwnDns } from './home-dns.ts';
import { HomeLease } from './home-lease.ts';
import { forgeContext } from './forge-context.ts';
import { homePodInformer } from './home-pods.ts';
import { type NetworkView, NO_NETWORK } from './network-view.ts';
import { oneAlone, oneOfAll } from './one-object.ts';
import { ForeignContact } from './node/contact.ts';
import type { NodeInputs } from './node/forge.ts';
import { NodeReconciler } from './node/reconciler.ts';
import { Readiness } from './node/readiness.ts';
import { Room } from './node/room.ts';
import { HomeNodePorts } from './node-ports.ts';
import { type CommonParts, OffloadedNamespaces } from './namespaces.ts';
import { PolicyStates } from './policy-states.ts';
import { PodReconciler } from './pods/reconciler.ts';
import { RoomRefusals } from './pods/room-refusals.ts';
import { nodeIdentity } from './pods/unmapped.ts';
import { MirrorTroubles } from './reflect/mirror-troubles.ts';
import { Mirror } from './reflect/mirror.ts';
import { HomePolicyWorld } from './reflect/policy-world.ts';
import { enqueuePolicies } from './reflect/connect.ts';
import { referenceState } from './reflect/reference-state.ts';
import { Reflector } from './reflect/reflector.ts';
import { TokenReconciler } from './reflect/tokens.ts';
import type { HomeHistory } from './restored/home-history.ts';
import { Restores } from './restored/restores.ts';
import { ReturnedPods } from './returned-pods.ts';
import { Siblings } from './siblings.ts';
import { Storage } from './storage/storage.ts';
import { Tenant, Tenants } from './tenants.ts';
import { addDependents, connect, enqueueReturned, openingTenants } from './connect.ts';

interface ProviderOptions extends Basics, Pick<EventsHomeOptions, 'predecessorAt'> {
  /** As read at start. Its node name never changes; changes of the rest are followed. */
  virtualNode: VirtualNode;
  home: KubeClient;
  /** How the foreign API server is reached, and where no peer may lead us. */
  foreign?: Pick<ForeignClusterOptions, 'connect' | 'homeCa' | 'proxies'>;
  events: EventRecorder;
  metrics?: ControllerMetrics;
  /** Where the home API server reaches the kubelet API. The port is a function where it is known only once it is listened on. */
  nodeAddress: string;
  kubeletPort: number | (() => number);
  version: string;
  /** Of the process, at the home cluster. Default: its own. */
  caches?: Caches;
  /** Default: none. */
  network?: NetworkView;
  /** One watch is for all virtual nodes of the process, whose account may read them all. Default: no. */
  sharesWatches?: boolean;
  /** The DNS of the home cluster. Default: none is known. */
  dns?: OwnDns;
  /** Whether the home API server has answered recently. Default: always. */
  homeAnswers?: () => boolean;
  /** Notices that home was restored from a backup. Default: nobody does. */
  history?: HomeHistory;
}

/** The virtual node: everything between the home cluster's API server and the foreign one's. */
export class Provider {
  readonly nodeName: string;
  readonly foreign: ForeignCluster;
  readonly contact: ForeignContact;
  readonly homeLease: HomeLease;
  readonly homePods: Informer<Pod>;
  readonly tenants: Tenants;
  readonly namespaces: OffloadedNamespaces;
  readonly network: NetworkView;
  readonly pods: PodReconciler;
  readonly controllers: Readonly<Record<ControllerName, Controller>>;
  readonly virtualNodes: Cache<VirtualNode>;
  readonly nodes: Informer<Node>;
  readonly siblings: Siblings;
  readonly reflector: Reflector;
  readonly mirror: Mirror;
  readonly troubles: MirrorTroubles;
  readonly tokens: TokenReconciler;
  readonly events: EventsHome;
  readonly storage: Storage;
  readonly policies: PolicyStates;
  readonly room: Room;
  readonly nodePorts: HomeNodePorts;
  readonly returned: ReturnedPods;
  readonly restores: Restores;
  readonly #options: ProviderOptions;
  readonly #node: NodeReconciler;
  readonly #readiness: Readiness;
  readonly #world: HomePolicyWorld;
  /** The VirtualNode as it was before it was deleted. */
  #known: VirtualNode;

  constructor(options: ProviderOptions) {
    const { virtualNode, home, clock, log, caches = new Caches({ client: home, clock, log }) } = options;
    const { name } = virtualNode.metadata;
    this.#options = options;
    this.#known = virtualNode;
    this.network = options.network ?? NO_NETWORK;
    this.room = new Room(clock);
    this.nodeName = nodeNameOf(virtualNode);
    const common = { client: home, clock, log };
    const shared = options.sharesWatches === true ? caches : undefined;
    this.virtualNodes = shared ? oneOfAll(shared, virtualNodes, name) : oneAlone(common, virtualNodes, name);
    // Not shared: one that has lost its labels is found by its name alone, and all Nodes of a cluster are many.
    this.nodes = oneAlone(common, nodes, this.nodeName);
    this.homePods = homePodInformer({ home, nodeName: this.nodeName, clock, log });
    this.#node = this.#createNode();
    const secretRef = virtualNode.spec.kubeconfigSecretRef;
    this.foreign = new ForeignCluster({ home, secretRef, ...options.foreign, clock, log });
    const foreign = this.foreign.client;
    // Virtual nodes of one foreign cluster share its tenant namespaces, and the copies in them.
    const owner = virtualNode.metadata.labels?.[LABEL_PROVIDER] ?? name;
    this.siblings = new Siblings({ virtualNode, caches, shared, foreign, clock });
    this.tenants = new Tenants(
      (mapping) => new Tenant({ mapping, virtualNode: name, owner, home, foreign, clock, log }),
    );
    this.nodePorts = new HomeNodePorts(this.tenants, clock);
    this.returned = this.#createReturned();
    this.restores = this.#createRestores();
    this.namespaces = new OffloadedNamespaces({
      virtualNode: () => this.virtualNode,
      lastSeen: () => this.#lastSeen(),
      tenants: this.tenants,
      homePods: this.homePods,
      siblings: this.siblings,
    });
    this.#readiness = new Readiness(this.tenants);
    this.contact = this.#createContact();
    this.homeLease = this.#createHomeLease();
    const parts: CommonParts = {
      home,
      foreign,
      homePods: this.homePods,
      tenants: this.tenants,
      namespaces: this.namespaces,
      siblings: this.siblings,
      contact: () => this.contact.state.ok,
      history: this.restores.history,
      events: options.events,
      clock,
    };
    this.reflector = this.#createReflector(parts, owner);
    this.troubles = new MirrorTroubles({ events: options.events, virtualNode: () => this.#known });
    this.#world = new HomePolicyWorld({ caches, clock, onChange: () => enqueuePolicies(this) });
    this.mirror = this.#createMirror(parts, owner);
    this.policies = new PolicyStates({ tenants: this.tenants, mirror: this.mirror, world: this.#world });
    this.tokens = this.#createTokens(parts);
    this.events = this.#createEvents(parts);
    this.storage = new Storage({ ...parts, virtualNode, shared, spec: () => this.virtualNode?.spec, log });
    this.pods = this.#createPods(parts);
    this.controllers = this.#createControllers();
    connect(this);
    complainOfDns(this.network, () => this.homeDns, log);
  }

  /** Undefined when it has been deleted. */
  get virtualNode(): VirtualNode | undefined {
    const { metadata } = this.#options.virtualNode;
    return this.virtualNodes.synced ? this.virtualNodes.get(metadata.name) : this.#options.virtualNode;
  }

  get homeApiServer(): HomeApiServerWay {
    return homeApiServerWay(this.virtualNode?.spec.homeApiServer, this.network);
  }

  get homeDns(): HomeDnsWay {
    return homeDnsWay(this.network, this.#options.dns ?? NO_DNS);
  }

  /** The Node may turn Ready only when the kubelet API answers. */
  setListening(listening: boolean): void {
    this.#readiness.listening = listening;
    this.controllers.node.add(this.nodeName);
  }

  /** Writes NotReady at the end, so that nothing new is scheduled here; the Lease then expires by itself. */
  async markStopped(): Promise<void> {
    this.#readiness.listening = false;
    await this.#node.reconcileAtEnd();
  }

  #contextOf(homeNamespace: string): ForgeContext | undefined {
    const { tenants, network, contact, returned, policies, nodeName, homeApiServer, homeDns } = this;
    const mapping = tenants.of(homeNamespace)?.mapping;
    const own = { nodeName, nodeAddress: this.#options.nodeAddress, virtualNode: this.#lastSeen() };
    const others = { tenants, network, contact, returned, policies, homeApiServer, homeDns };
    return mapping && forgeContext(mapping, { ...own, ...others });
  }

  /** What must run before the kubelet API, in this order. */
  caches(): Component[] {
    return [this.virtualNodes, this.siblings, this.nodes, this.homePods, this.foreign, this.contact];
  }

  /** What starts to act when the caches are complete. */
  actors(): Component[] {
    const { node, reflect, tokens, mirror, events, storage, pods: podController } = this.controllers;
    return [
      node,
      this.storage,
      this.#world,
      openingTenants(this),
      reflect,
      tokens,
      mirror,
      events,
      storage,
      this.returned,
      podController,
      this.homeLease,
    ];
  }

  #createEvents(parts: CommonParts): EventsHome {
    return new EventsHome({
      ...parts,
      virtualNode: this.#known.metadata.name,
      nodeName: this.nodeName,
      predecessorAt: this.#options.predecessorAt,
      enqueue: (key, isNew) => this.controllers.events[isNew ? 'add' : 'addSlow'](key),
      log: this.#options.log.named('events'),
    });
  }

  #createReturned(): ReturnedPods {
    return new ReturnedPods({
      ...this.#options,
      network: this.network,
      onChange: (tenantNamespace, pod) => enqueueReturned(this, tenantNamespace, pod),
    });
  }

  #createRestores(): Restores {
    return new Restores({
      ...this.#options,
      foreign: this.foreign.client,
      homePods: this.homePods,
      tenants: this.tenants,
      tell: (reason, message) => this.#tell(reason, message),
      onChange: () => this.controllers.node.add(this.nodeName),
      onReleased: (homeKey) => this.controllers.pods.add(homeKey),
    });
  }

  #nodeInputs(): NodeInputs | undefined {
    const { nodeAddress, kubeletPort, version, clock } = this.#options;
    const { virtualNode } = this;
    if (virtualNode === undefined) return undefined;
    return {
      virtualNode,
      contact: this.contact.state,
      notReady: this.#readiness.obstacle(this.namespaces.mappings, virtualNode.spec.namespaces),
      network: this.network.state,
      room: this.room.bounds(virtualNode.spec.resources),
      homeApiServer: this.homeApiServer,
      homeDns: this.homeDns,
      restored: this.restores.state,
      address: nodeAddress,
      kubeletPort: typeof kubeletPort === 'number' ? kubeletPort : kubeletPort(),
      version,
      now: timestamp(clock.now()),
    };
  }

  #lastSeen(): VirtualNode {
    return (this.#known = this.virtualNode ?? this.#known);
  }

  #createNode(): NodeReconciler {
    return new NodeReconciler({
      ...this.#options,
      virtualNode: this.#known.metadata.name,
      virtualNodes: this.virtualNodes,
      nodes: this.nodes,
      nodeName: this.nodeName,
      inputs: () => this.#nodeInputs(),
      changesMs: () => Math.min(this.room.waitMs(), this.restores.stateMs),
      mappings: () => this.namespaces.mappings,
      stricterPolicies: () => this.policies.stricter(),
    });
  }

  #createContact(): ForeignContact {
    return new ForeignContact({
      ...this.#options,
      foreign: this.foreign.client,
      problem: () => this.foreign.problem,
      credentialEnds: async () => this.foreign.credentialEnds(),
      tenantNamespace: () => this.#readiness.probed(this.virtualNode?.spec.namespaces),
      awayAfterSeconds: () => this.#lastSeen().spec.awayAfterSeconds,
      log: this.#options.log.named('contact'),
    });
  }

  #createHomeLease(): HomeLease {
    return new HomeLease({
      homeAnswers: () => true,
      ...this.#options,
      foreign: this.foreign.client,
      tenantNamespaces: () => this.namespaces.mappings.map(({ tenantNamespace }) => tenantNamespace),
      identity: this.nodeName,
      onRenewed: () => this.contact.answered(),
      onRestored: () => this.restores.foreignRestored(),
      log: this.#options.log.named('home-lease'),
    });
  }

  #createReflector(parts: CommonParts, owner: string): Reflector {
    return new Reflector({
      ...parts,
      owner,
      isShared: owner !== this.#options.virtualNode.metadata.name,
      isNamed: (kind, namespace, object) => kind === 'Secret' && this.mirror.namesSecret(namespace, object),
      wake: (key) => this.controllers.pods.add(key),
    });
  }

  #createMirror(parts: CommonParts, owner: string): Mirror {
    return new Mirror({
      ...parts,
      network: this.network,
      dns: () => ({ own: this.#options.dns ?? NO_DNS, way: this.homeDns }),
      isOther: (key) => isOther(key, this.virtualNode?.spec.podAdditions),
      world: this.#world,
      onTold: () => this.controllers.node.add(this.nodeName),
      owner,
      virtualNode: this.#options.virtualNode.metadata.name,
      ingressClasses: () => this.virtualNode?.spec.ingressClasses ?? {},
      troubles: this.troubles,
    });
  }

  #createTokens(parts: CommonParts): TokenReconciler {
    return new TokenReconciler({
      ...parts,
      kept: this.restores.kept,
      virtualNode: this.#options.virtualNode.metadata.name,
      homeApiServer: () => this.homeApiServer,
      wake: (key) => this.controllers.pods.add(key),
    });
  }

  #createPods(parts: CommonParts): PodReconciler {
    const { clock, log } = this.#options;
    return new PodReconciler({
      ...parts,
      node: () => nodeIdentity(this.#lastSeen()),
      context: (namespace) => this.#contextOf(namespace),
      references: (pod) => referenceState(pod, this),
      losses: new LossBudget(clock),
      kept: this.restores.kept,
      look: (key) => this.controllers.pods.add(key),
      onAdopted: (home) => addDependents(this, home),
      room: new RoomRefusals({
        ...parts,
        room: this.room,
        onLess: (message) => this.#tell('LessRoom', message),
      }),
      returnPatienceMs: () => this.homeLease.patienceMs(),
      onBurst: (message) => this.#tell(OFFLOADED_REASONS.lost, message),
      log: log.named('pods'),
    });
  }

  #createControllers(): Provider['controllers'] {
    const { pods, reflector: reflect, tokens, mirror, events, storage } = this;
    const node = { reconcile: async (_key: string, signal: AbortSignal) => this.#node.reconcile(signal) };
    return createControllers({ node, pods, reflect, tokens, mirror, events, storage }, this.#options);
  }

  #tell(reason: EventReason, message: string): void {
    const { apiVersion = API_VERSION, kind = 'VirtualNode', metadata } = this.#known;
    this.#options.events.event({ apiVersion, kind, metadata }, 'Warning', reason, message);
  }
}
