import type { LinkState, PeeringPhase } from '../api/foreign-cluster.ts';
import type { OffloadedNamespace } from '../api/namespace-offloading.ts';
import type { Pod } from '../api/wire.ts';
import type { MakeAnew } from '../kube/drain.ts';
import type {
  CallMethod,
  Calls,
  Credential,
  DocumentChanges,
  Documents,
  RenewParams,
  RenewResult,
} from './protocol/documents.ts';

/**
 * What the parts of peering know of each other. The composition is in src/agent/peering.ts:
 *
 *     identity ── link ──┬── lending    (we are the provider: PeeringRequest, offers, tenants, tokens)
 *                        ├── borrowing  (we are the consumer: Advertisement, contract, VirtualNode, agent)
 *                        └── reach      (streams to API servers, dial-back)
 *     clusters: ForeignCluster objects; whom to dial, what is wanted, what people see
 */

/** A cluster that has proved its identity by TLS. */
export interface PeerIdentity {
  readonly clusterID: string;
  /** Raw Ed25519 public key, 32 bytes; the ClusterID is made from it. */
  readonly publicKey: Uint8Array;
}

/** Our own identity; the private key does not leave it. */
export interface OwnIdentity {
  readonly clusterID: string;
  readonly publicKey: Uint8Array;
  /** Base64 of an Ed25519 signature (RFC 8032) over the UTF-8 bytes, domain-separated by `purpose`. */
  sign(purpose: SignaturePurpose, text: string): string;
}

/** It is part of what is signed, so that a signature for one purpose proves nothing for another. */
export type SignaturePurpose = 'offer' | 'contract';

export interface LinkView extends LinkState {
  clusterID: string;
  clusterName?: string;
  /** Where the peer says it can be dialled. */
  peerEndpoints: readonly string[];
  publicKey: Uint8Array;
  /** Names of our network keys that the peer has proved to hold. */
  networkKeys: readonly string[];
  /** Round-trip time of the last heartbeat. */
  rttMs?: number;
}

/** Why a cluster that is to be dialled has no link. */
export interface DialProblem {
  /** One of FOREIGN_CLUSTER_REASONS. */
  reason:
    'EndpointUnreachable' | 'WrongIdentity' | 'IdentityUnconfirmed' | 'IncompatibleProtocol' | 'NoEndpoint';
  message: string;
  /** The identity that has answered and was proved, but is not (yet) the wanted one. */
  answeredBy?: string;
}

/** A cluster to dial; the whole set of them is given each time. */
export interface DialTarget {
  /** Name of the ForeignCluster. */
  name: string;
  /** If it is absent, the link only learns which identity is behind the endpoint. */
  clusterID?: string;
  endpoints: readonly string[];
  /** Those of them that the peer has not chosen: they may lead anywhere, also to our own host. Default: none. */
  chosenHere?: readonly string[];
}

/** All links; one for each peer at most. */
export interface PeerLinks {
  view(clusterID: string): LinkView | undefined;
  views(): Iterable<LinkView>;
  problem(targetName: string): DialProblem | undefined;
  setTargets(targets: readonly DialTarget[]): void;
  /** To be called when our documents for that peer may have changed. */
  publish(clusterID: string): void;
  /** Throws Unreachable without a link; where the peer refuses, throws what it has answered. */
  call<Method extends CallMethod>(
    clusterID: string,
    method: Method,
    params: Calls[Method]['params'],
    signal?: AbortSignal,
  ): Promise<Calls[Method]['result']>;
  /** Calls back after a link came, ended or has learnt something; the returned function ends that. */
  onChange(listener: (key: { clusterID?: string; target?: string }) => void): () => void;
}

type Requests = 'request' | 'acceptance';
type Answers = 'offer' | 'grant';

/** We as provider, towards the link. */
export interface LendingSide {
  /** What we say to that peer now; from caches, without waiting. */
  documents(clusterID: string): Pick<Documents, Answers>;
  /** Takes documents that were checked in form, of a proved identity. Throws what the peer is to be told. */
  received(peer: PeerIdentity, changes: Pick<DocumentChanges, Requests>): Promise<void>;
  credential(peer: PeerIdentity, signal: AbortSignal): Promise<Credential>;
  renew(peer: PeerIdentity, params: RenewParams, signal: AbortSignal): Promise<RenewResult>;
}

/** We as consumer, towards the link. */
export interface BorrowingSide {
  documents(clusterID: string): Pick<Documents, Requests>;
  received(peer: PeerIdentity, changes: Pick<DocumentChanges, Answers>): Promise<void>;
}

/** The network between the two, towards the link. Its documents say nothing about a peering. */
export interface NetworkSide {
  /** From caches, without waiting. */
  documents(clusterID: string): Pick<Documents, 'network'>;
  received(peer: PeerIdentity, changes: Pick<DocumentChanges, 'network'>): Promise<void>;
}

/** Services that one uses of the other, towards the link: we are both provider and consumer. */
export interface ServicesSide {
  /** From caches, without waiting. */
  documents(clusterID: string): Pick<Documents, 'services'>;
  received(peer: PeerIdentity, changes: Pick<DocumentChanges, 'services'>): Promise<void>;
}

/** What NamespaceOffloadings want, towards borrowing. */
export interface NamespaceOffloadings {
  /** False: what is missing is not absent yet, so nothing is removed because of it. Default true. */
  readonly synced?: boolean;
  /** From caches, without waiting; by the labels of the provider's VirtualNodes as they are now. */
  of(clusterID: string): readonly OffloadedNamespace[];
  /** Whether they end that pod themselves when its node goes, and make it anew. Bound. Default: none. */
  readonly bringsHome?: (pod: Pod) => boolean;
  /** Asked before a pod ends with its peering: whether it comes home is for them to say. Bound. Default: none does. */
  readonly makeAnew?: MakeAnew;
  /** Calls back after any answer may have changed; the returned function ends that. */
  onChange(listener: () => void): () => void;
}

/** How far one direction of a peering has come, for the ForeignCluster. */
export interface PeeringReport {
  /** We as consumer: until when what we hold of the provider is accepted by its API server; RFC 3339. */
  credentialExpires?: string;
  phase: PeeringPhase;
  reason?: string;
  message?: string;
}

/** Streams to the API server of a peer, whichever side can dial. */
export interface ApiReach {
  /**
   * A local address that is joined to the API server of that peer, over streams beside the link: what a kubeconfig
   * names as its server. Made at the first call, kept until `close`.
   */
  open(clusterID: string): Promise<{ server: string }>;
  close(clusterID: string): Promise<void>;
}

/** Starts and ends the agent of one foreign cluster. */
export interface AgentLauncher {
  /** Makes what is missing and changes what differs. */
  ensure(agent: WantedAgent, signal: AbortSignal): Promise<void>;
  /** Removes it all; resolves when the agent no longer runs. */
  remove(clusterID: string, signal: AbortSignal): Promise<void>;
}

export interface WantedAgent {
  /** ClusterID of the provider. */
  clusterID: string;
  /** VirtualNodes that it serves, each with the name of its Node. */
  virtualNodes: readonly { name: string; nodeName: string }[];
  /** Home namespaces that are offloaded. */
  namespaces: readonly string[];
  kubeconfigSecret: { namespace: string; name: string };
}

/** How far one direction, lending or borrowing, has come with each peer. */
export interface PeeringReports {
  report(clusterID: string): PeeringReport;
  /** Calls back with the ClusterID of each report that may have changed; the returned function ends that. */
  onChange(listener: (clusterID: string) => void): () => void;
}
