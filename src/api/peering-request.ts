import type { FenceTerms } from './cluster-mode.ts';
import type { PeeringPhase } from './foreign-cluster.ts';
import type { NamespaceOffer, Offer, SignedContract, WithheldNamespace } from './offer.ts';
import { clusterScoped } from './resources.ts';
import type { ResourceType } from './resources.ts';
import type { Condition, KubeObject, ResourceList } from './wire.ts';

export interface PeeringRequestSpec {
  /** ClusterID of the one who asks; also the object's name. */
  clusterID: string;
  clusterName?: string;
  /** Its namespaces that it wants to offload to us. */
  namespaces: string[];
  /** How many more it wants than are named here. Only while nobody has let it in. */
  moreNamespaces?: number;
  /** Of those, the ones whose tenant must have a certain name, or there shall be none. */
  tenantNames?: NamespaceOffer[];
  /** It hands itself over to us: we are to use it, with all that it has. */
  tether?: boolean;
  /** When we stop what it has forwarded to us, because it is not heard. Absent: never. */
  fence?: FenceTerms;
  /** The decision of a person, if the policy is Manual; Denied also revokes what was granted. */
  approval?: 'Approved' | 'Denied';
}

/** The rights of a peer are off, because it does not heed what it is told. */
export interface Suspension {
  /** RFC 3339, as is `until`. */
  since: string;
  until: string;
  /** How often in a row, this one included. */
  count: number;
  why: string;
}

export interface PeeringRequestStatus {
  observedGeneration?: number;
  /** As in ForeignCluster.status.incoming. */
  phase?: PeeringPhase;
  reason?: string;
  message?: string;
  /** SharingPolicy that decided. */
  policy?: string;
  /** Its `metadata.generation` when the offer was made: after a change of the policy every difference is news. */
  policyGeneration?: number;
  /** Name of the join token that opened the door; it need not be shown again. */
  token?: string;
  /** The offer of today. */
  offer?: Offer;
  /** Base64 of our signature over its canonical bytes. */
  offerSignature?: string;
  contract?: SignedContract;
  /** Promised by the contract. */
  promised?: ResourceList;
  /** Used of it, over all tenant namespaces. */
  used?: ResourceList;
  tenantNamespaces?: NamespaceOffer[];
  /** Those that have no tenant, and why. */
  withheld?: WithheldNamespace[];
  /** End of the last token that was handed out. */
  credentialExpires?: string;
  /** When what was granted ends, since no policy selects the peer any more; RFC 3339. */
  ends?: string;
  /** The last one; kept for a day after its end, because the next one is longer. */
  suspension?: Suspension;
  conditions?: Condition[];
}

/** A peer that wants to use this cluster. Made by Tributary; a person approves or denies. */
export interface PeeringRequest extends KubeObject {
  spec: PeeringRequestSpec;
  status?: PeeringRequestStatus;
}

export const peeringRequests: ResourceType<PeeringRequest> = clusterScoped(
  'tributary.dev/v1alpha1',
  'PeeringRequest',
);

export const PEERING_REQUEST_CONDITIONS = {
  /** A policy, a token or a person has let the peer in. */
  approved: 'Approved',
  /** Namespaces, quota, rights and account are in place. */
  tenant: 'TenantReady',
  /** Use stays within the contract. */
  withinContract: 'WithinContract',
  /** The peer may bring all kinds that its policy names (`reflectableKinds`); only there where it names any. */
  kinds: 'KindsReflectable',
  /** The home renews its Lease; while it does not, the guardian looks after its pods. */
  home: 'HomePresent',
  /** True while no policy selects a peer that uses this cluster; only there then. */
  ending: 'EndsSoon',
  /** True while the rights of the peer are off, because it does not heed what it is told; only there then. */
  suspended: 'Suspended',
} as const;

export const PEERING_REQUEST_REASONS = {
  ok: 'AsExpected',
  /** Nothing was heard from the home for longer than its Lease lasts. */
  homeAway: 'HomeAway',
  /** It was away for longer than the contract keeps its pods; they were ended. */
  homeGone: 'HomeGone',
  exceeded: 'ContractExceeded',
  namespaceTaken: 'NamespaceTaken',
  stuck: 'NamespaceStuck',
  /** No peer may ever bring this kind. */
  kindRefused: 'KindRefused',
  /** This cluster knows no namespaced kind of that name, or not yet. */
  kindNotServed: 'KindNotServed',
  /** We do not hold the rights to a kind ourselves, and so cannot pass them on. */
  rightsMissing: 'RightsMissing',
  /** It asks on and on for writes that are refused, and does not wait as it is told. */
  heedless: 'WritesTooMuch',
} as const;
export type PeeringRequestReason = (typeof PEERING_REQUEST_REASONS)[keyof typeof PEERING_REQUEST_REASONS];
