import type { PeeringPhase } from './foreign-cluster.ts';
import type { NamespaceOffer, Offer, SignedContract } from './offer.ts';
import { defineResource } from './resources.ts';
import type { ResourceType } from './resources.ts';
import type { Condition, KubeObject, ResourceList } from './wire.ts';

export interface PeeringRequestSpec {
  /** ClusterID of the one who asks; also the object's name. */
  clusterID: string;
  clusterName?: string;
  /** Its namespaces that it wants to offload to us. */
  namespaces: string[];
  /** A person's word, where the policy is Manual; Denied also revokes what was granted. */
  approval?: 'Approved' | 'Denied';
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
  /** End of the last token that was handed out. */
  credentialExpires?: string;
  conditions?: Condition[];
}

/** A peer that wants to use this cluster. Made by Tributary; a person approves or denies. */
export interface PeeringRequest extends KubeObject {
  spec: PeeringRequestSpec;
  status?: PeeringRequestStatus;
}

export const peeringRequests: ResourceType<PeeringRequest> = defineResource(
  'tributary.dev/v1alpha1',
  'PeeringRequest',
  'peeringrequests',
  'Cluster',
);

export const PEERING_REQUEST_CONDITIONS = {
  /** A policy, a token or a person has let the peer in. */
  approved: 'Approved',
  /** Namespaces, quota, rights and account are in place. */
  tenant: 'TenantReady',
  /** Use stays within the contract. */
  withinContract: 'WithinContract',
} as const;

export const PEERING_REQUEST_REASONS = {
  ok: 'AsExpected',
  exceeded: 'ContractExceeded',
  namespaceTaken: 'NamespaceTaken',
  stuck: 'NamespaceStuck',
} as const;
