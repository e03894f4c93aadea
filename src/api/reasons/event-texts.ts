/** What events mean and what to do; those that repeat a reason or a phase of a status are told with it. */
import type { EventReasons, ShortageReason } from './events.ts';
import { type ReasonText, text } from './text.ts';

export interface EventText extends ReasonText {
  readonly type: 'Normal' | 'Warning';
}
type EventTexts = { readonly [Kind in keyof EventReasons]: Readonly<Record<EventReasons[Kind], EventText>> };

const news = (means: string, todo?: string): EventText => ({ type: 'Normal', ...text(means, todo) });
const warning = (means: string, todo?: string): EventText => ({ type: 'Warning', ...text(means, todo) });

const notFound = warning(
  'The pod needs the object for its start, and home does not have it.',
  'Create it; the pod goes on by itself.',
);
const optionalNotFound = warning(
  'The pod was made without these optional variables.',
  'Nothing; or create the object, and make the pod anew.',
);
const notRead = warning(
  'The pod needs the object for its start, and it does not travel.',
  'The message says why: often `reflection` of the namespace, or an annotation.',
);
const optionalNotRead = warning(
  'The object does not travel, and the pod was made without these optional variables.',
  'The message says why.',
);

/** Of ShortageReason, whatever has run out. */
export const SHORTAGE_TEXT: EventText & { readonly example: ShortageReason } = {
  example: 'OutOfcpu',
  ...warning(
    'The quota or contract had no room for more than five seconds, and the pod was ended as a kubelet does it. Also the reason of the pod’s status.',
    'Nothing: its controller makes another one. If it happens again and again, `spec.resources` of the VirtualNode is more than the provider admits.',
  ),
};

export const EVENT_TEXTS: EventTexts = {
  Pod: {
    MandatoryConfigMapNotFound: notFound,
    MandatorySecretNotFound: notFound,
    OptionalConfigMapNotFound: optionalNotFound,
    OptionalSecretNotFound: optionalNotFound,
    FailedToReadMandatoryConfigMap: notRead,
    FailedToReadMandatorySecret: notRead,
    FailedToReadOptionalConfigMap: optionalNotRead,
    FailedToReadOptionalSecret: optionalNotRead,
    FailedUpdate: warning(
      'The provider refused a change of a running pod, which runs on as it was.',
      'The message says what was refused, and why; a refused resize is also the condition `PodResizePending`: `Infeasible`, or `Deferred` where it was refused for quota, and is asked for again.',
    ),
    FailedStatusUpdate: warning(
      'Home does not accept the status from the foreign cluster.',
      'The message names the field; often one of the two versions lacks a feature.',
    ),
    ForeignAccessDenied: warning(
      'The credential lacks a right at the provider.',
      'The provider applies `tributary tenant` again.',
    ),
    ForeignWriteFailed: warning(
      'The API server that the pod is written to does not store it: its etcd is full, or a webhook there does not answer.',
      'The message names which; the pod waits and goes on by itself. The provider defragments its etcd and lifts the alarm (`etcdctl alarm disarm`), or mends its webhook.',
    ),
    NoTokenForHome: warning(
      'The pod runs without a token of its account: there is no way to the home API server.',
      'The message says why, as does the condition `HomeApiServerReachable` of the VirtualNode. Pods that are made later have one when there is a way.',
    ),
    ForeignDNS: warning(
      '`dns: Home` is chosen, and the pod asks the DNS of the foreign cluster all the same.',
      'The message says why, as does the condition `HomeDNSReachable` of the VirtualNode. Pods that are made later ask that of home when they can.',
    ),
    PlacementNotCarried: warning(
      'The pod runs, and a rule of it about hosts or zones does not hold over there.',
      'The message names the rule and says why; see "Hosts and zones over there" in namespaces.md.',
    ),
    PlacementUnknown: warning(
      'The annotation `tributary.dev/placement` of the pod has an unknown value, and counts as not said.',
      'Correct it where the pod is made (the template of its Deployment); the message says what is allowed, and what holds meanwhile.',
    ),
    PodAtHome: warning(
      'The pod was made before its namespace was offloaded, so it stays on real nodes.',
      'Restart its owner: the message has the command. Or set `existingPods: Move`.',
    ),
    PodMoved: news('`existingPods: Move`: the pod was evicted, and its controller makes another one.'),
    Released: warning(
      'It found no place in the foreign cluster for `releaseAfterSeconds`, and is on its way elsewhere.',
      'Nothing; the message has the words of the provider.',
    ),
    MovedWhileAway: warning(
      'The foreign cluster was away for longer than `whenAway` of the NamespaceOffloading lets its pods stay: the pod was deleted, and its controller makes another one.',
      'Nothing. The old one is shown as Terminating until contact is back and it has ended over there.',
    ),
    StaysWhileAway: warning(
      'The foreign cluster is away, and the pod stays although pods of its namespace move, or Kubernetes would move it: it must not run twice, or its data are there.',
      'Wait, or say that the cluster is off for certain; see "A foreign cluster that is away" in namespaces.md.',
    ),
    NotReleased: warning(
      'It found no place there, and stays: the strategy is Remote and no other virtual node can be had, its owner brought it back, or its volumes are there.',
      'Other clusters for a `Remote` namespace; else look for a `nodeName` or a node affinity.',
    ),
    Remade: news('A pod without a controller was made anew.'),
    RemakeDropped: warning(
      'A pod without a controller was to be made anew, and this one has taken its name; it is left alone.',
      'Make the other one yourself, under another name.',
    ),
    RemakeFailed: warning(
      'The API server does not take the pod that is to be made anew (quota, a policy).',
      'Free quota, or correct what refuses it; it is tried again.',
    ),
    Recreated: news(
      'The home was away, and the provider made the pod anew; restarts count on. Also the condition `tributary.dev/Recreated`.',
    ),
    RunsLocally: news(
      'The cluster to which this one is tethered is away and has stopped the pod; it is made anew here.',
    ),
    NotRunLocally: warning(
      'The pod stays away while contact is lost: its volumes are in the other cluster.',
      'Bring the clusters back into contact.',
    ),
    TooLargeForNodes: warning(
      'The pod waits for a node, and requests more than each single node behind the virtual nodes that the message names.',
      'Smaller requests, or larger nodes at the provider; it is made anew when a node is large enough.',
    ),
    MadeAnew: news(
      'The pod waited for a node under what no longer holds (the mode of this cluster, or a virtual node that it was kept off), and is made anew.',
    ),
    HeldByBudget: warning(
      'Its namespace leaves that cluster, and a PodDisruptionBudget does not let it go yet.',
      'Nothing: the message says until when the budget is regarded. Or one more replica.',
    ),
    DisruptionBudgetOverridden: warning(
      'The time for its PodDisruptionBudget was over, and the pod was deleted against it.',
      'One more replica, or a longer `--drain-seconds`, before the next time.',
    ),
    NotBroughtHome: warning(
      'The API server refused the end of the pod, or it is too large to be stored and made anew.',
      'The message says which, and whether it is tried again.',
    ),
  },
  PersistentVolumeClaim: {
    VolumeNotSupported: warning(
      'A volume in a foreign cluster cannot be as the claim wants it.',
      'Remove `selector`, `dataSource`, `dataSourceRef` or `volumeAttributesClassName`; the message says which.',
    ),
    WaitForFirstConsumerNeeded: warning(
      'Where the volume is to be follows from where the pod runs.',
      'Delete the StorageClass, and make it again with `volumeBindingMode: WaitForFirstConsumer`.',
    ),
    NameTaken: warning(
      'A claim over there has the name: of somebody else, or an earlier one that is kept for its data.',
      'Delete it over there, or take another name.',
    ),
    ProvisioningFailed: warning(
      'No volume could be made in the foreign cluster.',
      'The words of its provisioner are in other events of the claim.',
    ),
    NamespaceNotOffloaded: warning(
      'The virtual node does not, or not yet, have the namespace of the claim.',
      'Nothing: the scheduler chooses again. Or label the namespace.',
    ),
    StorageClassNotMapped: warning(
      'Nobody has said which class the StorageClass is in that cluster.',
      'Name it under `storageClasses` of the AcceptancePolicy or VirtualNode, or in the parameter `foreignClass` of the class.',
    ),
    StorageClassNotOffered: warning(
      'The provider does not lend the class that is wanted there.',
      'Map it to a class that the provider lends: the message lists them.',
    ),
    VolumeLost: warning(
      'The claim over there, or its volume, is gone, and nothing replaces it.',
      'Restore the data from a backup.',
    ),
    VolumeExpansionNotCarried: warning(
      'A volume in a foreign cluster does not grow.',
      'Make a larger claim and copy; leave `allowVolumeExpansion` out of the StorageClass.',
    ),
  },
  Copied: {
    CopyNotChanged: warning(
      'A field cannot be changed over there (it is immutable), so the copy stays as it was.',
      'Undo the change; or set `tributary.dev/when-immutable: Replace` on the object: the copy is deleted and made anew.',
    ),
    EndpointNotReflected: warning(
      'EndpointSlice: the foreign cluster cannot reach an address: that of a node, one outside of both clusters, or one at which no pod of ours is.',
      'For one outside of both clusters, a Service of type ExternalName.',
    ),
    PolicyStricterAbroad: warning(
      'NetworkPolicy: something that it opens at home stays closed for pods over there.',
      'The message names the VirtualNode and the first rule; its `status.stricterPolicies` names all.',
    ),
    ReflectIgnored: warning(
      'The annotation `tributary.dev/reflect` has an unknown value, so the rule of the namespace counts.',
      'Say "true" or "false", or remove it.',
    ),
    IngressClassNotMapped: warning(
      'Ingress: nobody has said which class its class is over there, so it stays home.',
      'Name the class under `ingressClasses` of the AcceptancePolicy or VirtualNode.',
    ),
    IngressBackendNotReflected: warning(
      'Ingress: a backend is no Service, or a Service that does not travel.',
      'A rule, or a network, for the Service.',
    ),
  },
  Namespace: {
    OffloadLabelInvalid: warning(
      'The label `tributary.dev/offload` has an unknown value; nothing was changed.',
      'The message says what is allowed.',
    ),
    OffloadingRefused: warning(
      'The namespace belongs to the cluster itself, or to a peer, and is never offloaded.',
      'Put applications into a namespace of their own.',
    ),
    KindNotServed: warning(
      'One of the clusters does not serve a kind in the rules. Also on the VirtualNode.',
      'Install its CustomResourceDefinition, namespaced and of that version; the message says where.',
    ),
    KindForbidden: warning(
      'One of the clusters denies access to a kind in the rules. Also on the VirtualNode.',
      'Here, a ClusterRole with the label that the message names; there, `reflectableKinds` of the SharingPolicy.',
    ),
    InvalidReflectionRule: warning(
      'A rule can have no effect. Also on the VirtualNode.',
      'The message says why.',
    ),
    HomePresent: news('At the provider: the home is back. Also on the PeeringRequest.'),
    PodRecreated: news('At the provider, while the home is away: a lost pod was made anew.'),
    PodCleared: news(
      'Likewise: a pod that had failed through no fault of its own was removed, to make room for its successor.',
    ),
    PodForceDeleted: news('Likewise: a pod on a lost node was removed, to make room for its successor.'),
    ResultKept: news('Likewise: a finished pod that was removed was put back with its result.'),
    PodGivenUp: news('Likewise: a lost pod whose home wants no other is left to it, which finds it Failed.'),
    PodNotKept: warning(
      'Likewise: a pod cannot be looked after, or not be made anew.',
      'The message says why: make room in the quota, or use smaller annotations and fewer finished pods. It is tried again.',
    ),
  },
  NamespaceOffloading: {
    KeptAwayByTemplate: warning(
      'It was removed, and pods of the namespace ask for virtual nodes themselves. They wait there and do not run.',
      'Take out of the pod template what the message names.',
    ),
    KeptHome: news(
      'A foreign cluster is away, and `whenAway` has `to: Home`: new pods of the namespace, but those with claims, are kept on real nodes until the time in `status.heldOff`, also where it says `Remote`.',
    ),
    LeftBehind: warning(
      'It was removed, and what it has over there did not end in time.',
      'Look at the pods that the message names. What is left over there goes with the peering.',
    ),
  },
  VirtualNode: {
    AgentStandsBy: warning(
      'Two agents run for this virtual node. The one that the message names last acts; the other one does nothing.',
      'End one of them, often an old Deployment or a process that was started by hand. After the loss of a node it passes by itself within 30 s.',
    ),
    ForeignClusterRestored: warning(
      'The etcd of the foreign cluster was restored from a backup.',
      'Nothing: pods that it has lost fail with `RemotePodLost`, and their controllers make others.',
    ),
    HomeRestored: warning(
      'The etcd of this cluster was restored from a backup; pods over there that have no pod here are kept for a while.',
      'See the condition `Restored`, and operations/backup.md.',
    ),
    LessRoom: warning(
      'The provider refused a pod for room, so the Node shows less until there is more.',
      'Smaller requests, or a larger share from the provider.',
    ),
    RemotePodLost: warning(
      'Many remote pods are gone at once; their home pods are ended slowly.',
      'Look at the provider before it goes on.',
    ),
  },
  ForeignCluster: {
    TunnelDown: warning(
      'Packets do not go through the tunnel.',
      'See the Tunnel; the message has its reason.',
    ),
    TunnelUp: news('Packets go through the tunnel again.'),
  },
  Advertisement: {
    OfferAccepted: news('The offer is taken.'),
    OfferPending: news('The offer waits for a decision.', 'The message says whose.'),
    OfferRefused: warning(
      'The offer does not pass our policy, or a person refused it.',
      'The message says why.',
    ),
    OfferExpired: warning('The offer was not renewed, or was taken back.', 'Look at the ForeignCluster.'),
    OfferInvalid: warning('What the provider sent makes no sense.', 'The message names the field.'),
    PeeringEstablished: news('Pods can be run over there.'),
    PeeringEnding: news(
      'The peering is being taken down.',
      'Nothing; where the message names finalizers, whoever has set them has to remove them.',
    ),
    ServiceNotUsed: warning(
      'A Service of the provider cannot be made or changed here; tried again within a minute.',
      'The message says why; see the reasons of Services.',
    ),
  },
  SharingPolicy: {
    ServicesNotOffered: warning(
      'Not all Services that the policy selects can be offered.',
      'The message says why.',
    ),
  },
  Tunnel: {
    TunnelReady: news('Packets go through in both directions.'),
    ViewOverlapsRoute: warning(
      'The peer is seen at addresses to which the gateway’s host has another route.',
      'Un-peer and peer again for another range; `--reserved-cidrs` keeps ranges free.',
    ),
  },
};
