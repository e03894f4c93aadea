/**
 * Reasons of events, by the kind of the object that they are about; a closed list: nobody can write another one. Their texts are in
 * src/api/reasons/event-texts.ts. Events that repeat the reason or the phase of a status are not named again.
 */
import type { ModePhase } from '../cluster-mode.ts';
import type { ForeignClusterReason, PeeringPhase } from '../foreign-cluster.ts';
import type { OffloadedReason, ReferenceReason } from '../names.ts';
import type { NamespaceOffloadingReason } from '../namespace-offloading.ts';
import type { PeeringRequestReason } from '../peering-request.ts';
import type { TunnelReason } from '../tunnel.ts';

export interface EventReasons {
  Pod:
    | ReferenceReason
    | 'DisruptionBudgetOverridden'
    | 'FailedStatusUpdate'
    | 'FailedUpdate'
    | 'ForeignAccessDenied'
    | 'ForeignDNS'
    | 'ForeignWriteFailed'
    | 'HeldByBudget'
    | 'MadeAnew'
    | 'MovedWhileAway'
    | 'NoTokenForHome'
    | 'NotBroughtHome'
    | 'NotReleased'
    | 'NotRunLocally'
    | 'PlacementNotCarried'
    | 'PlacementUnknown'
    | 'PodAtHome'
    | 'PodMoved'
    | 'Recreated'
    | 'Released'
    | 'Remade'
    | 'RemakeDropped'
    | 'RemakeFailed'
    | 'RunsLocally'
    | 'StaysWhileAway'
    | 'TooLargeForNodes';
  PersistentVolumeClaim:
    | 'NameTaken'
    | 'NamespaceNotOffloaded'
    | 'ProvisioningFailed'
    | 'StorageClassNotMapped'
    | 'StorageClassNotOffered'
    | 'VolumeExpansionNotCarried'
    | 'VolumeLost'
    | 'VolumeNotSupported'
    | 'WaitForFirstConsumerNeeded';
  /** Of any kind that is brought to the foreign cluster, but pods and claims. */
  Copied:
    | 'CopyNotChanged'
    | 'EndpointNotReflected'
    | 'IngressBackendNotReflected'
    | 'IngressClassNotMapped'
    | 'PolicyStricterAbroad'
    | 'ReflectIgnored';
  Namespace:
    | 'InvalidReflectionRule'
    | 'KindForbidden'
    | 'KindNotServed'
    | 'HomePresent'
    | 'OffloadLabelInvalid'
    | 'OffloadingRefused'
    | 'PodCleared'
    | 'PodForceDeleted'
    | 'PodGivenUp'
    | 'PodNotKept'
    | 'PodRecreated'
    | 'ResultKept';
  NamespaceOffloading: 'KeptAwayByTemplate' | 'KeptHome' | 'LeftBehind';
  VirtualNode: 'AgentStandsBy' | 'ForeignClusterRestored' | 'HomeRestored' | 'LessRoom' | 'RemotePodLost';
  ForeignCluster: 'TunnelDown' | 'TunnelUp';
  Advertisement:
    | 'OfferAccepted'
    | 'OfferExpired'
    | 'OfferInvalid'
    | 'OfferPending'
    | 'OfferRefused'
    | 'PeeringEnding'
    | 'PeeringEstablished'
    | 'ServiceNotUsed';
  SharingPolicy: 'ServicesNotOffered';
  Tunnel: 'TunnelReady' | 'ViewOverlapsRoute';
}

/** A resource that has run out, for example `OutOfcpu`: as a kubelet names it. */
export type ShortageReason = `OutOf${string}`;

export type EventReason =
  | EventReasons[keyof EventReasons]
  | ShortageReason
  | OffloadedReason
  | NamespaceOffloadingReason
  | TunnelReason
  | ForeignClusterReason
  | PeeringRequestReason
  | PeeringPhase
  | `${'Outgoing' | 'Incoming'}${PeeringPhase}`
  | ModePhase;
