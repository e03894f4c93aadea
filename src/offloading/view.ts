import { isClusterNamespace } from '../api/cluster-namespaces.ts';
import { isConditionTrue } from '../api/conditions.ts';
import { matchesSelector } from '../api/label-selector.ts';
import { FINALIZER_OFFLOADING, LABEL_OFFLOADING_ORIGIN, LABEL_PEER, LABEL_PROVIDER } from '../api/names.ts';
import {
  type NamespaceMappingState,
  type NamespaceOffloading,
  type OffloadedCluster,
  OFFLOADING_NAME,
} from '../api/namespace-offloading.ts';
import { nodeLabelsOf, nodeNameOf } from '../api/node-labels.ts';
import { type NamespaceMapping, VIRTUAL_NODE_CONDITIONS, type VirtualNode } from '../api/virtual-node.ts';
import type { KubeObject, Pod } from '../api/wire.ts';
import { type DrainedNodes, isMadeAnew, partsOf, placeOf } from './drain.ts';
import { statusEntry } from './status.ts';

/** Value of LABEL_OFFLOADING_ORIGIN where a tether has made it. */
export const ORIGIN_TETHER = 'tether';

export const isOfTether = ({ metadata }: NamespaceOffloading): boolean =>
  metadata.labels?.[LABEL_OFFLOADING_ORIGIN] === ORIGIN_TETHER;

/** ClusterID of the provider for which peering made the VirtualNode; undefined: a person made it. */
export const providerOf = ({ metadata }: VirtualNode): string | undefined =>
  metadata.labels?.[LABEL_PROVIDER];

/** Names one entry of status.clusters, however many virtual nodes the cluster has. */
export const clusterOf = (virtualNode: VirtualNode): string =>
  providerOf(virtualNode) ?? virtualNode.metadata.name;

/** Whether the namespace is to be on this virtual node. One that is being deleted is no longer selected. */
export const isSelected = ({ spec }: NamespaceOffloading, virtualNode: VirtualNode): boolean =>
  virtualNode.metadata.deletionTimestamp === undefined &&
  matchesSelector(spec.clusterSelector ?? {}, nodeLabelsOf(virtualNode));

/** Whether the virtual node has that home namespace, or still looks after it. */
export const looksAfter = (
  { spec, status }: Pick<VirtualNode, 'spec' | 'status'>,
  homeNamespace: string,
): boolean =>
  [...(spec.namespaces ?? []), ...(status?.namespaces ?? [])].some(
    (mapping) => mapping.homeNamespace === homeNamespace,
  );

/** Whether its agent says that it begins no pods of that home namespace any more, and has not been asked otherwise since. */
function isLeaving({ spec, status }: VirtualNode, homeNamespace: string): boolean {
  const isOfIt = (mapping: NamespaceMapping): boolean => mapping.homeNamespace === homeNamespace;
  const said = status?.namespaces?.find(isOfIt);
  return said?.leaving === true && (spec.namespaces?.find(isOfIt) ?? said).leaving === true;
}

/** Why a namespace never leaves this cluster; undefined: it may. Pure. */
export function whyNotOffloadable({ metadata }: KubeObject, systemNamespace: string): string | undefined {
  const { name, labels } = metadata;
  if (isClusterNamespace(name, systemNamespace)) {
    return `namespace ${name} holds parts of this cluster and never leaves it; offload a namespace of its own for your applications`;
  }
  const peer = labels?.[LABEL_PEER];
  if (peer !== undefined) {
    return `namespace ${name} belongs to the peer ${peer}, which runs its pods here; what a peer brings is not lent on`;
  }
  return undefined;
}

/** What peering knows of the namespaces that it was asked to bring to providers. */
export interface PeerNamespaces {
  /** From caches. Undefined: the provider has not answered yet. */
  stateOf(clusterID: string, homeNamespace: string): NamespaceMappingState | undefined;
  /** Whether people name the namespace for that provider by other means, too: then its mapping stays without us. */
  isNamed(clusterID: string, homeNamespace: string): boolean;
  /** Calls back after any answer may have changed; the returned function ends that. */
  onChange(listener: () => void): () => void;
}

/** What this file reads of a cache. */
interface Cache<T> {
  get(key: string): T | undefined;
  list(): Iterable<T>;
}

interface ViewOptions {
  offloadings: Cache<NamespaceOffloading>;
  virtualNodes: Cache<VirtualNode>;
  namespaces: Cache<KubeObject>;
  systemNamespace: string;
  peerNamespaces: PeerNamespaces;
}

export const namespaceOf = ({ metadata }: NamespaceOffloading): string => metadata.namespace ?? '';

/** Answers questions from several caches; has no state of its own. */
export class View {
  readonly #options: ViewOptions;

  constructor(options: ViewOptions) {
    this.#options = options;
  }

  namespace(name: string): KubeObject | undefined {
    return this.#options.namespaces.get(name);
  }

  isTerminating(namespace: string): boolean {
    return this.namespace(namespace)?.metadata.deletionTimestamp !== undefined;
  }

  offloading(namespace: string): NamespaceOffloading | undefined {
    return this.#options.offloadings.get(`${namespace}/${OFFLOADING_NAME}`);
  }

  offloadings(): Iterable<NamespaceOffloading> {
    return this.#options.offloadings.list();
  }

  /** Why the namespace never leaves this cluster. */
  whyNotOffloadable(namespace: string): string | undefined {
    const object = this.namespace(namespace);
    return object && whyNotOffloadable(object, this.#options.systemNamespace);
  }

  /** Nothing is offloaded before the finalizer is set: otherwise it could stay abroad after the object is gone. */
  isInEffect(offloading: NamespaceOffloading): boolean {
    const { deletionTimestamp, finalizers = [] } = offloading.metadata;
    const namespace = this.namespace(namespaceOf(offloading));
    return (
      deletionTimestamp === undefined &&
      finalizers.includes(FINALIZER_OFFLOADING) &&
      namespace !== undefined &&
      namespace.metadata.deletionTimestamp === undefined &&
      this.whyNotOffloadable(namespace.metadata.name) === undefined
    );
  }

  /**
   * Whether the NamespaceOffloading of that pod ends it and makes it anew when its node goes: it is being removed, or a tether has
   * made it, and removes it when the node goes. Whoever drained such a node first would lose the pod.
   */
  bringsHome(pod: Pod): boolean {
    const offloading = this.offloading(pod.metadata.namespace ?? '');
    if (offloading === undefined || offloading.spec.onRemoval === 'End') return false;
    const { deletionTimestamp, finalizers = [] } = offloading.metadata;
    const isGoing = deletionTimestamp !== undefined || isOfTether(offloading);
    return isGoing && finalizers.includes(FINALIZER_OFFLOADING) && isMadeAnew(pod);
  }

  virtualNodesOf(cluster: string): VirtualNode[] {
    return [...this.#options.virtualNodes.list()].filter((one) => clusterOf(one) === cluster);
  }

  hasVirtualNodes(): boolean {
    return [...this.#options.virtualNodes.list()].length > 0;
  }

  /** The VirtualNode of that Node. Where it is gone, the names are taken to be the same, as they are by default. */
  virtualNodeOf(nodeName: string): string {
    const known = [...this.#options.virtualNodes.list()].find((one) => nodeNameOf(one) === nodeName);
    return known?.metadata.name ?? nodeName;
  }

  /** Names of Nodes of all VirtualNodes, also of those of the namespace that are gone. */
  virtualNodeNames({ status }: NamespaceOffloading): Set<string> {
    return new Set([
      ...[...this.#options.virtualNodes.list()].map(nodeNameOf),
      ...(status?.clusters ?? []).flatMap(({ virtualNodes: former }) => former),
    ]);
  }

  selectedBy(offloading: NamespaceOffloading): VirtualNode[] {
    return [...this.#options.virtualNodes.list()].filter((one) => isSelected(offloading, one));
  }

  /**
   * Whether a mapping still has to go: a VirtualNode that peering keeps for that cluster has the namespace, or still looks
   * after it, and nobody else wants it there. A mapping belongs to the whole cluster: a single virtual node loses none.
   */
  isMapped(namespace: string, place: string): boolean {
    const { cluster, virtualNode } = partsOf(place);
    if (virtualNode !== undefined || this.#options.peerNamespaces.isNamed(cluster, namespace)) return false;
    return this.virtualNodesOf(cluster).some(
      (one) => providerOf(one) !== undefined && looksAfter(one, namespace),
    );
  }

  /**
   * Whether pods of the namespace may still be begun in that cluster: the agent of one of its virtual nodes has not confirmed, in
   * its status, that the namespace leaves. One that is not Ready confirms nothing, and is not waited for.
   */
  mayBegin(namespace: string, place: string): boolean {
    if (!this.isMapped(namespace, place)) return false;
    return this.virtualNodesOf(partsOf(place).cluster).some(
      (one) =>
        looksAfter({ spec: one.spec }, namespace) &&
        isConditionTrue(one.status?.conditions, VIRTUAL_NODE_CONDITIONS.ready) &&
        !isLeaving(one, namespace),
    );
  }

  /** Clusters in its status that are no longer selected. */
  leftBy(offloading: NamespaceOffloading): string[] {
    const current = this.isInEffect(offloading)
      ? new Set(this.selectedBy(offloading).map(clusterOf))
      : new Set<string>();
    return clustersIn(offloading).filter((cluster) => !current.has(cluster));
  }

  /** Virtual nodes in its status that are no longer selected although others of their cluster are; as places. */
  siblingsLeftBy(offloading: NamespaceOffloading): string[] {
    if (!this.isInEffect(offloading)) return [];
    const selected = this.selectedBy(offloading);
    const isSelectedNode = (name: string): boolean => selected.some(({ metadata }) => metadata.name === name);
    return (offloading.status?.clusters ?? [])
      .filter(({ cluster }) => selected.some((one) => clusterOf(one) === cluster))
      .flatMap(({ cluster, virtualNodes }) =>
        virtualNodes
          .filter((name) => !isSelectedNode(name) && this.#options.virtualNodes.get(name) !== undefined)
          .map((name) => placeOf(cluster, name)),
      );
  }

  /** Entries of its status: all selected clusters, and the places that are still being drained. */
  entries(offloading: NamespaceOffloading, places: readonly string[]): OffloadedCluster[] {
    const isInEffect = this.isInEffect(offloading);
    const selected = isInEffect ? this.selectedBy(offloading) : [];
    const drained = places.map(partsOf);
    const clusters = new Set([...selected.map(clusterOf), ...drained.map(({ cluster }) => cluster)]);
    return [...clusters].toSorted().map((cluster) => {
      const draining = drained.flatMap((one) => (one.cluster === cluster && one.virtualNode) || []);
      return this.#entry(offloading, cluster, { selected, draining });
    });
  }

  #entry(
    offloading: NamespaceOffloading,
    cluster: string,
    { selected, draining }: { selected: readonly VirtualNode[]; draining: readonly string[] },
  ): OffloadedCluster {
    const homeNamespace = namespaceOf(offloading);
    const virtualNodes = this.virtualNodesOf(cluster);
    const isPeer = virtualNodes.some((one) => providerOf(one) !== undefined);
    const atPeer = isPeer ? this.#options.peerNamespaces.stateOf(cluster, homeNamespace) : undefined;
    const own = selected.filter((one) => clusterOf(one) === cluster);
    return statusEntry({ homeNamespace, cluster, isPeer, virtualNodes, selected: own, draining, atPeer });
  }

  /** Nodes of those places, also of VirtualNodes that are gone: by default their names are the same. */
  nodesOf(offloading: NamespaceOffloading, places: readonly string[]): DrainedNodes {
    const peers = new Set<string>();
    const byHand = new Set<string>();
    const closed = new Set<string>();
    for (const { cluster, virtualNode } of places.map(partsOf)) {
      const all = this.virtualNodesOf(cluster);
      const known = all.filter(({ metadata }) => (virtualNode ?? metadata.name) === metadata.name);
      const isKept = this.#options.peerNamespaces.isNamed(cluster, namespaceOf(offloading));
      const isPeer = known.length === 0 || (!isKept && known.some((one) => providerOf(one) !== undefined));
      const entry = offloading.status?.clusters?.find((one) => one.cluster === cluster);
      const former = virtualNode === undefined ? (entry?.virtualNodes ?? []) : [];
      for (const name of [...known.map(nodeNameOf), ...former]) {
        (isPeer ? peers : byHand).add(name);
      }
      const namespace = namespaceOf(offloading);
      for (const one of known.filter((it) => isLeaving(it, namespace))) closed.add(nodeNameOf(one));
    }
    return { peers, byHand, closed };
  }
}

export const clustersIn = ({ status }: NamespaceOffloading): string[] =>
  (status?.clusters ?? []).map(({ cluster }) => cluster);
