import { type Amounts, formatAmount } from '../../api/amounts.ts';
import { ANNOTATION_OWNED, NODE_REASONS, TAINT_VIRTUAL_NODE } from '../../api/names.ts';
import { nodeLabelsOf, nodeNameOf } from '../../api/node-labels.ts';
import { type NetworkState, TUNNEL_REASONS } from '../../api/tunnel.ts';
import { closedMessage, type VirtualNode } from '../../api/virtual-node.ts';
import type { Node, NodeCondition, NodeStatus, ResourceList, Taint } from '../../api/wire.ts';
import { parseMilli } from '../../lib/quantity.ts';
import { withoutKeys } from '../../lib/fields.ts';
import type { HomeApiServerWay } from '../home-api-server.ts';
import type { HomeDnsWay } from '../home-dns.ts';
import type { RestoredState } from '../restored/restores.ts';
import { nodeAnnotationsOf } from './annotations.ts';
import type { ContactState } from './contact.ts';
import { type Obstacle, obstacleOf } from './readiness.ts';

/** What the Node is made from; read fresh for every decision. */
export interface NodeInputs {
  virtualNode: VirtualNode;
  contact: ContactState;
  /** Why the node cannot serve pods yet although the foreign cluster answers; undefined when it can. */
  notReady: Obstacle | undefined;
  network: NetworkState;
  /** The most that is to be shown, where that is less than the VirtualNode says. */
  room: Amounts;
  homeApiServer: HomeApiServerWay;
  homeDns: HomeDnsWay;
  /** Undefined: neither cluster was restored of late. */
  restored?: RestoredState | undefined;
  address: string;
  kubeletPort: number;
  version: string;
  /** RFC 3339. */
  now: string;
}

/** Keys of what this program put on the Node; see ANNOTATION_OWNED. */
interface Owned {
  labels: string[];
  annotations: string[];
  taints: string[];
}

/** Metadata and spec of the Node: sets ours, removes what was ours before, leaves everything of others alone. */
export function forgeNode(current: Node | undefined, virtualNode: VirtualNode): Node {
  const labels = nodeLabelsOf(virtualNode);
  const annotations = nodeAnnotationsOf(virtualNode);
  const { taintEffect: effect = 'NoSchedule', taints: further = [] } = virtualNode.spec;
  const own = { key: TAINT_VIRTUAL_NODE, value: virtualNode.metadata.name };
  const taints: Taint[] = effect === 'None' ? further : [{ ...own, effect }, ...further];
  const before = readOwned(current);
  const owned: Owned = {
    labels: Object.keys(labels).toSorted(),
    annotations: Object.keys(annotations).toSorted(),
    taints: taints.map(taintKey).toSorted(),
  };
  const ours = new Set([...owned.taints, ...before.taints]);
  const others = (current?.spec?.taints ?? []).filter((taint) => !ours.has(taintKey(taint)));
  const all = [...taints, ...others];
  const meta = current?.metadata ?? ({ name: nodeNameOf(virtualNode) } as Node['metadata']);
  return {
    apiVersion: 'v1',
    kind: 'Node',
    ...current,
    metadata: {
      ...meta,
      labels: { ...withoutKeys(meta.labels ?? {}, before.labels), ...labels },
      annotations: {
        ...withoutKeys(meta.annotations ?? {}, before.annotations),
        ...annotations,
        [ANNOTATION_OWNED]: JSON.stringify(owned),
      },
    },
    // An API server stores no empty list: to want one would be a difference for good, and no status would be written.
    spec: { ...withoutKeys(current?.spec ?? {}, ['taints']), ...(all.length > 0 && { taints: all }) },
  };
}

const taintKey = ({ key, effect }: Taint): string => `${key}:${effect}`;

function readOwned(node: Node | undefined): Owned {
  try {
    const { labels, annotations, taints } = JSON.parse(
      node?.metadata.annotations?.[ANNOTATION_OWNED] ?? '{}',
    ) as Partial<Owned>;
    return { labels: labels ?? [], annotations: annotations ?? [], taints: taints ?? [] };
  } catch {
    return { labels: [], annotations: [], taints: [] };
  }
}

/** The Node's status. Conditions of others stay; heartbeat times change only when something else does. */
export function forgeNodeStatus(current: Node, inputs: NodeInputs): NodeStatus {
  const { virtualNode, contact, address, kubeletPort, version } = inputs;
  const { spec } = virtualNode;
  const foreignVersion = foreignVersionOf(contact, virtualNode);
  // The CRD lets people write plain numbers, as Kubernetes does; the Node's own API takes text only.
  const resources = Object.fromEntries(
    Object.entries<string | number>(spec.resources).map(([name, amount]) => [name, String(amount)]),
  );
  const conditions = ourConditions(current, inputs);
  const ours = new Set(conditions.map(({ type }) => type));
  // Features that are no longer declared are removed.
  const { declaredFeatures: _declared, ...others } = current.status ?? {};
  return {
    ...others,
    capacity: resources,
    allocatable: bounded(resources, inputs.room),
    addresses: [
      { type: 'InternalIP', address },
      { type: 'Hostname', address: nodeNameOf(virtualNode) },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
    conditions: [
      ...conditions,
      ...(current.status?.conditions ?? []).filter((one) => !ours.has(one.type) && !isOfOurNetwork(one)),
    ],
    ...declaredFeatures(spec.declaredFeatures, foreignVersion),
    nodeInfo: {
      ...NODE_INFO,
      architecture: current.metadata.labels?.['kubernetes.io/arch'] ?? 'amd64',
      operatingSystem: current.metadata.labels?.['kubernetes.io/os'] ?? 'linux',
      osImage: foreignVersion === undefined ? UNKNOWN_IMAGE : `Kubernetes ${foreignVersion}`,
      kubeletVersion: foreignVersion ?? 'unknown',
      containerRuntimeVersion: `tributary://${version}`,
    },
  };
}

/** What an agent has not heard yet that starts while the cluster is away, its VirtualNode may know. */
export const foreignVersionOf = (
  contact: Pick<ContactState, 'version'>,
  { status }: Pick<VirtualNode, 'status'>,
): string | undefined => contact.version ?? status?.foreignVersion;

const bounded = (resources: ResourceList, room: Amounts): ResourceList =>
  Object.fromEntries(
    Object.entries(resources).map(([name, amount]) => {
      const most = room.get(name);
      return [name, most === undefined || parseMilli(amount) <= most ? amount : formatAmount(name, most)];
    }),
  );

const UNKNOWN_IMAGE = 'Kubernetes';
/** Required fields. A cluster has many kernels, which the provider does not tell; the machine is none. */
const NODE_INFO = {
  bootID: '',
  kernelVersion: 'foreign',
  kubeProxyVersion: '',
  machineID: '',
  systemUUID: '',
};

/**
 * `ExtendWebSocketsToKubelet` makes the home API server hand WebSocket upgrades through (KEP-4006), which this node
 * passes on; API servers from 1.30 on understand them.
 */
function declaredFeatures(
  asked: readonly string[] | undefined,
  version: string | undefined,
): { declaredFeatures?: string[] } {
  const minor = Number(/^v?1\.(\d+)/u.exec(version ?? '')?.[1] ?? 0);
  const features = new Set(asked ?? []);
  if (minor >= 30) features.add('ExtendWebSocketsToKubelet');
  return features.size === 0 ? {} : { declaredFeatures: [...features].toSorted() };
}

/** Reason of NetworkUnavailable=False. */
const NETWORK_UP = NODE_REASONS.tunnelReady;
const NETWORK_REASONS = new Set<string | undefined>([NETWORK_UP, ...Object.values(TUNNEL_REASONS)]);

/** A cloud's route controller may set the same condition; only ours is removed when there is no network. */
const isOfOurNetwork = ({ type, reason }: NodeCondition): boolean =>
  type === 'NetworkUnavailable' && NETWORK_REASONS.has(reason);

/** While it is True, the control plane taints the node, so that nothing new is scheduled here. */
function networkCondition(network: NetworkState): ConditionState[] {
  const type = 'NetworkUnavailable';
  if (network.kind === 'Off') return [];
  if (network.kind === 'Down') {
    return [{ type, status: 'True', reason: network.reason, message: network.message }];
  }
  return [{ type, status: 'False', reason: NETWORK_UP, message: 'the tunnel to the foreign cluster works' }];
}

type ConditionState = { type: string; status: string; reason: string; message: string };

const readyText = (virtualNode: VirtualNode): Pick<ConditionState, 'reason' | 'message'> => {
  const closed = closedMessage(virtualNode);
  return closed === undefined
    ? { reason: NODE_REASONS.ready, message: 'the foreign cluster takes pods' }
    : { reason: NODE_REASONS.closed, message: closed };
};

function ourConditions(
  current: Node,
  { virtualNode, contact, notReady, network, now }: NodeInputs,
): NodeCondition[] {
  const obstacle = obstacleOf(contact, notReady);
  const ready =
    obstacle === undefined ? { status: 'True', ...readyText(virtualNode) } : { status: 'False', ...obstacle };
  // This peer cannot see the foreign cluster's pressure; its refusals are shown on pods.
  const unknown = {
    status: 'False',
    reason: NODE_REASONS.notApplicable,
    message: 'managed by the foreign cluster',
  };
  return [
    { type: 'Ready', ...ready },
    ...['MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({ type, ...unknown })),
    ...networkCondition(network),
  ].map((condition) => withTimes(condition, current, now));
}

function withTimes(condition: ConditionState, current: Node, now: string): NodeCondition {
  const before = current.status?.conditions?.find(({ type }) => type === condition.type);
  const isSame =
    before?.status === condition.status &&
    before.reason === condition.reason &&
    before.message === condition.message;
  if (isSame) return before;
  const lastTransitionTime = before?.status === condition.status ? before.lastTransitionTime : now;
  return {
    ...condition,
    lastHeartbeatTime: now,
    ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
  };
}
