/** What is not as it should be, and what waits for a person. Pure. */
import { type Advertisement, ADVERTISEMENT_REASONS } from '../../api/advertisement.ts';
import { conditionOf } from '../../api/conditions.ts';
import {
  type Direction,
  DIRECTIONS,
  FOREIGN_CLUSTER_REASONS as REASONS,
  type ForeignCluster,
  isPeer,
  type PeeringState,
  takesNoNewPods,
} from '../../api/foreign-cluster.ts';
import { NAMESPACE_OFFLOADING_REASONS, type NamespaceOffloading } from '../../api/namespace-offloading.ts';
import type { PeeringRequest } from '../../api/peering-request.ts';
import { type Tunnel, TUNNEL_CONDITIONS, TUNNEL_REASONS } from '../../api/tunnel.ts';
import { VIRTUAL_NODE_CONDITIONS, VIRTUAL_NODE_REASONS, type VirtualNode } from '../../api/virtual-node.ts';
import type { Condition } from '../../api/wire.ts';
import { readyOf } from '../namespaces/offloading.ts';
import { approvalHint, labelOf } from '../peering/foreign-clusters.ts';

/** `isWaiting`: nothing is wrong, but it does not go on before a person does something. */
export interface Notice {
  about: string;
  message: string;
  /** A command. */
  see: string;
  isWaiting: boolean;
  /** The cluster at which that person is; absent: here. */
  waitsFor?: string;
}

/** Reasons that say that all goes its way, or that nobody wants anything. */
const CALM = new Set<string | undefined>([
  undefined,
  REASONS.ok,
  REASONS.notWanted,
  REASONS.noPolicy,
  REASONS.waitingForDecision,
  REASONS.waitingForOffer,
  REASONS.settingUp,
  REASONS.ending,
  REASONS.withdrawn,
  REASONS.deniedHere,
]);

export function peerNotices(cluster: ForeignCluster, ownClusterID: string | undefined): Notice[] {
  if (!isPeer(cluster)) return [];
  const { status, metadata } = cluster;
  const about = `peer ${metadata.name}`;
  const notices = DIRECTIONS.flatMap((direction) =>
    takesNoNewPods(status?.[direction])
      ? closedNotice(cluster, direction)
      : directionNotice(cluster, direction, ownClusterID),
  );
  const isUsed = DIRECTIONS.some((direction) => status?.[direction]?.phase === 'Established');
  if (notices.length === 0 && isUsed && status?.link?.connected !== true) {
    const condition = conditionOf(cluster, 'Connected');
    const message = `no link: ${condition?.message ?? 'the other cluster does not answer'}`;
    notices.push({
      about,
      message,
      see: `kubectl describe foreigncluster ${metadata.name}`,
      isWaiting: false,
    });
  }
  return notices;
}

/** It is in use; that its reason is calm elsewhere does not help pods that wait. */
function closedNotice({ metadata, status }: ForeignCluster, direction: Direction): Notice {
  const { reason, message }: Partial<PeeringState> = status?.[direction] ?? {};
  return {
    about: `peer ${metadata.name}`,
    message: `${direction} closed: ${reason}: ${message ?? ''}`,
    see: `kubectl describe foreigncluster ${metadata.name}`,
    isWaiting: false,
  };
}

function directionNotice(
  cluster: ForeignCluster,
  direction: Direction,
  ownClusterID: string | undefined,
): Notice[] {
  const { metadata, spec, status } = cluster;
  const { phase = 'None', reason, message }: Partial<PeeringState> = status?.[direction] ?? {};
  const said = [`${direction} ${phase}`, reason, message]
    .filter((word) => word !== undefined && word !== '')
    .join(': ');
  const about = { about: `peer ${metadata.name}`, see: `kubectl describe foreigncluster ${metadata.name}` };
  // What waits here for an approval is told of the request, or of the offer.
  const isToldElsewhere = direction === 'incoming' || phase === 'Offered';
  if (reason === REASONS.waitingForApproval && isToldElsewhere) return [];
  const hint = direction === 'outgoing' ? hintFor(cluster, reason, ownClusterID) : undefined;
  if (hint !== undefined) return [{ ...about, ...hint, isWaiting: true, waitsFor: labelOf(cluster) }];
  const isWaiting = WAITING.has(reason);
  const isProblem = isWanted(phase, direction, spec) && !CALM.has(reason);
  return isWaiting || isProblem ? [{ ...about, message: said, isWaiting }] : [];
}

/** For a person here. */
const WAITING = new Set<string | undefined>([REASONS.tokenRequired, REASONS.identityUnconfirmed]);

/** What somebody over there has to do; undefined: nothing. */
function hintFor(
  cluster: ForeignCluster,
  reason: string | undefined,
  ownClusterID: string | undefined,
): (Pick<Notice, 'message'> & { see?: string }) | undefined {
  if (reason === REASONS.waitingForApproval) return { message: approvalHint(cluster, ownClusterID) };
  if (reason !== REASONS.tokenRequired) return undefined;
  const { spec, status } = cluster;
  return {
    message:
      'Its administrator has to make a join token, over there: tributary token create. Then bring it here',
    see: `tributary peer ${spec?.endpoint ?? status?.link?.endpoint ?? 'ENDPOINT'} --token -`,
  };
}

/** A refusal of ours is no problem of ours. */
const isWanted = (
  phase: PeeringState['phase'],
  direction: Direction,
  spec: ForeignCluster['spec'],
): boolean =>
  phase === 'None' ? spec?.[direction] === 'Enabled' : !(phase === 'Denied' && direction === 'incoming');

export function tunnelNotices(tunnel: Tunnel): Notice[] {
  const { metadata, spec } = tunnel;
  const ready = conditionOf(tunnel, TUNNEL_CONDITIONS.ready);
  if (ready?.status !== 'False' || ready.reason === TUNNEL_REASONS.starting) return [];
  const about = `tunnel to ${spec.clusterName ?? metadata.name}`;
  const message = `${ready.reason}: ${ready.message}`;
  return [{ about, message, see: `kubectl describe tunnel ${metadata.name}`, isWaiting: false }];
}

export function virtualNodeNotices(node: VirtualNode): Notice[] {
  const { name } = node.metadata;
  const ready = conditionOf(node, VIRTUAL_NODE_CONDITIONS.ready);
  const restored = conditionOf(node, VIRTUAL_NODE_CONDITIONS.restored);
  const notice = ({ reason, message }: Condition, isWaiting: boolean): Notice => ({
    about: `virtual node ${name}`,
    message: `${reason}: ${message}`,
    see: `kubectl describe virtualnode ${name}`,
    isWaiting,
  });
  const isDown = ready?.status === 'False' && ready.reason !== VIRTUAL_NODE_REASONS.starting;
  // Somebody has to make anew what this cluster has lost. What the foreign one has lost, controllers make.
  const isRestored = restored?.reason === VIRTUAL_NODE_REASONS.homeRestored;
  return [...(isDown ? [notice(ready, false)] : []), ...(isRestored ? [notice(restored, true)] : [])];
}

const GOING_ON = new Set<string>([
  NAMESPACE_OFFLOADING_REASONS.inProgress,
  NAMESPACE_OFFLOADING_REASONS.ending,
  NAMESPACE_OFFLOADING_REASONS.moving,
]);

export function namespaceNotices(offloading: NamespaceOffloading): Notice[] {
  const ready = readyOf(offloading);
  const isClosed = ready?.reason === NAMESPACE_OFFLOADING_REASONS.closed;
  if (ready === undefined || (ready.status !== 'False' && !isClosed) || GOING_ON.has(ready.reason)) return [];
  const { namespace = '' } = offloading.metadata;
  return [
    {
      about: `namespace ${namespace}`,
      message: `${ready.reason}: ${ready.message}`,
      see: `kubectl -n ${namespace} describe namespaceoffloading`,
      isWaiting: ready.reason === NAMESPACE_OFFLOADING_REASONS.podsAtHome,
    },
  ];
}

export function requestNotices({ metadata, spec, status }: PeeringRequest): Notice[] {
  if (status?.reason !== REASONS.waitingForApproval || spec.approval !== undefined) return [];
  const { namespaces, moreNamespaces } = spec;
  const more = moreNamespaces === undefined ? '' : ` and ${moreNamespaces} more`;
  const wants = namespaces.length === 0 ? '' : `, for namespaces ${namespaces.join(', ')}${more}`;
  return [
    {
      about: `request of ${spec.clusterName ?? metadata.name}`,
      message: `wants to run pods here${wants}`,
      see: `tributary approve peeringrequest ${metadata.name}`,
      isWaiting: true,
    },
  ];
}

export function offerNotices({ metadata, spec, status }: Advertisement): Notice[] {
  if (status?.reason !== ADVERTISEMENT_REASONS.waitingForApproval || spec.approval !== undefined) return [];
  const { cpu = '0', memory = '0' } = spec.offer.resources;
  return [
    {
      about: `offer of ${spec.clusterName ?? metadata.name}`,
      message: `lends ${cpu} CPU and ${memory} of memory`,
      see: `tributary approve advertisement ${metadata.name}`,
      isWaiting: true,
    },
  ];
}
