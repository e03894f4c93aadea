import type { DefaultRequests } from './default-requests.ts';
import type { LabelSelector } from './label-selector.ts';
import type { ReflectableKind } from './reflection.ts';
import type { PodSecurityLevel, Price } from './offer.ts';
import type { PeerSelector } from './peer-selector.ts';
import { clusterScoped } from './resources.ts';
import type { ResourceType } from './resources.ts';
import type { Condition, KubeObject, ResourceList, Toleration } from './wire.ts';
import type { WriteTerms } from './write-terms.ts';

/** Automatic: at once. Manual: a person decides on the PeeringRequest. Token: who brings a join token. */
export type JoinApproval = 'Automatic' | 'Manual' | 'Token';

/**
 * How tenant namespaces are called. Suffixed: after the home namespace and the peer, whatever it asks for. SameIfFree: as
 * the peer asks, or else as the home namespace, where `namespaceNames` opens that name and no other namespace has it, so that
 * DNS names (`web.shop.svc`) mean the same in both clusters. A peer that insists on a name gets that or none.
 */
export type NamespaceNaming = 'Suffixed' | 'SameIfFree';

/** Services of one namespace. */
export interface OfferedServices {
  namespace: string;
  /** By labels of the Services; an empty one selects all of the namespace. */
  selector: LabelSelector;
}

export type ContainerLimits = Partial<Record<'cpu' | 'memory' | 'ephemeral-storage', string>>;

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
  /**
   * Requests of a container of a peer that names none; default 0. More than 0 takes room off the peer's virtual node, for
   * all pods that it may ever hold.
   */
  defaultRequests?: DefaultRequests;
  /** How much peers may write; each word has its default. */
  writes?: WriteTerms;
  /** Resources that are never offered. */
  withhold?: string[];
  /** Only nodes with these labels lend. */
  nodeSelector?: Record<string, string>;
  /**
   * Whether peers may tether themselves to this cluster: it then uses them as devices, with all that they have. Default Forbid.
   */
  tethering?: 'Allow' | 'Forbid';
  /** Default baseline. privileged: pods of peers may do with the nodes what they like; for clusters of the same owner. */
  podSecurity?: PodSecurityLevel;
  /** Of every pod of a peer, whatever it asks for. */
  runtimeClassName?: string;
  /** Given to every pod of a peer, with `nodeSelector`: for nodes that are kept for guests by a taint. */
  tolerations?: Toleration[];
  /** Keys of taints that pods of peers may tolerate of their own accord; `*` for any. Default: none. */
  ownTolerations?: string[];
  /**
   * Always: nodes pull each image anew with the pod's own credentials, so that no peer runs an image that somebody else has
   * pulled. AsAsked: as the pod says. Default Always.
   */
  imagePullPolicy?: 'Always' | 'AsAsked';
  /** What a container of a peer may use at most, by resource. One without a limit gets this one. Default: no bound. */
  containerLimits?: ContainerLimits;
  /** Whether Services of peers may be of type ExternalName. Default Forbid. */
  externalNames?: 'Allow' | 'Forbid';
  /**
   * Tenant: a NetworkPolicy lets pods of a peer talk to each other, their home, DNS and the outside, but to no pod of ours or of
   * other peers, and lets no pod of other peers in. None: no NetworkPolicy is made. Default Tenant.
   */
  isolation?: 'Tenant' | 'None';
  /**
   * Whether pods of a peer reach the API server of their home through the tunnel, if the home lets them. Default Allow: it is their
   * own cluster, and nothing of ours is opened.
   */
  homeApiServer?: 'Allow' | 'Forbid';
  /** Highest priority of peers' pods without one of `priorityClasses`; default 0. */
  maxPriority?: number;
  /** PriorityClasses that pods of peers may name besides; of those that preempt nobody, see src/peering/offer/priority-classes.ts. */
  priorityClasses?: string[];
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
  /**
   * Hosts that peers' Ingresses may name: each stands for itself and all names below it, `*` for any. Default: none, since
   * whoever names a host takes its traffic.
   */
  ingressHosts?: string[];
  loadBalancerClasses?: string[];
  /** Default Suffixed. */
  namespaceNaming?: NamespaceNaming;
  /**
   * Names that peers may take with SameIfFree, besides those that end with their ID. A `*` stands for any characters, in names with
   * a hyphen. Default: none.
   */
  namespaceNames?: string[];
  /** Services of ours that peers may use; each entry adds to them. */
  services?: OfferedServices[];
  /** Kinds beside those that every tenant may have; the role `cluster` must hold the rights that it passes on. */
  reflectableKinds?: ReflectableKind[];
  /**
   * What becomes of a peer's pods when it is revoked or its contract ends: Delete at once, or Keep them and their volumes for
   * `keepForSeconds`. A namespace without either goes soon. Default Delete.
   */
  onEnd?: 'Delete' | 'Keep';
  /** Also how long they outlive a home that does not come back. Default 86400. */
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

export const SHARING_POLICY_CONDITIONS = {
  /** Peers may bring all of `reflectableKinds`; only there where the policy names any. */
  kinds: 'KindsReflectable',
  /** `runtimeClassName` is there; only where the policy names one. Without it every pod of a peer is refused. */
  runtimeClass: 'RuntimeClassFound',
  /** Peers may use all of `priorityClasses`; only where the policy names any. */
  priorityClasses: 'PriorityClassesLent',
  /** All of `prices` are of resources that are lent; only there where the policy names any. */
  prices: 'PricesApply',
  /** True: pods of peers may be privileged; only there where the policy says so. */
  privileged: 'PeersPrivileged',
  /** True while peers that it no longer selects still have their pods here; only there then. */
  ending: 'PeersEndSoon',
} as const;

/** Reasons of those conditions, and of `Valid`; a closed list. */
export const SHARING_POLICY_REASONS = {
  ok: 'AsExpected',
  invalid: 'Invalid',
  kindRefused: 'KindRefused',
  kindNotServed: 'KindNotServed',
  rightsMissing: 'RightsMissing',
  /** The runtime class that it forces on pods of peers is not there. */
  runtimeClassMissing: 'RuntimeClassMissing',
  /** A PriorityClass that it lends is not there, or may not be lent. */
  priorityClassNotLent: 'PriorityClassNotLent',
  /** A price is of a resource that is not lent, which may be a wrong name. */
  pricedNotLent: 'PricedNotLent',
  endsSoon: 'EndsSoon',
  /** The policy says `podSecurity: privileged`. */
  privileged: 'PodSecurityPrivileged',
} as const;

/** What this cluster lends, how much and to whom. */
export interface SharingPolicy extends KubeObject {
  spec: SharingPolicySpec;
  status?: SharingPolicyStatus;
}

export const sharingPolicies: ResourceType<SharingPolicy> = clusterScoped(
  'tributary.dev/v1alpha1',
  'SharingPolicy',
);
