import type { LabelSelector } from './label-selector.ts';
import type { IpBlock, PolicyPort, PolicyType } from './network-policy.ts';
import { namespaced, type ResourceType } from './resources.ts';
import type { KubeObject } from './wire.ts';

/** Pods of the same home in this cluster. */
export interface GuestPods {
  podSelector: LabelSelector;
  /** Names of namespaces at home. Absent: the namespace of the policy. */
  homeNamespaces?: string[];
  /** In all namespaces of the home. */
  everywhere?: boolean;
}

/** One of the fields. */
export interface GuestPolicyPeer {
  pods?: GuestPods;
  /** Addresses as this cluster sees them. */
  ipBlock?: IpBlock;
  /** What resolves names for pods here. With egress only. */
  clusterDNS?: boolean;
  /** Pods and nodes of the cluster itself, as far as it lets them reach pods of peers. With ingress only. */
  cluster?: boolean;
}

export interface GuestNetworkPolicySpec {
  podSelector: LabelSelector;
  policyTypes: PolicyType[];
  /** A rule without `from` lets in everybody that the provider lets in. */
  ingress?: { from?: GuestPolicyPeer[]; ports?: PolicyPort[] }[];
  egress?: { to?: GuestPolicyPeer[]; ports?: PolicyPort[] }[];
}

export interface GuestNetworkPolicyStatus {
  /** The generation that is in force, as a NetworkPolicy of the provider. */
  observedGeneration?: number;
  /** What of it the provider does not allow, and so is closed. */
  closed?: string[];
}

/**
 * A NetworkPolicy of a home, in its tenant namespace. NetworkPolicies add up: one that a peer wrote itself could open what the
 * provider's isolation closes, and one that closes would change nothing beside it. So the peer asks, and the provider makes the
 * NetworkPolicy, of what it allows.
 */
export interface GuestNetworkPolicy extends KubeObject {
  spec: GuestNetworkPolicySpec;
  status?: GuestNetworkPolicyStatus;
}

export const guestNetworkPolicies: ResourceType<GuestNetworkPolicy> = namespaced(
  'tributary.dev/v1alpha1',
  'GuestNetworkPolicy',
);

/** On the NetworkPolicy that the provider makes: the GuestNetworkPolicy that it was made from. */
export const LABEL_GUEST_NETWORK_POLICY = 'tributary.dev/guest-network-policy';

/** Bounds of the schema, which both sides keep to. */
export const GUEST_POLICY_LIMITS = {
  rules: 64,
  peers: 1024,
  ports: 64,
  namespaces: 256,
  excepts: 256,
  /** What the provider says of one. */
  closed: 16,
} as const;
