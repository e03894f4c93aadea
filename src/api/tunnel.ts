import { clusterScoped, type ResourceType } from './resources.ts';
import type { Condition, KubeObject } from './wire.ts';

/**
 * Two clusters see the same prefix under different addresses. Both have the same length and family; the host part of
 * an address stays as it is.
 */
export interface PrefixView {
  /** As its owner writes it. */
  prefix: string;
  /** As the one that looks writes it. Equal to `prefix` where the owner may keep its own: then nothing is rewritten. */
  as: string;
}

/** Pods: addresses of pods. External: an owner's range for its nodes and what it maps there. Transit: of a third cluster. */
export type PrefixUse = 'Pods' | 'External' | 'Transit';

/** As what we see a prefix of the peer: chosen here, kept for the life of the tunnel. */
export interface PeerView extends PrefixView {
  use: PrefixUse;
}

/** What the peer says of its end; checked in form and against our own ranges. */
export interface TunnelPeer {
  /** Base64 of a Curve25519 public key (WireGuard). */
  publicKey: string;
  /** `host:port` (UDP) at which its gateway can be dialled; empty where it cannot. */
  endpoints: string[];
  /** CIDRs of its pods. */
  pods: string[];
  /** Its external range. */
  external: string[];
  /** Prefixes of third clusters that it forwards for us, in its own addresses. */
  transit?: string[];
  /** Where its pods that run here reach its API server, in its own addresses. */
  apiServer?: HomeApiAddress;
  /** It does not let our pods over there reach our API server. */
  forbidsHomeApiServer?: boolean;
}

/**
 * What a peer reaches here. OffloadedPods: those of our pods that run over there reach our pods, and its pods reach those
 * of its pods that run here. AllPods: every pod of the one, every pod of the other. None: nothing.
 */
export type NetworkAccess = 'OffloadedPods' | 'AllPods' | 'None';
/** Whether the peer reaches our pods in third clusters through us. */
export type NetworkTransit = 'OffloadedPods' | 'None';
/** Whether our pods that run at the peer reach ClusterIPs of this cluster, or none of them. */
export type NetworkServices = 'OffloadedPods' | 'None';
/** Among the ranges in which a peer keeps its own addresses: every private one. */
export const ANY_ADDRESSES = 'Any';
/** Which DNS our pods that run at the peer ask: that of the peer, or ours. */
export type NetworkDns = 'Foreign' | 'Home';

/** What our DNS answers with, besides ClusterIPs. */
export interface HomeDns {
  /** Prefixes of pods in our addresses; of use over there only where the peer sees each as itself. */
  addresses: string[];
}

/** Whether our pods that run at a peer reach our API server through the tunnel: those that have a token for it, or none. */
export type ApiServerAccess = 'OffloadedPods' | 'None';

/** TCP. */
export interface HomeApiAddress {
  address: string;
  port: number;
}

export type TransportProtocol = 'TCP' | 'UDP' | 'SCTP';

/** Where one endpoint of a Service is. */
export interface AddressPort {
  address: string;
  protocol: TransportProtocol;
  port: number;
}

export interface TunnelSpec {
  clusterID: string;
  clusterName?: string;
  /** Absent until the peer has told. */
  peer?: TunnelPeer;
  /** The ClusterID whose WireGuard key the peer announces: that of the cluster that announced it first, or ours. `peer` is absent then. */
  keyOf?: string;
  /** How the peer sees prefixes that we export to it: `prefix` is ours, `as` is the peer's. */
  seenAs?: PrefixView[];
  /**
   * Ranges in which the peer keeps its own addresses here: CIDRs, or ANY_ADDRESSES. Absent: nobody has said, so no prefix gets such a
   * view, and one that has it stays.
   */
  ownAddresses?: string[];
  access: NetworkAccess;
  transit: NetworkTransit;
  /** Where our API server is for our pods over there, in our addresses. Absent: they do not reach it through the tunnel. */
  apiServer?: HomeApiAddress;
  /** Pods of the peer that run here may not reach its API server through the tunnel. Absent: they may. */
  homeApiServer?: 'Forbidden';
  /** Ranges of our ClusterIPs that our pods over there reach. Absent: none. */
  services?: string[];
  /** Our pods over there ask our DNS, where that can work. Absent: they ask that of the peer. */
  dns?: HomeDns;
  /** Endpoints of our Services that the peer is offered: reached by any of its pods, unless `access` is None. */
  offered?: AddressPort[];
  /** Endpoints of its Services that are used here, in our addresses: our pods in third clusters reach them through us. */
  used?: AddressPort[];
}

/** What the gateway has measured last; written when something of it changes noticeably. */
/** Whose WireGuard a gateway may use. `auto`: the kernel's where it has it, else wireguard-go. */
export const WIREGUARD_CHOICES = ['auto', 'kernel', 'userspace'] as const;
export type WireGuardChoice = (typeof WIREGUARD_CHOICES)[number];

/** Whose WireGuard a tunnel goes through: the kernel's, or the program wireguard-go. */
export const WIREGUARDS = ['Kernel', 'Userspace'] as const;
export type WireGuardKind = (typeof WIREGUARDS)[number];

export interface TunnelConnection {
  /** Node whose gateway is active. */
  gateway?: string;
  /** `host:port` that the peer is sent to now, learnt or configured. */
  endpoint?: string;
  /** Last WireGuard handshake, RFC 3339. */
  handshake?: string;
  /** Median of the last probes through the tunnel, in milliseconds with one decimal. */
  rttMs?: number;
  /** Of the last probes, in percent. */
  lossPercent?: number;
  receivedBytes?: number;
  sentBytes?: number;
  /** Largest packet that goes through the tunnel, in bytes, as probed. */
  mtu?: number;
  /** Largest packet that the gateway's link takes, in bytes, as set. */
  linkMtu?: number;
  /** Whose WireGuard encrypts here. */
  wireguard?: WireGuardKind;
}

export interface TunnelStatus {
  observedGeneration?: number;
  /** As what we see the peer's prefixes. Written by IPAM; read back when it starts. */
  views?: PeerView[];
  /** Why a prefix has no view; by IPAM. */
  refused?: { prefix: string; reason: string; message: string }[];
  connection?: TunnelConnection;
  conditions?: Condition[];
}

/** The network between this cluster and one peer, named by the peer's ClusterID. */
export interface Tunnel extends KubeObject {
  spec: TunnelSpec;
  status?: TunnelStatus;
}

export const tunnels: ResourceType<Tunnel> = clusterScoped('tributary.dev/v1alpha1', 'Tunnel');

/** Condition types of a Tunnel, written by the gateway while one runs; a closed list. */
export const TUNNEL_CONDITIONS = {
  /** Packets go through in both directions, and all prefixes are seen. */
  ready: 'Ready',
  /** Every prefix of the peer has a view, and the peer has told how it sees ours. */
  addresses: 'AddressesAssigned',
  /** The host's links, routes and rules are as wanted. */
  configured: 'HostConfigured',
  /** Probes come back. */
  connected: 'Connected',
  /** Our pods that run at the peer reach ClusterIPs of this cluster; no part of Ready. */
  services: 'ServicesReachable',
  /** Every prefix of the peer that is seen as itself may be; no part of Ready. */
  ownAddresses: 'OwnAddressesAllowed',
} as const;

/** Reasons of those conditions; a closed list. */
export const TUNNEL_REASONS = {
  ok: 'AsExpected',
  peerSilent: 'PeerHasNotTold',
  /** The peer announces the key of another cluster, or ours. */
  keyTaken: 'KeyTaken',
  peerViews: 'PeerHasNoViewOfUs',
  prefixRefused: 'PrefixRefused',
  poolExhausted: 'PoolExhausted',
  noWireGuard: 'WireGuardNotRunning',
  hostRefused: 'HostRefused',
  noEndpoint: 'NoEndpoint',
  noHandshake: 'NoHandshake',
  noAnswer: 'NoAnswer',
  /** Packets of the peer arrive, and there is no session with it: ours do not arrive there. */
  oneWay: 'PacketsOneWay',
  lossy: 'PacketsLost',
  notChosen: 'NotChosen',
  seenElsewhere: 'SeenElsewhere',
  /** A view from before this had to be allowed. */
  ownNotAllowed: 'OwnAddressesNotAllowed',
  starting: 'Starting',
  /** Written by the role `cluster`, since nobody else is there. */
  noGateway: 'GatewayNotRunning',
} as const;
export type TunnelReason = (typeof TUNNEL_REASONS)[keyof typeof TUNNEL_REASONS];

/** Off: nobody joins the two clusters' networks. Down: something does, but packets do not go through at the moment. */
export type NetworkState =
  { kind: 'Off' } | { kind: 'Up' } | { kind: 'Down'; reason: string; message: string };

/** Why pods over there do not reach the home API server, or do not ask the home DNS; a closed list with some reasons of the Tunnel. */
export const HOME_REACH_REASONS = {
  noNetwork: 'NoNetwork',
  /** By the SharingPolicy of the provider. */
  forbidden: 'ForbiddenByProvider',
  /** By the ForeignCluster here. */
  notAllowed: 'NotAllowed',
  noClusterDns: 'NoClusterDNS',
  notChosen: 'NotChosen',
  seenElsewhere: 'SeenElsewhere',
  peerViews: 'PeerHasNoViewOfUs',
  prefixRefused: 'PrefixRefused',
} as const;
export type HomeReachReason = (typeof HOME_REACH_REASONS)[keyof typeof HOME_REACH_REASONS];

/** Where pods over there reach the home API server through the network; Unknown: it is not known yet. */
export type HomeApiServerView =
  | { kind: 'At'; address: string; port: number }
  | { kind: 'None' | 'Unknown'; reason: HomeReachReason; message: string };

/** Open: a DNS whose address is in one of these ranges of our ClusterIPs can be asked. Unknown: it will be known soon. */
export type HomeDnsView =
  | { kind: 'NotChosen' }
  | { kind: 'Open'; ranges: readonly string[] }
  | { kind: 'None' | 'Unknown'; reason: HomeReachReason; message: string };
