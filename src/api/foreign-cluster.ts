import type { DiscoverySource, SecretKeyRef } from './peer-selector.ts';
import { clusterScoped } from './resources.ts';
import type { ResourceType } from './resources.ts';
import type {
  ApiServerAccess,
  NetworkAccess,
  NetworkDns,
  NetworkServices,
  NetworkTransit,
} from './tunnel.ts';
import type { Condition, KubeObject } from './wire.ts';

/** Auto leaves it to the policies. */
export type PeeringWish = 'Auto' | 'Enabled' | 'Disabled';

export interface ForeignClusterSpec {
  /** The only identity that is believed behind the endpoint. Without it nothing but its fingerprint is learnt. */
  clusterID?: string;
  /** `host:port` of its peering endpoint, set by people; discovery writes its own into status. */
  endpoint?: string;
  /** Whether we use it. Default Auto. */
  outgoing?: PeeringWish;
  /** Whether it may use us. Default Auto. */
  incoming?: PeeringWish;
  /** Home namespaces to offload there, besides those of the AcceptancePolicy. */
  namespaces?: string[];
  /** A one-time token of the other cluster. Key `token` by default. */
  joinTokenSecretRef?: SecretKeyRef;
  network?: ForeignClusterNetwork;
}

/** What it reaches here by the network; see src/api/tunnel.ts. */
export interface ForeignClusterNetwork {
  /** Default OffloadedPods. */
  access?: NetworkAccess;
  /** Default OffloadedPods. */
  transit?: NetworkTransit;
  /** Whether our pods there reach our API server. Default OffloadedPods. */
  apiServer?: ApiServerAccess;
  /** Whether our pods there reach our ClusterIPs. Default None. */
  services?: NetworkServices;
  /** Which DNS our pods there ask. Default Foreign. */
  dns?: NetworkDns;
  /** Ranges in which it keeps its own addresses here: CIDRs, or ANY_ADDRESSES. Default: nobody has said. */
  ownAddresses?: string[];
}

/** What one way of discovery knows; each writes its own and lets it expire. */
export interface Sighting {
  /** `host:port`, the most promising first. */
  endpoints: string[];
  clusterName?: string;
  protocols?: number[];
  firstSeen: string;
  /** RFC 3339; after this the sighting does not count any more. */
  expires: string;
  /** WAN: the SearchDomain that listed it. */
  searchDomain?: string;
}

/**
 * None: nothing wanted, or nobody asked. Pending: asked, no decision yet. Offered: an offer is there and waits for
 * acceptance. Accepted: agreed on by both, being set up. Established: in use. Denied: the deciding side said no.
 * Ending: being taken down.
 */
export const PEERING_PHASES = [
  'None',
  'Pending',
  'Offered',
  'Accepted',
  'Established',
  'Denied',
  'Ending',
] as const;
export type PeeringPhase = (typeof PEERING_PHASES)[number];

export interface PeeringState {
  phase: PeeringPhase;
  /** One word from a closed list (FOREIGN_CLUSTER_REASONS). */
  reason?: string;
  message?: string;
  /** When the phase was entered. */
  since?: string;
}

export interface LinkState {
  connected: boolean;
  /** Which side opened it. */
  dialledBy?: 'Us' | 'Them';
  /** Endpoint that was dialled, or the address that the peer came from. */
  endpoint?: string;
  protocol?: number;
  /** Version of the peer's program. */
  software?: string;
  since?: string;
}

/**
 * What policies went by when a peering was agreed on. It counts while the peering lasts, so that a lost link or a
 * missed announcement ends nothing.
 */
export interface PeeringStanding {
  foundBy?: DiscoverySource[];
  /** Network keys that it has proved to hold. */
  networkKeys?: string[];
}

export interface ForeignClusterStatus {
  observedGeneration?: number;
  /** Proved by TLS; not what an announcement says. */
  clusterID?: string;
  /** The identity that has proved itself at the endpoint, but is not, or not yet, the wanted one. */
  answeredBy?: string;
  clusterName?: string;
  sightings?: Partial<Record<DiscoverySource, Sighting>>;
  /** The sources of the sightings that count, joined by commas; for `kubectl get`. */
  foundBy?: string;
  link?: LinkState;
  standing?: PeeringStanding;
  outgoing?: PeeringState;
  incoming?: PeeringState;
  conditions?: Condition[];
}

/** A cluster that can be seen. Named by its ClusterID when discovery made it, freely when a person did. */
export interface ForeignCluster extends KubeObject {
  spec?: ForeignClusterSpec;
  status?: ForeignClusterStatus;
}

/** Whether we use it, and whether it uses us. */
export type Direction = 'outgoing' | 'incoming';
export const DIRECTIONS: readonly Direction[] = ['outgoing', 'incoming'];

/** The ClusterID that an object stands for: as a person has said, else as its cluster has proved. */
export const peerIDOf = ({ spec, status }: ForeignCluster): string | undefined =>
  spec?.clusterID ?? status?.clusterID;

/** Where a person has said not to peer. */
export const disabledIn = ({ spec }: ForeignCluster): Direction[] =>
  DIRECTIONS.filter((direction) => spec?.[direction] === 'Disabled');

/** Something is shared, or somebody wants that. */
export const isPeer = ({ spec, status }: ForeignCluster): boolean =>
  DIRECTIONS.some(
    (direction) => spec?.[direction] === 'Enabled' || (status?.[direction]?.phase ?? 'None') !== 'None',
  );

/** Of the Secret in our namespace that holds another cluster's join token; `cluster`: the name of its ForeignCluster. */
export const peerTokenSecretName = (cluster: string): string => `tributary-peer-token-${cluster}`;

export const foreignClusters: ResourceType<ForeignCluster> = clusterScoped(
  'tributary.dev/v1alpha1',
  'ForeignCluster',
);

/** Condition types of a ForeignCluster; a closed list. */
export const FOREIGN_CLUSTER_CONDITIONS = {
  /** Its identity is proved and is the one that is wanted. */
  identity: 'IdentityVerified',
  /** A link is up, whichever side dialled it. */
  connected: 'Connected',
  /** Its pods can be run: the peering we use is Established. */
  outgoing: 'OutgoingEstablished',
  /** It uses us. */
  incoming: 'IncomingEstablished',
  /** Packets go through the tunnel to it; only there while this cluster has a Tunnel to it. */
  network: 'NetworkReady',
} as const;

/** Reasons of those conditions, and of peering states; a closed list. Those of `network` are those of the Tunnel. */
export const FOREIGN_CLUSTER_REASONS = {
  ok: 'AsExpected',
  notWanted: 'NotWanted',
  noPolicy: 'NoPolicyMatches',
  identityUnconfirmed: 'IdentityUnconfirmed',
  wrongIdentity: 'WrongIdentity',
  noEndpoint: 'NoEndpoint',
  unreachable: 'EndpointUnreachable',
  incompatible: 'IncompatibleProtocol',
  linkLost: 'LinkLost',
  waitingForDecision: 'WaitingForDecision',
  waitingForApproval: 'WaitingForApproval',
  waitingForOffer: 'WaitingForOffer',
  offerRefused: 'OfferRefused',
  tokenRequired: 'TokenRequired',
  tokenInvalid: 'TokenInvalid',
  tokenExpired: 'TokenExpired',
  tokenUsed: 'TokenUsed',
  denied: 'DeniedByPeer',
  deniedHere: 'DeniedHere',
  withdrawn: 'Withdrawn',
  settingUp: 'SettingUp',
  revoked: 'Revoked',
  /** It wants to be tethered, and the policy for it does not allow that. */
  tetheringForbidden: 'TetheringForbidden',
  /** The cluster that decides is tethered to another one, and lends to nobody else. */
  tethered: 'TetheredElsewhere',
  /** Nothing was heard of it for as long as was agreed, so its pods are stopped. */
  fenced: 'Fenced',
  /** The provider has taken its rights for a while, because it wrote too much and did not wait. */
  suspended: 'Suspended',
  ending: 'Ending',
  /** No policy selects the peer any more; it has until then to move its pods. */
  endsSoon: 'EndsSoon',
  invalid: 'Invalid',
  /** Another ForeignCluster stands for the same cluster, and that one is used. */
  duplicate: 'Duplicate',
} as const;
export type ForeignClusterReason = (typeof FOREIGN_CLUSTER_REASONS)[keyof typeof FOREIGN_CLUSTER_REASONS];

/** In use, and no new pods are sent there: our policy refuses the offer, or it is withdrawn. The message says why. */
export const takesNoNewPods = ({ phase, reason }: Partial<PeeringState> = {}): boolean =>
  phase === 'Established' &&
  (reason === FOREIGN_CLUSTER_REASONS.offerRefused || reason === FOREIGN_CLUSTER_REASONS.withdrawn);
