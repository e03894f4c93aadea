import { FINALIZER_OFFLOADING } from '../api/names.ts';
import { OFFLOADING_NAME } from '../api/namespace-offloading.ts';
import type { NamespaceOffloading, OffloadedCluster } from '../api/namespace-offloading.ts';
import type { VirtualNode } from '../api/virtual-node.ts';
import type { KubeObject } from '../api/wire.ts';
import { nodeNameOf } from '../api/node-labels.ts';
import { entryOf } from './clusters.ts';
import { partsOf, placeOf } from './departures.ts';
import type { LeftNodes } from './leaving.ts';
import type { Standing } from './ports.ts';
import { refusalOf } from './refusal.ts';
import { clusterOf, isSelected, names, providerOf } from './selection.ts';

/** What is read of a cache. */
interface Cache<T> {
  get(key: string): T | undefined;
  list(): Iterable<T>;
}

export interface ViewOptions {
  offloadings: Cache<NamespaceOffloading>;
  virtualNodes: Cache<VirtualNode>;
  namespaces: Cache<KubeObject>;
  systemNamespace: string;
  standing: Standing;
}

export const namespaceOf = ({ metadata }: NamespaceOffloading): string => metadata.namespace ?? '';

/** Answers from the caches, put together; remembers nothing. */
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
  refusal(namespace: string): string | undefined {
    const object = this.namespace(namespace);
    return object && refusalOf(object, this.#options.systemNamespace);
  }

  /** Nothing goes anywhere before the finalizer is there: else it could stay when the object goes. */
  isInEffect(offloading: NamespaceOffloading): boolean {
    const { deletionTimestamp, finalizers = [] } = offloading.metadata;
    const namespace = this.namespace(namespaceOf(offloading));
    return (
      deletionTimestamp === undefined &&
      finalizers.includes(FINALIZER_OFFLOADING) &&
      namespace !== undefined &&
      namespace.metadata.deletionTimestamp === undefined &&
      this.refusal(namespace.metadata.name) === undefined
    );
  }

  virtualNodesOf(cluster: string): VirtualNode[] {
    return [...this.#options.virtualNodes.list()].filter((one) => clusterOf(one) === cluster);
  }

  /** By the name of its Node; where there is none any more, by default the names are the same. */
  virtualNodeOf(nodeName: string): string {
    const known = [...this.#options.virtualNodes.list()].find((one) => nodeNameOf(one) === nodeName);
    return known?.metadata.name ?? nodeName;
  }

  selectedBy(offloading: NamespaceOffloading): VirtualNode[] {
    return [...this.#options.virtualNodes.list()].filter((one) => isSelected(offloading, one));
  }

  /**
   * Whether a mapping has still to go: a VirtualNode that peering keeps for that cluster has, or still looks after, the
   * namespace, and nobody else wants it there. The mapping is of the whole cluster: a single virtual node loses none.
   */
  isMapped(namespace: string, place: string): boolean {
    const { cluster, virtualNode } = partsOf(place);
    if (virtualNode !== undefined || this.#options.standing.isNamed(cluster, namespace)) return false;
    return this.virtualNodesOf(cluster).some((one) => providerOf(one) !== undefined && names(one, namespace));
  }

  /** Clusters in its status that are selected no more. */
  leftBy(offloading: NamespaceOffloading): string[] {
    const current = this.isInEffect(offloading)
      ? new Set(this.selectedBy(offloading).map(clusterOf))
      : new Set<string>();
    return clustersIn(offloading).filter((cluster) => !current.has(cluster));
  }

  /** Virtual nodes in its status that are selected no more, though others of their cluster are; as places. */
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

  /** Entries of its status: of all that are selected, and of places left that are still there. */
  entries(offloading: NamespaceOffloading, places: readonly string[]): OffloadedCluster[] {
    const isInEffect = this.isInEffect(offloading);
    const selected = isInEffect ? this.selectedBy(offloading) : [];
    const stillThere = places.map(partsOf);
    const clusters = new Set([...selected.map(clusterOf), ...stillThere.map(({ cluster }) => cluster)]);
    return [...clusters].toSorted().map((cluster) => {
      const leaving = stillThere.flatMap((one) => (one.cluster === cluster && one.virtualNode) || []);
      return this.#entry(offloading, cluster, { selected, leaving });
    });
  }

  #entry(
    offloading: NamespaceOffloading,
    cluster: string,
    { selected, leaving }: { selected: readonly VirtualNode[]; leaving: readonly string[] },
  ): OffloadedCluster {
    const homeNamespace = namespaceOf(offloading);
    const virtualNodes = this.virtualNodesOf(cluster);
    const isPeer = virtualNodes.some((one) => providerOf(one) !== undefined);
    const standing = isPeer ? this.#options.standing.standing(cluster, homeNamespace) : undefined;
    const own = selected.filter((one) => clusterOf(one) === cluster);
    return entryOf({ homeNamespace, cluster, isPeer, virtualNodes, selected: own, leaving, standing });
  }

  /** Nodes of those places, also of VirtualNodes that have gone meanwhile: by default their names are the same. */
  nodesOf(offloading: NamespaceOffloading, places: readonly string[]): LeftNodes {
    const peers = new Set<string>();
    const byHand = new Set<string>();
    for (const { cluster, virtualNode } of places.map(partsOf)) {
      const all = this.virtualNodesOf(cluster);
      const known = all.filter(({ metadata }) => (virtualNode ?? metadata.name) === metadata.name);
      const isKept = this.#options.standing.isNamed(cluster, namespaceOf(offloading));
      const isPeer = known.length === 0 || (!isKept && known.some((one) => providerOf(one) !== undefined));
      const entry = offloading.status?.clusters?.find((one) => one.cluster === cluster);
      const former = virtualNode === undefined ? (entry?.virtualNodes ?? []) : [];
      for (const name of [...known.map(nodeNameOf), ...former]) {
        (isPeer ? peers : byHand).add(name);
      }
    }
    return { peers, byHand };
  }
}

export const clustersIn = ({ status }: NamespaceOffloading): string[] =>
  (status?.clusters ?? []).map(({ cluster }) => cluster);
