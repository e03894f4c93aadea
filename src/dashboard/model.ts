/** What the page shows, as the server sends it: texts of peers are data here, cut to one line, and never markup. */
import type { PeeringPhase } from '../api/foreign-cluster.ts';

/** Kinds that a section of the page stands on; who may not list one does not see the section. */
export const SECTION_KINDS = [
  'foreignclusters',
  'peeringrequests',
  'advertisements',
  'tunnels',
  'virtualnodes',
  'namespaceoffloadings',
  'clustermodes',
  'namespaces',
  'pods',
  'events',
] as const;
export type SectionKind = (typeof SECTION_KINDS)[number];

export interface DirectionModel {
  phase: PeeringPhase;
  reason?: string;
  message?: string;
  since?: string;
}

/** What a peer asks of us, or what it offers us: both may wait for the word of a person. */
export interface DecisionModel {
  /** Name of the PeeringRequest or Advertisement. */
  name: string;
  waits: boolean;
  /** What a person has said. */
  word?: 'Approved' | 'Denied';
  state: string;
  reason?: string;
  message?: string;
  policy?: string;
  /** Home namespaces that the peer asks for. */
  namespaces?: string[];
  /** How many more it asks for. */
  moreNamespaces?: number;
  /** Offered to us, or promised by us. */
  resources?: Record<string, string>;
  /** Used of what we promised. */
  used?: Record<string, string>;
  /** For example `cpu 0.04 EUR per core and hour`. */
  prices?: string[];
}

export interface TunnelModel {
  isReady: boolean;
  reason?: string;
  message?: string;
  endpoint?: string;
  rttMs?: number;
  lossPercent?: number;
  receivedBytes?: number;
  sentBytes?: number;
  mtu?: number;
}

export interface VirtualNodeModel {
  name: string;
  /** Absent: not known yet. */
  isReady?: boolean;
  reason?: string;
  pods: number;
  resources: Record<string, string>;
}

export interface ClusterModel {
  /** Of the ForeignCluster; of one that is only known by another object its ClusterID. */
  name: string;
  clusterID?: string;
  /** The name that it gives itself, or a short form of its ID. */
  title: string;
  foundBy: string;
  isConnected: boolean;
  endpoint?: string;
  software?: string;
  /** A person has said not to peer. */
  isDisabled: boolean;
  /** We use it. */
  outgoing: DirectionModel;
  /** It uses us. */
  incoming: DirectionModel;
  request?: DecisionModel;
  offer?: DecisionModel;
  tunnel?: TunnelModel;
  nodes: VirtualNodeModel[];
  /** Pods of ours that run there. */
  pods: number;
}

/** Where pods of a namespace are. */
export interface PlaceModel {
  /** Absent: here. */
  clusterID?: string;
  title: string;
  pods: number;
  phase?: string;
  reason?: string;
  message?: string;
}

export interface NamespaceModel {
  name: string;
  isOffloaded: boolean;
  strategy?: string;
  reason?: string;
  message?: string;
  places: PlaceModel[];
}

export interface NewsModel {
  id: string;
  at: string;
  isWarning: boolean;
  reason: string;
  message: string;
  about: string;
  count: number;
}

export interface TetherModel {
  phase: string;
  cluster?: string;
  message?: string;
}

export interface DashboardModel {
  own: { clusterID: string; clusterName: string };
  user: string;
  clusters: ClusterModel[];
  namespaces: NamespaceModel[];
  news: NewsModel[];
  tether?: TetherModel;
  /** What this person may not list. */
  hidden: SectionKind[];
  /** Lists that were cut, and how much there is. */
  more: { clusters: number; namespaces: number };
}

/** What a person can do on the page. */
export type DashboardAction =
  | { do: 'approve' | 'deny'; what: 'request' | 'offer'; name: string }
  | { do: 'peer'; endpoint: string; clusterID?: string; token?: string }
  | { do: 'unpeer'; name: string }
  | { do: 'offload'; namespace: string; strategy: 'LocalAndRemote' | 'Remote' }
  | { do: 'unoffload'; namespace: string }
  | { do: 'tether'; name: string }
  | { do: 'untether' };
