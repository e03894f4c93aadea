/** networking.k8s.io/v1 NetworkPolicy as it is on the wire (client-node's type renames `from`), and the labels by which pods obey ours. */
import type { LabelSelector } from './label-selector.ts';
import type { KubeObject } from './wire.ts';

export const POLICY_TYPES = ['Ingress', 'Egress'] as const;
export type PolicyType = (typeof POLICY_TYPES)[number];

export interface PolicyPort {
  /** Default TCP. */
  protocol?: 'TCP' | 'UDP' | 'SCTP';
  /** A number, or the name of a port of the pod that listens; absent: all. */
  port?: number | string;
  /** With a number: the last one of a range. */
  endPort?: number;
}

export interface IpBlock {
  cidr: string;
  /** Within `cidr`. */
  except?: string[];
}

/** Either pods, by namespace and labels, or addresses. */
export interface PolicyPeer {
  podSelector?: LabelSelector;
  /** Absent: the namespace of the policy. */
  namespaceSelector?: LabelSelector;
  ipBlock?: IpBlock;
}

export interface NetworkPolicySpec {
  /** Absent or empty: all pods of the namespace. */
  podSelector?: LabelSelector;
  /** Default: Ingress, and Egress where there are egress rules. */
  policyTypes?: PolicyType[];
  /** A rule without `from` lets in everybody. */
  ingress?: { from?: PolicyPeer[]; ports?: PolicyPort[] }[];
  egress?: { to?: PolicyPeer[]; ports?: PolicyPort[] }[];
}

export interface NetworkPolicy extends KubeObject {
  spec?: NetworkPolicySpec;
}

/** The directions in which a policy closes the pods that it selects. */
export const policyTypesOf = ({ policyTypes, egress }: NetworkPolicySpec): readonly PolicyType[] =>
  policyTypes ?? (egress === undefined || egress.length === 0 ? ['Ingress'] : POLICY_TYPES);

/**
 * On a pod in a tenant namespace, `true`: policies of its home decide who may reach it (whom it may reach), within what the
 * provider lets pods of peers do. On pods without it only the provider's own isolation holds.
 */
export const LABEL_GUEST_POLICY: Readonly<Record<PolicyType, string>> = {
  Ingress: 'tributary.dev/ingress-policy',
  Egress: 'tributary.dev/egress-policy',
};
