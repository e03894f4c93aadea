import type { PodSecurityLevel, Price } from './offer.ts';
import type { PeerSelector } from './peer-selector.ts';
import { defineResource } from './resources.ts';
import type { ResourceType } from './resources.ts';
import type { Condition, KubeObject, ResourceList } from './wire.ts';

/** Automatic: at once. Manual: a person decides on the PeeringRequest. Token: who brings a join token. */
export type JoinApproval = 'Automatic' | 'Manual' | 'Token';

export interface SharingPolicySpec {
  /** Who may ask. */
  peers: PeerSelector;
  /** Default Manual. */
  approval?: JoinApproval;
  /** Of two policies that match, the one with the higher number decides; then the older one. Default 0. */
  precedence?: number;
  /** Percent of what is free, from 0 to 100. Default 50. */
  sharePercent?: number;
  /** Amounts never exceeded, by resource; also what is offered of resources that no node counts. */
  limits?: ResourceList;
  /** Resources that are never offered. */
  withhold?: string[];
  /** Only nodes with these labels lend. */
  nodeSelector?: Record<string, string>;
  /** Default baseline. */
  podSecurity?: PodSecurityLevel;
  /** For pods of peers; written on tenant namespaces, and not enforced by us yet. */
  runtimeClassName?: string;
  /** Highest priority of peers' pods; default 0. */
  maxPriority?: number;
  /** By resource, per unit and hour. */
  prices?: Record<string, Price>;
  /** Added to the offer, for affinity over there. */
  labels?: Record<string, string>;
  /** Labels of nodes that shapes show, besides zone, region and instance type. */
  nodeLabels?: string[];
  /** Whether images present on nodes are told. Default false: they tell much about the owner. */
  shareImages?: boolean;
  storageClasses?: string[];
  ingressClasses?: string[];
  loadBalancerClasses?: string[];
  /** What becomes of a peer's pods when it is revoked or its contract ends: Delete at once, or Keep them for `keepForSeconds`. Default Delete. */
  onEnd?: 'Delete' | 'Keep';
  /** Default 3600. */
  keepForSeconds?: number;
  /** Validity of an offer; renewed at two thirds. Default 3600. */
  offerSeconds?: number;
  /** Percent by which a free amount must move before a new offer goes out. Default 10. */
  thresholdPercent?: number;
}

export interface SharingPolicyStatus {
  observedGeneration?: number;
  /** ClusterIDs that it decides about today. */
  peers?: string[];
  /** What is free and could be lent in all, before the share. */
  free?: ResourceList;
  conditions?: Condition[];
}

/** What this cluster lends, how much and to whom. */
export interface SharingPolicy extends KubeObject {
  spec: SharingPolicySpec;
  status?: SharingPolicyStatus;
}

export const sharingPolicies: ResourceType<SharingPolicy> = defineResource(
  'tributary.dev/v1alpha1',
  'SharingPolicy',
  'sharingpolicies',
  'Cluster',
);
