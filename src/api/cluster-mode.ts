import type { Condition, KubeObject } from './wire.ts';
import { clusterScoped, type ResourceType } from './resources.ts';

/** There is one ClusterMode in a cluster, and this is its name. */
export const CLUSTER_MODE = 'cluster';

/** What becomes of a lost tether once the other cluster is back: Retether takes it up again, Autonomous waits for a person. */
export type AfterLoss = 'Retether' | 'Autonomous';

/** What becomes of forwarded pods while a tether is lost. */
export type WhenLost = 'Stay' | 'RunLocally';

/**
 * When the other cluster stops what this one has forwarded to it: `afterSeconds` after it has issued the last ticket that this
 * cluster has shown, and within `stopSeconds` from then on.
 */
export interface FenceTerms {
  afterSeconds: number;
  stopSeconds: number;
}

/** To which cluster this one hands itself over, and on which terms. */
export interface TetherSpec {
  /** Name of the ForeignCluster that stands for it. */
  cluster: string;
  /** Without contact for so long, this cluster takes back control. Default 300. */
  lostAfterSeconds?: number;
  /** Default Retether. */
  afterLoss?: AfterLoss;
  /** Default Stay. RunLocally: the other cluster stops what was forwarded, and later it runs here. */
  whenLost?: WhenLost;
  /** How long the other cluster may take to stop pods. Default 60. */
  stopSeconds?: number;
  /** How long this cluster waits after that before it runs them. Default 60. */
  marginSeconds?: number;
  /** Pods that run here and are not the other cluster's leave, as their budgets permit; else they stay until they end. Default false. */
  evict?: boolean;
  /** How long pods of the other cluster go on here after the end. Default 86400. */
  keepForSeconds?: number;
  /** Who is in this group is not held by the guards of a tether. Default `tributary:break-out`. */
  breakOutGroup?: string;
}

export interface ClusterModeSpec {
  /** Absent: the cluster is autonomous. */
  tether?: TetherSpec;
}

export type Mode = 'Autonomous' | 'Tethered';

/**
 * Autonomous: there is no tether. Entering: the other cluster is asked. Refused: something is in the way, or the other
 * cluster does not agree. Tethered: it controls the nodes here. Lost: it was not heard for too long, and this cluster controls
 * itself. Ending: what was made for the tether is being taken down.
 */
export type ModePhase = 'Autonomous' | 'Entering' | 'Refused' | 'Tethered' | 'Lost' | 'Ending';

/** The tether that is, or was until it has ended. */
export interface TetherStatus {
  clusterID: string;
  /** The name that it gives itself; for people. */
  clusterName?: string;
  /** When `mode` became Tethered the last time. */
  since?: string;
  /** What the other cluster holds itself to, while RunLocally is wanted; absent: nothing was agreed. */
  fence?: FenceTerms;
}

export interface ClusterModeStatus {
  observedGeneration?: number;
  /** Who decides about the nodes here. Guards and webhook follow this field alone. */
  mode?: Mode;
  phase?: ModePhase;
  tether?: TetherStatus;
  /** Names of the Nodes here that stand for the other cluster: the only ones that pods of users may be bound to. */
  nodes?: string[];
  /** When the last link ended; absent while there is one. */
  contactLost?: string;
  /** Since when forwarded pods are brought back to the nodes here: the other cluster has stopped them. */
  runsLocallySince?: string;
  conditions?: Condition[];
}

/** Who controls the nodes of this cluster: itself, or the one cluster to which it is tethered. */
export interface ClusterMode extends KubeObject {
  spec?: ClusterModeSpec;
  status?: ClusterModeStatus;
}

export const clusterModes: ResourceType<ClusterMode> = clusterScoped('tributary.dev/v1alpha1', 'ClusterMode');

/** The only condition. */
export const CLUSTER_MODE_CONDITIONS = {
  /** The other cluster controls the nodes here. */
  tethered: 'Tethered',
} as const;

/** Reasons of that condition; a closed list. */
export const CLUSTER_MODE_REASONS = {
  ok: 'AsExpected',
  notWanted: 'NotWanted',
  /** There is no ForeignCluster of that name, or nothing has proved its identity yet. */
  clusterUnknown: 'ClusterUnknown',
  ourselves: 'Ourselves',
  /** This cluster offers to others: a tether permits one such peering. */
  peeringInTheWay: 'PeeringInTheWay',
  /** A person has said in the ForeignCluster not to peer. */
  disabled: 'Disabled',
  waiting: 'WaitingForPeer',
  /** The other cluster has said no; the message says why. */
  refused: 'RefusedByPeer',
  lost: 'ContactLost',
  ending: 'Ending',
} as const;
export type ClusterModeReason = (typeof CLUSTER_MODE_REASONS)[keyof typeof CLUSTER_MODE_REASONS];

export const BREAK_OUT_GROUP = 'tributary:break-out';
export const TETHER_DEFAULTS = {
  lostAfterSeconds: 300,
  keepForSeconds: 86_400,
  stopSeconds: 60,
  marginSeconds: 60,
} as const;

/** Bounds of the fields above, seconds. */
export const TETHER_LIMITS = {
  lostAfterSeconds: { least: 10, most: 604_800 },
  stopSeconds: { least: 5, most: 3_600 },
  marginSeconds: { least: 5, most: 3_600 },
} as const;

/** What a tether means for pods of users. */
export interface Forwarding {
  /** Remote: they go to the other cluster. Local: new ones stay here, while those over there stay there. */
  podStrategy: 'Remote' | 'Local';
  /** Nodes here that stand for the other cluster. */
  nodes: readonly string[];
  /** Whether pods that are here already leave. */
  evict: boolean;
  /** Whether pods that were forwarded come back: nothing runs in their place over there any more. */
  comesHome: boolean;
}

/**
 * Undefined: the mode says nothing about pods. While a tether is lost, what was forwarded stays mapped, until no node stands for
 * the other cluster any more.
 */
export function forwardingOf(mode: ClusterMode | undefined): Forwarding | undefined {
  const { spec: { tether } = {}, status = {} } = mode ?? {};
  const { phase, mode: current, nodes = [], runsLocallySince } = status;
  if (tether === undefined || (phase !== 'Tethered' && phase !== 'Lost')) return undefined;
  const isTethered = current === 'Tethered';
  if (!isTethered && nodes.length === 0) return undefined;
  return {
    podStrategy: isTethered ? 'Remote' : 'Local',
    nodes,
    evict: isTethered && tether.evict === true,
    comesHome: !isTethered && runsLocallySince !== undefined,
  };
}
