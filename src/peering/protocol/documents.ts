import type { FenceTerms } from '../../api/cluster-mode.ts';
import type { Offer, WithheldNamespace } from '../../api/offer.ts';
import type { NetworkDocument } from '../../api/peer-documents.ts';

export type { WithheldNamespace } from '../../api/offer.ts';

/**
 * What two clusters say over a link. State, not events: each side sends the whole of what it has to say, again on
 * every new link, and the last word counts. A document that is absent is not there (any more). So a restart of
 * either side at any moment ends in the same state, and nothing needs to be remembered but Kubernetes objects.
 */
export interface Documents {
  /** Consumer to provider: what is wanted. */
  request?: RequestDocument;
  /** Consumer to provider: the offer, accepted. */
  acceptance?: AcceptanceDocument;
  /** Provider to consumer: what is lent. */
  offer?: OfferDocument;
  /** Provider to consumer: the decision, and how to come in. */
  grant?: GrantDocument;
  /** Both ways: this end of the tunnel. Absent while the two do not peer, or the sender has no gateway. */
  network?: NetworkDocument;
  /** Provider to consumer: Services that it may use. Absent: none. */
  services?: ServicesDocument;
}
export type DocumentKind = keyof Documents;
export const DOCUMENT_KINDS: readonly DocumentKind[] = [
  'request',
  'acceptance',
  'offer',
  'grant',
  'network',
  'services',
];
/** Those that ask for a peering or are one. The others come with a peering, and alone are no reason to keep a link. */
export const BINDING_KINDS: readonly DocumentKind[] = DOCUMENT_KINDS.filter(
  (kind) => kind !== 'network' && kind !== 'services',
);

/** What has changed: a document, or null where there is none any more. Kinds not named are as before. */
export type DocumentChanges = { [Kind in DocumentKind]?: Documents[Kind] | null };

export interface RequestDocument {
  clusterName: string;
  /** Home namespaces to be offloaded. */
  namespaces: string[];
  /** By home namespace: the name that its tenant must have, or there shall be none. */
  names?: Record<string, string>;
  /** The consumer hands itself over: the provider is to use it, with all that it has. */
  tether?: true;
  /** Its pods are to be stopped where it does not renew; see Calls. */
  fence?: FenceTerms;
  /** The provider's one-time token; sent until the provider has decided. */
  joinToken?: string;
}

export interface OfferDocument {
  offer: Offer;
  /** Base64; Ed25519 over the canonical bytes of the offer. */
  signature: string;
}

export interface AcceptanceDocument {
  /** Canonical JSON of a Contract. */
  text: string;
  /** Base64; the consumer's. */
  signature: string;
}

export interface GrantDocument {
  /** Active: the tenant is there, credentials may be asked for. Ended: what was granted is over. */
  state: 'Pending' | 'Denied' | 'Active' | 'Ended';
  /** One of FOREIGN_CLUSTER_REASONS. */
  reason?: string;
  message?: string;
  /** The SharingPolicy that applies, by its name: what it refuses is said with it. */
  policy?: string;
  /** When it ends, RFC 3339: until then the consumer is to move its pods. Only with Active. */
  ends?: string;
  /** Home namespaces that have no tenant, and why. */
  withheld?: WithheldNamespace[];
  contract?: {
    /** The text that was signed, so that an older acceptance is not taken for a newer one. */
    text: string;
    /** Base64; the provider's. */
    signature: string;
  };
  api?: ApiAccess;
}

/** Where the provider's API server is; it may not be reachable from the consumer. */
export interface ApiAccess {
  /** https URL. */
  server: string;
  /** PEM; absent where a public authority signed. */
  ca?: string;
  /** A name in its certificate, where it is not the URL's host. */
  serverName?: string;
}

/** Services of the sender that the receiver may use, with their endpoints of today. */
export interface ServicesDocument {
  services: OfferedService[];
}

export interface OfferedService {
  namespace: string;
  name: string;
  ports: OfferedPort[];
  /** In the sender's addresses; pods of its pod CIDRs only. */
  endpoints: { address: string; ready: boolean }[];
}

export interface OfferedPort {
  name?: string;
  protocol: 'TCP' | 'UDP' | 'SCTP';
  /** Of the Service. */
  port: number;
  /** Of the endpoints. */
  targetPort: number;
  appProtocol?: string;
}

/** First message of each side. */
export interface Hello {
  clusterName: string;
  /** Versions of this protocol; the highest that both have is spoken. */
  protocols: number[];
  /** Version of the program, for people. */
  software: string;
  /** Where the sender can be dialled, as `host:port`; empty where it cannot. */
  endpoints: string[];
  /** HMAC-SHA256 (base64) over both ClusterIDs for each network key that the sender holds; at most eight. */
  networkProofs: string[];
}

/** Requests that want an answer. */
export interface Calls {
  /** Consumer to provider: a fresh token for the tenant's account. */
  credential: { params: Record<string, never>; result: Credential };
  /** Consumer to provider: dial us back and join the new stream to your API server. */
  dial: { params: { stream: string }; result: Record<string, never> };
  /**
   * Consumer to provider: shows the last ticket, so that its pods go on. The provider counts from when it has issued that
   * ticket, so a call that comes late proves no more than it did when it was sent.
   */
  renew: { params: RenewParams; result: RenewResult };
}
export type CallMethod = keyof Calls;

export interface RenewParams {
  /** Of the last result; absent: there was none. */
  ticket?: string;
  /** The consumer runs none of these pods itself, so the provider may run them again. */
  resume?: true;
}

/** The terms are those that the new ticket stands for. */
export interface RenewResult extends FenceTerms {
  ticket: string;
  /** Waiting: no ticket was shown yet, and nothing will be stopped. Closed: the pods are stopped, and no new ones are taken. */
  state: 'Waiting' | 'Held' | 'Closed';
}

export interface Credential {
  token: string;
  /** RFC 3339. */
  expires: string;
}

export const PROTOCOLS: readonly number[] = [1];
