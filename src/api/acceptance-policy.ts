import type { Price } from './offer.ts';
import type { PeerSelector } from './peer-selector.ts';
import type { PodAdditions } from './pod-additions.ts';
import { clusterScoped } from './resources.ts';
import type { ResourceType } from './resources.ts';
import type { VirtualNodeTaintEffect } from './virtual-node.ts';
import type { Condition, KubeObject, ResourceList } from './wire.ts';

/** Aggregate: one Node for the whole foreign cluster. PerNode: one for each node over there, so that a pod too large for any is not attracted. */
export type VirtualNodeShape = 'Aggregate' | 'PerNode';

/** A Service of the provider, and the one that stands for it here. */
export interface AcceptedService {
  /** Over there. */
  namespace: string;
  name: string;
  /** Namespace here. */
  homeNamespace: string;
  /** Default: as over there. */
  homeName?: string;
}

export interface AcceptancePolicySpec {
  /** Whose offers it speaks of, and with Automatic also whom we ask by ourselves. */
  peers: PeerSelector;
  /** Automatic asks for offers and takes them. Manual takes an offer once a person approves the Advertisement. Default Manual. */
  approval?: 'Automatic' | 'Manual';
  /** Of two policies that match, the one with the higher number decides; then the older one. Default 0. */
  precedence?: number;
  /** No more than this is taken of an offer, by resource. */
  ceilings?: ResourceList;
  /** An offer with less than this is refused. */
  minimum?: ResourceList;
  /** An offer with a higher price is refused; one without a price is never refused for it. */
  maxPrices?: Record<string, Price>;
  /** Pods and nodes outlive lost contact for so long at most, whatever the provider offers. Default: as it offers. */
  maxKeepForSeconds?: number;
  /** Labels that the offer must bear. */
  requiredLabels?: Record<string, string>;
  /** Home namespaces to offload. */
  namespaces?: string[];
  /** Classes of Ingresses here, and what they become over there; of others, the class of the same name where it is offered. */
  ingressClasses?: Record<string, string>;
  /**
   * StorageClasses here (of provisioner `tributary.dev/storage`), and what they become over there; before the class's own
   * parameter `foreignClass`. Nothing is chosen that neither names.
   */
  storageClasses?: Record<string, string>;
  /** Services of the provider to be used here as our own. */
  services?: AcceptedService[];
  /** Default Aggregate. */
  shape?: VirtualNodeShape;
  /** Most Nodes that PerNode makes of one peer. Default 16. */
  maxNodes?: number;
  /** Labels for the Nodes. */
  nodeLabels?: Record<string, string>;
  /** Of the Nodes. Default NoSchedule. */
  taintEffect?: VirtualNodeTaintEffect;
  /** For every pod that is sent to these clusters. */
  podAdditions?: PodAdditions;
}

export interface AcceptancePolicyStatus {
  observedGeneration?: number;
  /** ClusterIDs whose offers it has decided about. */
  peers?: string[];
  conditions?: Condition[];
}

/** Which offers are taken. Of a provider that none speaks of, those that a person has asked for (`outgoing: Enabled`). */
export interface AcceptancePolicy extends KubeObject {
  spec: AcceptancePolicySpec;
  status?: AcceptancePolicyStatus;
}

export const acceptancePolicies: ResourceType<AcceptancePolicy> = clusterScoped(
  'tributary.dev/v1alpha1',
  'AcceptancePolicy',
);
