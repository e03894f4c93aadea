import type { LabelSelector } from './label-selector.ts';
import type { WithheldNamespace } from './offer.ts';
import type { Placement } from './placement.ts';
import type { ReflectionRule } from './reflection.ts';
import { namespaced, type ResourceType } from './resources.ts';
import type { Condition, KubeObject } from './wire.ts';

/** The only name that a NamespaceOffloading may have: there is one for each namespace. */
export const OFFLOADING_NAME = 'offloading';

/**
 * Local: pods stay on real nodes; what they need over there is replicated all the same. Remote: pods run on virtual
 * nodes only. LocalAndRemote: wherever the scheduler finds place.
 */
export const POD_STRATEGIES = ['Local', 'LocalAndRemote', 'Remote'] as const;
export type PodStrategy = (typeof POD_STRATEGIES)[number];

/**
 * Suffixed: as the provider calls its tenants, `<namespace>-<our ID>`. Same: as the namespace itself, or not at all.
 * Selected: `remoteName`, or not at all.
 */
export type OffloadedNaming = 'Suffixed' | 'Same' | 'Selected';

/** Return: pods without an owner are made anew here. End: they end. Pods with an owner are replaced by it either way. */
export type OnRemoval = 'Return' | 'End';

/** Of pods that were made too early. Stay: they stay where they are. Move: those of controllers are evicted one by one, and made anew. */
export type ExistingPods = 'Stay' | 'Move';

/** What becomes of pods on a virtual node whose cluster is away. Those that must not run twice stay, whatever is said here. */
export interface WhenAway {
  /** Stay: until contact is back. Move: after a time they are deleted, and their controllers make others. */
  pods: 'Stay' | 'Move';
  /** With Move: so long after the Node was not Ready any more. Default 300. */
  afterSeconds?: number;
  /** With Move. Anywhere: where the scheduler finds place. Home: on real nodes, for `holdOffSeconds` more. Default Anywhere. */
  to?: 'Anywhere' | 'Home';
}

export interface NamespaceOffloadingSpec {
  /** Virtual nodes by the labels of their Node; default: all. */
  clusterSelector?: LabelSelector;
  /** Default LocalAndRemote. */
  podStrategy?: PodStrategy;
  /** Default: whatever the provider chooses. Cannot be changed. */
  naming?: OffloadedNaming;
  /** With `naming: Selected`. Cannot be changed. */
  remoteName?: string;
  /** Rules for kinds of objects; each kind once. */
  reflection?: ReflectionRule[];
  /** How rules of pods about hosts, zones and regions travel; a pod's own annotation comes before it. Default Propagate. */
  placement?: Placement;
  /** Default Stay. */
  existingPods?: ExistingPods;
  /** Default Return. */
  onRemoval?: OnRemoval;
  /** A pod that the foreign cluster cannot place for so long is released to run elsewhere; 0: never. Default 60. */
  releaseAfterSeconds?: number;
  /** Default: what Kubernetes does, which moves pods after 300 s. */
  whenAway?: WhenAway;
  /** A released pod and its kind do not go to that virtual node again for so long. Default 600. */
  holdOffSeconds?: number;
}

export type OffloadedPhase = 'Pending' | 'Ready' | 'Failed' | 'Ending';

/** The namespace in one foreign cluster. */
export interface OffloadedCluster {
  /** ClusterID of the provider; of a VirtualNode made by hand its name. */
  cluster: string;
  /** What the provider calls itself. */
  clusterName?: string;
  virtualNodes: string[];
  remoteNamespace?: string;
  phase: OffloadedPhase;
  reason: NamespaceOffloadingReason;
  message?: string;
}

/** Pods of that owner are kept off that virtual node until then. */
export interface HeldOff {
  /** `Kind/name` of the controller of released pods; of a pod without one `Pod/name`. `*`: all, since the cluster is away. */
  owner: string;
  virtualNode: string;
  /** RFC 3339. */
  until: string;
}

export interface NamespaceOffloadingStatus {
  observedGeneration?: number;
  clusters?: OffloadedCluster[];
  /** Pods that were made too early, and are on real nodes. Absent where they are not looked for. */
  podsAtHome?: number;
  heldOff?: HeldOff[];
  conditions?: Condition[];
}

/** A home namespace that a NamespaceOffloading stretches to a provider: what offloading asks of peering. */
export interface OffloadedNamespace {
  homeNamespace: string;
  /** The name that its tenant must have, else it is not used; undefined: any name that the provider chooses. */
  remoteName?: string;
  reflection: readonly ReflectionRule[];
  /** Its pods there end, and no new ones are to begin. */
  leaving?: true;
}

/** Where that namespace stands with the provider: what peering answers. */
export type NamespaceMappingState =
  | { state: 'Mapped'; tenantNamespace: string }
  | ({ state: 'Withheld'; message: string } & Pick<WithheldNamespace, 'reason' | 'ending'>);

/** The namespace that it is in stretches over foreign clusters. */
export interface NamespaceOffloading extends KubeObject {
  spec: NamespaceOffloadingSpec;
  status?: NamespaceOffloadingStatus;
}

export const namespaceOffloadings: ResourceType<NamespaceOffloading> = namespaced(
  'tributary.dev/v1alpha1',
  'NamespaceOffloading',
);

export const NAMESPACE_OFFLOADING_CONDITIONS = {
  /** The namespace is in all selected clusters. */
  ready: 'Ready',
  /** Pods that were made before the namespace was offloaded are on real nodes. */
  podsAtHome: 'PodsAtHome',
  /** NetworkPolicies close more for pods over there than at home. */
  policiesStricter: 'NetworkPoliciesStricter',
} as const;

/** Of the condition, and of each cluster; a closed list. */
export const NAMESPACE_OFFLOADING_REASONS = {
  ok: 'AsExpected',
  /** No virtual node has the labels. */
  noClusterSelected: 'NoClusterSelected',
  /** Some clusters do not have it. */
  someFailed: 'SomeClustersFailed',
  allFailed: 'AllClustersFailed',
  inProgress: 'InProgress',
  ending: 'Ending',
  /** Pods that were made before the namespace was offloaded are on real nodes, and stay there. */
  podsAtHome: 'PodsAtHome',
  /** The message names the policies, and why. */
  policiesStricter: 'PolicyStricterAbroad',
  /** They are being moved. */
  moving: 'Moving',
  /** A namespace that holds a cluster's own parts never leaves it. */
  systemNamespace: 'SystemNamespace',
  /** The provider has no tenant namespace for us yet. */
  waitingForProvider: 'WaitingForProvider',
  /** In the provider's cluster somebody else has the namespace of that name. */
  nameTaken: 'NameTaken',
  /** The provider's policy chooses names itself. */
  namingRefused: 'NamingNotAllowed',
  /** The VirtualNode was made by hand, and does not name the namespace. */
  notMapped: 'NotMapped',
  /** The virtual node is Ready, and takes no new pods. Of Ready=True: so do all. */
  closed: 'VirtualNodeClosed',
  /** The virtual node is not Ready. */
  notReady: 'VirtualNodeNotReady',
} as const;
export type NamespaceOffloadingReason =
  (typeof NAMESPACE_OFFLOADING_REASONS)[keyof typeof NAMESPACE_OFFLOADING_REASONS];
