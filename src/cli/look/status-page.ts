/** What `tributary status` says, as data: what is there, what is not as it should be, what waits for a person. Pure. */
import { isPeer, peerIDOf, takesNoNewPods } from '../../api/foreign-cluster.ts';
import { CLUSTER_LEASE, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import {
  NAMESPACE_OFFLOADING_REASONS as REASONS,
  type NamespaceOffloading,
} from '../../api/namespace-offloading.ts';
import { isFinished } from '../../api/pod.ts';
import { isKeptAway } from '../../api/sent-abroad.ts';
import { closedCondition } from '../../api/virtual-node.ts';
import type { WireGuardKind } from '../../api/tunnel.ts';
import type { Pod } from '../../api/wire.ts';
import { nodeNameOf } from '../../api/node-labels.ts';
import { present } from '../../lib/fields.ts';
import { keptAwayLines, keptAwayTitle } from '../namespaces/kept-away.ts';
import { isReady, nameOf } from '../namespaces/offloading.ts';
import {
  namespaceNotices,
  type Notice,
  offerNotices,
  peerNotices,
  requestNotices,
  tunnelNotices,
  virtualNodeNotices,
} from './attention.ts';
import type { Facts, Unreadable } from './facts.ts';
import { installationNotices, type RoleLine, roleName, roleNotices, rolesOf } from './role-lines.ts';
import { clusterNameOf, isReadyNode, usedOf } from './use.ts';

export interface PeerLine {
  /** Of the ForeignCluster. One that was found has the ClusterID for a name. */
  name: string;
  /** What its people call it; empty while it has not said so. */
  clusterName: string;
  clusterID: string;
  outgoing: string;
  incoming: string;
  link: boolean;
  /** Undefined: the networks are not joined, or nothing was measured yet. */
  rttMs?: number;
  lossPercent?: number;
  /** Whose WireGuard the tunnel goes through on this side. */
  wireguard?: WireGuardKind;
}

interface VirtualNodeLine {
  name: string;
  cluster: string;
  isReady: boolean;
  /** Ready, and no new pods are sent there. */
  isClosed: boolean;
  pods: string;
  cpu: string;
  memory: string;
}

interface NamespaceLine {
  name: string;
  strategy: string;
  isReady: boolean;
  clusters: string[];
  /** Those of them to which no new pods are sent. */
  closed: string[];
  /** Pods that run here, over there, and those without a node. */
  atHome: number;
  abroad: number;
  waiting: number;
}

export interface StatusPage {
  version: string;
  /** Undefined: the cluster role has not said it yet. */
  clusterID: string | undefined;
  clusterName: string | undefined;
  /** Only where it is not Autonomous. */
  mode?: string;
  isHealthy: boolean;
  roles: RoleLine[];
  peers: PeerLine[];
  /** Clusters that are known, and with which nothing is shared. */
  others: number;
  virtualNodes: VirtualNodeLine[];
  namespaces: NamespaceLine[];
  problems: Notice[];
  /** For a person here. */
  waiting: Notice[];
  waitingForOthers: Notice[];
  unreadable: readonly Unreadable[];
}

export function pageOf(facts: Facts, version: string, now: number): StatusPage {
  const { own, mode, clusters, use, offloadings, podsOf, requests, offers, tunnels } = facts;
  const roles = rolesOf(facts);
  // What the last gateway has written is old by then.
  const isMeasured = !roles.some(({ role, isMissing }) => role === 'gateway' && isMissing);
  const abroad = new Set(use.map(({ virtualNode }) => nodeNameOf(virtualNode)));
  const notices = [
    ...installationNotices(facts),
    ...roles.flatMap(roleNotices),
    ...leaseNotices(facts, now),
    ...clusters.flatMap((cluster) => peerNotices(cluster, own?.clusterID)),
    ...tunnels.flatMap(tunnelNotices),
    ...use.flatMap(({ virtualNode }) => virtualNodeNotices(virtualNode)),
    ...offloadings.flatMap(namespaceNotices),
    ...keptAwayNotices(facts),
    ...requests.flatMap(requestNotices),
    ...offers.flatMap(offerNotices),
  ];
  const problems = notices.filter(({ isWaiting }) => !isWaiting);
  const phase = mode?.status?.phase ?? 'Autonomous';
  const peers = clusters.filter(isPeer);
  return {
    version,
    clusterID: own?.clusterID,
    clusterName: own?.clusterName,
    ...(phase !== 'Autonomous' && { mode: `${phase}: ${mode?.status?.conditions?.[0]?.message ?? ''}` }),
    isHealthy: problems.length === 0,
    roles,
    peers: peers.map((cluster) => peerLine(cluster, isMeasured ? tunnels : [])),
    others: clusters.length - peers.length,
    virtualNodes: use.map((one) => ({
      name: one.virtualNode.metadata.name,
      cluster: clusterNameOf(one.virtualNode),
      isReady: isReadyNode(one),
      isClosed: closedCondition(one.virtualNode) !== undefined,
      pods: usedOf(one, 'pods'),
      cpu: usedOf(one, 'cpu'),
      memory: usedOf(one, 'memory'),
    })),
    namespaces: offloadings.map((one) => namespaceLine(one, podsOf, abroad)),
    problems,
    waiting: notices.filter(({ isWaiting, waitsFor }) => isWaiting && waitsFor === undefined),
    waitingForOthers: notices.filter(({ isWaiting, waitsFor }) => isWaiting && waitsFor !== undefined),
    unreadable: facts.unreadable,
  };
}

/** Of namespaces that are not offloaded: of the others, the role cluster says it. */
function keptAwayNotices({ offloadings, use, waitingPods }: Facts): Notice[] {
  const offloaded = new Set(offloadings.map(({ metadata }) => metadata.namespace));
  const kept = [...use.flatMap((one) => one.pods), ...waitingPods].filter(
    (pod) => !offloaded.has(pod.metadata.namespace) && isKeptAway(pod),
  );
  return [...Map.groupBy(kept, ({ metadata }) => metadata.namespace ?? '')].map(([namespace, pods]) => ({
    about: `namespace ${namespace}`,
    message: `it is not offloaded: ${keptAwayTitle(pods)} ${keptAwayLines(pods).join('; ')}`,
    see: `kubectl -n ${namespace} describe pod ${pods[0]?.metadata.name ?? ''}`,
    isWaiting: false,
  }));
}

/** Several times what passes between two renewals, and more than clocks differ. */
const SILENT_MS = 60_000;

/** The role may also run outside of the cluster: then only its Lease tells. */
function leaseNotices({ lease, deployments, unreadable }: Facts, now: number): Notice[] {
  const isKnown = !unreadable.some(({ what }) => what === 'leases');
  const isDeployed = deployments.some((one) => roleName(one) === 'cluster');
  if (!isKnown) return [];
  const see = `kubectl -n ${SYSTEM_NAMESPACE} get lease,pods`;
  const about = 'role cluster';
  if (lease === undefined) {
    const message = 'it has never run here; to begin: tributary install';
    return isDeployed ? [] : [{ about, message, see, isWaiting: false }];
  }
  const silentMs = now - Date.parse(lease.spec?.renewTime ?? '');
  if (!(silentMs > SILENT_MS)) return [];
  const message = `it has not renewed its Lease ${CLUSTER_LEASE} for ${Math.round(silentMs / 1000)} s: is it running?`;
  return [{ about, message, see, isWaiting: false }];
}

function peerLine(cluster: Facts['clusters'][number], tunnels: Facts['tunnels']): PeerLine {
  const { metadata, status = {} } = cluster;
  const { outgoing, incoming, link } = status;
  const clusterID = peerIDOf(cluster) ?? '';
  return {
    name: metadata.name,
    clusterName: status.clusterName ?? '',
    clusterID,
    outgoing: takesNoNewPods(outgoing) ? 'closed' : (outgoing?.phase ?? 'None'),
    incoming: incoming?.phase ?? 'None',
    link: link?.connected === true,
    ...measured(tunnels.find((one) => one.metadata.name === clusterID)),
  };
}

function measured(
  tunnel: Facts['tunnels'][number] | undefined,
): Pick<PeerLine, 'rttMs' | 'lossPercent' | 'wireguard'> {
  const { rttMs, lossPercent, wireguard } = tunnel?.status?.connection ?? {};
  return present({ rttMs, lossPercent, wireguard });
}

function namespaceLine(
  offloading: NamespaceOffloading,
  podsOf: Facts['podsOf'],
  abroad: ReadonlySet<string>,
): NamespaceLine {
  const { metadata, spec, status } = offloading;
  const all = (podsOf.get(metadata.namespace ?? '') ?? []).filter((pod) => !isFinished(pod));
  const nodeOf = ({ spec: { nodeName = '' } = {} as NonNullable<Pod['spec']> }: Pod): string => nodeName;
  return {
    name: metadata.namespace ?? '',
    strategy: spec.podStrategy ?? 'LocalAndRemote',
    isReady: isReady(offloading),
    clusters: (status?.clusters ?? []).filter(({ phase }) => phase === 'Ready').map(nameOf),
    closed: (status?.clusters ?? []).filter(({ reason }) => reason === REASONS.closed).map(nameOf),
    atHome: all.filter((pod) => nodeOf(pod) !== '' && !abroad.has(nodeOf(pod))).length,
    abroad: all.filter((pod) => abroad.has(nodeOf(pod))).length,
    waiting: all.filter((pod) => nodeOf(pod) === '').length,
  };
}
