import type { Condition, KubeObject } from './wire.ts';
import { clusterScoped, type ResourceType } from './resources.ts';

/** There is one ClusterMode in a cluster, and this is its name. */
export const CLUSTER_MODE = 'cluster';

/** What becomes of a lost tether once the other cluster is back: Retether takes it up again, Autonomous waits for a person. */
export type AfterLoss = 'Retether' | 'Autonomous';

/** To which cluster this one hands itself over, and on which terms. */
export interface TetherSpec {
  /** Name of the ForeignCluster that stands for it. */
  cluster: string;
  /** Without contact for so long, this cluster takes back control. Default 300. */
  lostAfterSeconds?: number;
  /** Default Retether. */
  afterLoss?: AfterLoss;
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
  waiting: 'WaitingForPeer',
  /** The other cluster has said no; the message says why. */
  refused: 'RefusedByPeer',
  lost: 'ContactLost',
  ending: 'Ending',
} as const;
export type ClusterModeReason = (typeof CLUSTER_MODE_REASONS)[keyof typeof CLUSTER_MODE_REASONS];

export const BREAK_OUT_GROUP = 'tributary:break-out';
export const TETHER_DEFAULTS = { lostAfterSeconds: 300, keepForSeconds: 86_400 } as const;

/** Bounds of the fields above, seconds. */
export const TETHER_LIMITS = { lostAfterSeconds: { least: 10, most: 604_800 } } as const;

/** What a tether means for pods of users. */
export interface Forwarding {
  /** Remote: they go to the other cluster. Local: new ones stay here, while those over there stay there. */
  podStrategy: 'Remote' | 'Local';
  /** Nodes here that stand for the other cluster. */
  nodes: readonly string[];
  /** Whether pods that are here already leave. */
  evict: boolean;
}

/** Undefined: the mode says nothing about pods. While a tether is lost, what was forwarded stays mapped. */
export function forwardingOf(mode: ClusterMode | undefined): Forwarding | undefined {
  const { spec: { tether } = {}, status: { phase, mode: current, nodes = [] } = {} } = mode ?? {};
  if (tether === undefined || (phase !== 'Tethered' && phase !== 'Lost')) return undefined;
  const isTethered = current === 'Tethered';
  return { podStrategy: isTethered ? 'Remote' : 'Local', nodes, evict: isTethered && tether.evict === true };
}
