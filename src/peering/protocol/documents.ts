import type { Offer } from '../../api/offer.ts';

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
}
export type DocumentKind = keyof Documents;
export const DOCUMENT_KINDS: readonly DocumentKind[] = ['request', 'acceptance', 'offer', 'grant'];

/** What has changed: a document, or null where there is none any more. Kinds not named are as before. */
export type DocumentChanges = { [Kind in DocumentKind]?: Documents[Kind] | null };

export interface RequestDocument {
  clusterName: string;
  /** Home namespaces to be offloaded. */
  namespaces: string[];
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
}
export type CallMethod = keyof Calls;

export interface Credential {
  token: string;
  /** RFC 3339. */
  expires: string;
}

export const PROTOCOLS: readonly number[] = [1];
