import { addTo, type Amounts, type Sums } from '../../api/amounts.ts';
import { LABEL_DEVICE, LABEL_NODE_TYPE, LABEL_PROVIDER, NODE_TYPE_VIRTUAL } from '../../api/names.ts';
import type { StorageClassOffer } from '../../api/offer.ts';
import { type CountedPod, readableAmounts } from '../../api/pod-requests.ts';
import { hardTaints } from '../../api/taints.ts';
import type { Node, NodeStatus, Taint } from '../../api/wire.ts';
import type { StockPriority } from './priority-classes.ts';

/** What there is to lend from, as it is now. */
export interface Stock {
  /** Real nodes, in the order of their names. */
  nodes: readonly StockNode[];
  /** Virtual nodes that stand for a device, by its ClusterID: they are a place for what it brings itself, and for no other peer. */
  devices: ReadonlyMap<string, readonly StockNode[]>;
  /** Requests of each peer's pods, wherever they run here. */
  used: ReadonlyMap<string, Amounts>;
  storageClasses: readonly StorageClassOffer[];
  ingressClasses: readonly string[];
  priorityClasses: readonly StockPriority[];
}

export interface StockNode {
  name: string;
  labels: Readonly<Record<string, string>>;
  /** Takes new pods of others now, of those that tolerate its taints. */
  lends: boolean;
  /** Those that keep pods off. */
  taints: readonly Taint[];
  architecture: string;
  operatingSystem: string;
  kubeletVersion: string;
  images: readonly string[];
  declaredFeatures: readonly string[];
  allocatable: Amounts;
  /** Requests of our own pods on it. */
  own: Amounts;
  /** Requests of peers' pods on it, by the value of the namespace's label LABEL_PEER. */
  peers: ReadonlyMap<string, Amounts>;
}

export interface StockParts {
  nodes: Iterable<Node>;
  pods: Iterable<CountedPod>;
  /** Whose pods run in a namespace; undefined: our own. */
  peerOf: (namespace: string) => string | undefined;
  storageClasses: readonly StorageClassOffer[];
  ingressClasses: readonly string[];
  priorityClasses: readonly StockPriority[];
}

interface Use {
  own: Sums;
  peers: Map<string, Sums>;
}

export function takeStock({ nodes, pods, peerOf, ...classes }: StockParts): Stock {
  const byNode = new Map<string, Use>();
  const used = new Map<string, Sums>();
  for (const { node, requests, metadata } of pods) {
    if (node === '') continue;
    const use = entryOf(byNode, node, () => ({ own: new Map(), peers: new Map() }));
    const peer = peerOf(metadata.namespace ?? '');
    addTo(peer === undefined ? use.own : entryOf(use.peers, peer, emptySums), requests);
    if (peer !== undefined) addTo(entryOf(used, peer, emptySums), requests);
  }
  const all = [...nodes].toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const isReal = ({ metadata }: Node): boolean => metadata.labels?.[LABEL_NODE_TYPE] !== NODE_TYPE_VIRTUAL;
  const inStock = (node: Node): StockNode => stockNode(node, byNode.get(node.metadata.name));
  const devices = Map.groupBy(all.filter(isDevice), deviceOf);
  return {
    nodes: all.filter(isReal).map(inStock),
    devices: new Map([...devices].map(([peer, its]) => [peer, its.map(inStock)])),
    used,
    ...classes,
  };
}

const deviceOf = ({ metadata }: Node): string => metadata.labels?.[LABEL_PROVIDER] ?? '';

const isDevice = (node: Node): boolean =>
  node.metadata.labels?.[LABEL_NODE_TYPE] === NODE_TYPE_VIRTUAL &&
  node.metadata.labels[LABEL_DEVICE] === 'true' &&
  deviceOf(node) !== '';

const emptySums = (): Sums => new Map();

function entryOf<V>(map: Map<string, V>, key: string, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

function stockNode(node: Node, use: Use | undefined): StockNode {
  const { metadata, status = {} } = node;
  const { images = [], declaredFeatures = [], allocatable } = status;
  const labels = metadata.labels ?? {};
  const { own, peers } = use ?? { own: new Map(), peers: new Map() };
  return {
    name: metadata.name,
    labels,
    lends: canLend(node),
    taints: hardTaints(node.spec?.taints),
    ...platformOf(status.nodeInfo, labels),
    images: images.flatMap(({ names = [] }) => names),
    declaredFeatures,
    allocatable: readableAmounts(allocatable),
    own,
    peers,
  };
}

type NodeInfo = NonNullable<NodeStatus['nodeInfo']>;

/** A simulated kubelet may leave out what it is; its labels are the next best word. */
function platformOf(
  info: NodeInfo | undefined,
  labels: Readonly<Record<string, string>>,
): Pick<StockNode, 'architecture' | 'operatingSystem' | 'kubeletVersion'> {
  return {
    architecture: info?.architecture || labels['kubernetes.io/arch'] || 'amd64',
    operatingSystem: info?.operatingSystem || labels['kubernetes.io/os'] || 'linux',
    kubeletVersion: info?.kubeletVersion ?? '',
  };
}

/** Conditions that keep pods off a node, each by the status that does so. */
const PRESSURES = new Set(['MemoryPressure', 'DiskPressure', 'PIDPressure', 'NetworkUnavailable']);

/** Ready, schedulable and under no pressure. Its taints are a matter of each policy. */
export function canLend({ metadata, spec, status }: Node): boolean {
  if (metadata.deletionTimestamp !== undefined || spec?.unschedulable === true) return false;
  const conditions = status?.conditions ?? [];
  const isReady = conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True');
  return isReady && !conditions.some(({ type, status: is }) => PRESSURES.has(type) && is === 'True');
}
