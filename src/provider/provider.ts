import { LABEL_PROVIDER, OFFLOADED_REASONS } from '../api/names.ts';
import { nodes } from '../api/resources.ts';
import type { NamespaceMapping, VirtualNode } from '../api/virtual-node.ts';
import { VIRTUAL_NODE_REASONS, API_VERSION, virtualNodes } from '../api/virtual-node.ts';
import type { Node, Pod } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import type { ControllerMetrics, ReconcileResult } from '../kube/controller.ts';
import { Controller } from '../kube/controller.ts';
import type { EventRecorder } from '../kube/events.ts';
import { Informer } from '../kube/informer.ts';
import type { Clock } from '../lib/clock.ts';
import { errorMessage, hasCode } from '../lib/errors.ts';
import type { Component } from '../lib/lifecycle.ts';
import type { Logger } from '../lib/log.ts';
import type { ForgeContext } from './forge/context.ts';
import { podReferences } from './forge/references.ts';
import { ForeignCluster } from './foreign.ts';
import { homePodInformer } from './home-pods.ts';
import { effectiveMappings, includesMapping } from './mappings.ts';
import { ForeignContact } from './node/contact.ts';
import type { NodeInputs } from './node/forge.ts';
import { nodeNameOf } from './node/forge.ts';
import type { Obstacle } from './node/obstacle.ts';
import { NodeReconciler } from './node/reconciler.ts';
import { writeVirtualNodeStatus } from './node/status.ts';
import type { ReferenceState } from './pods/decide.ts';
import { LossBudget } from './pods/losses.ts';
import { PodReconciler } from './pods/reconciler.ts';
import { Reflector } from './reflect/reflector.ts';
import { TokenKeeper } from './reflect/tokens.ts';
import { Tenant } from './tenant.ts';
import { Tenants } from './tenants.ts';
import { connect } from './wiring.ts';

export interface ProviderOptions {
  /** As read at start; its node name never changes, the rest is followed. */
  virtualNode: VirtualNode;
  home: KubeClient;
  events: EventRecorder;
  metrics?: ControllerMetrics;
  /** Where the home API server reaches the kubelet API. */
  nodeAddress: string;
  /** A function where the port is known only once it is listened on. */
  kubeletPort: number | (() => number);
  /** Of this program. */
  version: string;
  clock: Clock;
  log: Logger;
}

/** Reconciles of pods that may wait for an API server at the same time. */
const POD_CONCURRENCY = 64;
const REFLECT_CONCURRENCY = 8;
const MARK_STOPPED_MS = 3_000;

/** The virtual node: everything between the home cluster's API server and the foreign one's. */
export class Provider {
  readonly nodeName: string;
  readonly foreign: ForeignCluster;
  readonly contact: ForeignContact;
  readonly homePods: Informer<Pod>;
  readonly tenants: Tenants;
  readonly controllers: Readonly<Record<'node' | 'pods' | 'reflect' | 'tokens', Controller>>;
  readonly virtualNodes: Informer<VirtualNode>;
  readonly nodes: Informer<Node>;
  readonly reflector: Reflector;
  readonly tokens: TokenKeeper;
  readonly #options: ProviderOptions;
  readonly #nodeReconciler: NodeReconciler;
  #listening = false;
  /** The VirtualNode as it was before it was deleted. */
  #known: VirtualNode;

  constructor(options: ProviderOptions) {
    const { virtualNode, home, clock, log } = options;
    const { name } = virtualNode.metadata;
    this.#options = options;
    this.#known = virtualNode;
    this.nodeName = nodeNameOf(virtualNode);
    const common = { client: home, clock, log };
    const only = (object: string): { fieldSelector: string } => ({
      fieldSelector: `metadata.name=${object}`,
    });
    this.virtualNodes = new Informer({ ...common, type: virtualNodes, list: only(name) });
    this.nodes = new Informer({ ...common, type: nodes, list: only(this.nodeName) });
    this.homePods = homePodInformer({ home, nodeName: this.nodeName, clock, log });
    this.#nodeReconciler = new NodeReconciler({
      home,
      nodes: this.nodes,
      nodeName: this.nodeName,
      inputs: () => this.nodeInputs(),
    });
    this.foreign = new ForeignCluster({
      home,
      secretRef: virtualNode.spec.kubeconfigSecretRef,
      clock,
      log,
    });
    const foreign = this.foreign.client;
    // Virtual nodes of one provider share its tenant namespaces, and the copies in them.
    const owner = virtualNode.metadata.labels?.[LABEL_PROVIDER] ?? name;
    this.tenants = new Tenants(
      (mapping) => new Tenant({ mapping, virtualNode: name, copyOwner: owner, home, foreign, clock, log }),
    );
    this.contact = new ForeignContact({
      foreign,
      problem: () => this.foreign.problem,
      tenantNamespace: () => this.virtualNode?.spec.namespaces?.[0]?.tenantNamespace,
      clock,
      log: log.named('contact'),
    });
    const shared = { home, foreign, homePods: this.homePods, tenants: this.tenants, clock };
    const contact = (): boolean => this.contact.state.ok;
    this.reflector = new Reflector({
      ...shared,
      owner,
      isShared: owner !== name,
      contact,
      wake: (keys) => keys.forEach((key) => this.controllers.pods.add(key)),
    });
    this.tokens = new TokenKeeper({
      ...shared,
      virtualNode: name,
      contact,
      homeApiReachable: () => this.virtualNode?.spec.homeApiServer !== undefined,
      wake: (key) => this.controllers.pods.add(key),
    });
    this.controllers = this.#controllers(shared, contact);
    connect(this);
  }

  /** Undefined when it has been deleted. */
  get virtualNode(): VirtualNode | undefined {
    const { metadata } = this.#options.virtualNode;
    return this.virtualNodes.synced ? this.virtualNodes.get(metadata.name) : this.#options.virtualNode;
  }

  get mappings(): NamespaceMapping[] {
    const { spec, status } = this.#lastSeen();
    // Of a VirtualNode that is gone nothing is asked any more, and all that runs is to be ended.
    const asked = this.virtualNode === undefined ? [] : (spec.namespaces ?? []);
    const recorded = [
      ...(status?.namespaces ?? []),
      ...(this.virtualNode === undefined ? (spec.namespaces ?? []) : []),
    ];
    return effectiveMappings(asked, recorded, (mapping) => this.#isInUse(mapping));
  }

  /** The Node may turn Ready only when the kubelet API answers. */
  setListening(listening: boolean): void {
    this.#listening = listening;
    this.controllers.node.add(this.nodeName);
  }

  /** Says NotReady on the way out, so that nothing new is scheduled here; the Lease then lapses by itself. */
  async markStopped(): Promise<void> {
    const { clock } = this.#options;
    this.#listening = false;
    const limit = new AbortController();
    const cancel = clock.after(MARK_STOPPED_MS, () => limit.abort(new Error('took too long')));
    try {
      await this.#reconcileNode(limit.signal);
    } catch (error) {
      // Deleted meanwhile: that is why we stop.
      if (!hasCode(error, 'NotFound')) throw error;
    } finally {
      cancel();
    }
  }

  contextOf(homeNamespace: string): ForgeContext | undefined {
    const mapping = this.tenants.of(homeNamespace)?.mapping;
    if (mapping === undefined) return undefined;
    const { virtualNode, nodeAddress } = this.#options;
    const homeApiServer = this.virtualNode?.spec.homeApiServer;
    return {
      virtualNode: virtualNode.metadata.name,
      nodeName: this.nodeName,
      nodeAddress,
      tenantNamespace: mapping.tenantNamespace,
      ...(homeApiServer === undefined ? {} : { homeApiServer }),
      homeViewOf: (address) => address,
    };
  }

  /** What must be up before the kubelet API, in order. */
  caches(): Component[] {
    return [this.virtualNodes, this.nodes, this.homePods, this.foreign, this.contact];
  }

  /** What begins to act, once the caches are there. */
  actors(): Component[] {
    const { node, reflect, tokens, pods: podController } = this.controllers;
    const open: Component = {
      name: 'tenants',
      start: async () => {
        this.tenants.open();
        this.tenants.set(this.mappings);
        await Promise.resolve();
      },
      stop: async () => this.tenants.stop(),
    };
    return [node, open, reflect, tokens, podController];
  }

  nodeInputs(): NodeInputs | undefined {
    const { nodeAddress, kubeletPort, version, clock } = this.#options;
    const virtualNode = this.virtualNode;
    if (virtualNode === undefined) return undefined;
    return {
      virtualNode,
      contact: this.contact.state,
      notReady: this.#notReady(),
      address: nodeAddress,
      kubeletPort: typeof kubeletPort === 'number' ? kubeletPort : kubeletPort(),
      version,
      now: new Date(clock.now()).toISOString().replace(/\.\d+Z$/u, 'Z'),
    };
  }

  #lastSeen(): VirtualNode {
    this.#known = this.virtualNode ?? this.#known;
    return this.#known;
  }

  /**
   * A pod may be begun only where the VirtualNode's status already names its namespace: else a namespace that is
   * taken out again while no agent runs would leave remote pods that nobody knows of.
   */
  #isRecorded(homeNamespace: string): boolean {
    const mapping = this.tenants.of(homeNamespace)?.mapping;
    if (mapping === undefined || this.virtualNode === undefined) return true;
    return includesMapping(this.virtualNode.status?.namespaces, mapping);
  }

  #notReady(): Obstacle | undefined {
    if (!this.#listening) {
      return { reason: VIRTUAL_NODE_REASONS.stopped, message: 'the agent is starting or has stopped' };
    }
    const message = this.tenants.missing;
    return message === undefined ? undefined : { reason: VIRTUAL_NODE_REASONS.cachesNotSynced, message };
  }

  #isInUse({ homeNamespace, tenantNamespace }: NamespaceMapping): boolean {
    const tenant = this.tenants.of(homeNamespace);
    if (tenant?.mapping.tenantNamespace !== tenantNamespace || !tenant.synced) return true;
    const { ConfigMap, Secret } = tenant.caches;
    if (tenant.pods.size + ConfigMap.remote.size + Secret.remote.size > 0) return true;
    return [...this.homePods.list()].some((pod) => pod.metadata.namespace === homeNamespace);
  }

  #references(home: Pod): ReferenceState {
    const namespace = home.metadata.namespace ?? '';
    const tokens = this.tokens.state(home);
    const state: ReferenceState & { missing: unknown[]; refused: unknown[] } = {
      missing: [],
      refused: typeof tokens === 'object' ? [tokens] : [],
      pending: tokens === 'pending',
    };
    for (const reference of podReferences(home)) {
      const copy = this.reflector.state(reference.kind, namespace, reference.name);
      if (copy === 'pending') state.pending = true;
      if (typeof copy === 'object') state.refused.push(copy);
      if (copy === 'missing' && !reference.optional) state.missing.push(reference);
    }
    return state;
  }

  #controllers(
    shared: {
      home: KubeClient;
      foreign: KubeClient;
      homePods: Informer<Pod>;
      tenants: Tenants;
      clock: Clock;
    },
    contact: () => boolean,
  ): Provider['controllers'] {
    const { events, metrics, clock, log } = this.#options;
    const podReconciler = new PodReconciler({
      ...shared,
      contact,
      context: (namespace) => this.contextOf(namespace),
      accepting: (namespace) => {
        const mapping = this.tenants.of(namespace)?.mapping;
        return mapping !== undefined && includesMapping(this.virtualNode?.spec.namespaces, mapping);
      },
      recorded: (namespace) => this.#isRecorded(namespace),
      references: (pod) => this.#references(pod),
      losses: new LossBudget(clock),
      onBurst: (message) => this.#tellBurst(message),
      events,
      log: log.named('pods'),
    });
    const common = { clock, log, ...(metrics === undefined ? {} : { metrics }) };
    return {
      node: new Controller({
        ...common,
        name: 'node',
        concurrency: 1,
        reconcile: async (_key, { signal }) => this.#reconcileNode(signal),
      }),
      pods: new Controller({
        ...common,
        name: 'pods',
        concurrency: POD_CONCURRENCY,
        reconcile: async (key, { signal }) => podReconciler.reconcile(key, signal),
      }),
      reflect: new Controller({
        ...common,
        name: 'reflect',
        concurrency: REFLECT_CONCURRENCY,
        reconcile: async (key, { signal }) => this.reflector.reconcile(key, signal),
      }),
      tokens: new Controller({
        ...common,
        name: 'tokens',
        concurrency: REFLECT_CONCURRENCY,
        reconcile: async (key, { signal }) => this.tokens.reconcile(key, signal),
      }),
    };
  }

  async #reconcileNode(signal: AbortSignal): Promise<ReconcileResult> {
    const { virtualNode } = this.#options;
    const inputs = this.nodeInputs();
    if (inputs === undefined) {
      await this.#removeNode(virtualNode, signal);
      return {};
    }
    let result: ReconcileResult;
    try {
      result = await this.#nodeReconciler.reconcile(signal);
    } catch (error) {
      if (hasCode(error, 'Invalid', 'Forbidden')) {
        const notReady = { reason: VIRTUAL_NODE_REASONS.nodeRefused, message: errorMessage(error) };
        await this.#writeStatus({ ...inputs, notReady }, signal);
      }
      throw error;
    }
    await this.#writeStatus(inputs, signal);
    return result;
  }

  async #writeStatus(inputs: NodeInputs, signal: AbortSignal): Promise<void> {
    const { home } = this.#options;
    await writeVirtualNodeStatus(home, { ...inputs, namespaces: this.mappings }, signal);
  }

  #tellBurst(message: string): void {
    const { apiVersion = API_VERSION, kind = 'VirtualNode', metadata } = this.#known;
    this.#options.events.event({ apiVersion, kind, metadata }, 'Warning', OFFLOADED_REASONS.lost, message);
  }

  /** The VirtualNode is gone: its Node goes too, after a look that the cache is right. */
  async #removeNode(virtualNode: VirtualNode, signal: AbortSignal): Promise<void> {
    const { home } = this.#options;
    try {
      await home.get(virtualNodes, { name: virtualNode.metadata.name }, { signal });
      this.virtualNodes.relist('a VirtualNode exists that the cache has lost');
      return;
    } catch (error) {
      if (!hasCode(error, 'NotFound')) throw error;
    }
    const node = this.nodes.get(this.nodeName);
    if (node === undefined) return;
    await home.delete(nodes, { name: this.nodeName }, { uid: node.metadata.uid, signal });
  }
}
