/** Labels, annotations, taints and condition types that the project writes on objects of others. */

/** Of every such name. */
export const NAME_PREFIX = 'tributary.dev/';

const OWN_DOMAIN = /^([^/]*\.)?tributary\.dev\//u;
/** Whether a key of a label or an annotation is ours, also in a domain below. */
export const isOwnKey = (key: string): boolean => OWN_DOMAIN.test(key);

/** On a VirtualNode that the one agent of all providers serves, role `peers`: always `peers`. */
export const LABEL_AGENT = 'tributary.dev/agent';
export const AGENT_OF_ALL = 'peers';

/** On each namespace: its name. The API server sets it, and nobody else can. */
export const LABEL_NAMESPACE_NAME = 'kubernetes.io/metadata.name';

/** On a Node: the VirtualNode that it comes from. Select on it for affinity. */
export const LABEL_VIRTUAL_NODE = 'tributary.dev/virtual-node';
/** On a Node: always `virtual-node`; tells real and virtual nodes apart. */
export const LABEL_NODE_TYPE = 'tributary.dev/node-type';
export const NODE_TYPE_VIRTUAL = 'virtual-node';
/**
 * Taint `NoSchedule`: the scheduler places only pods that tolerate it. Not `NoExecute`, which would evict pods that
 * somebody pinned here by nodeName on purpose.
 */
export const TAINT_VIRTUAL_NODE = 'tributary.dev/virtual-node';
/** On a Node that is virtual: its role, as `kubectl get nodes` shows it. */
export const LABEL_ROLE_VIRTUAL = 'node-role.kubernetes.io/virtual';
/** On a Node that is virtual: what single nodes behind it have for a pod, and what is asked for it; for people. */
export const ANNOTATION_NODE_SIZES = 'tributary.dev/node-sizes';
export const ANNOTATION_PRICES = 'tributary.dev/prices';
/** On a Node: the cluster autoscaler never takes it away, however empty it is. */
export const ANNOTATION_NO_SCALE_DOWN = 'cluster-autoscaler.kubernetes.io/scale-down-disabled';
/** Keeps cloud load balancers from sending traffic to a node that has no network of its own (KEP-1143). */
export const LABEL_EXCLUDE_BALANCERS = 'node.kubernetes.io/exclude-from-external-load-balancers';

/** On a Node that stands for a device, a cluster that is tethered to this one: label `true`, and taint `NoSchedule`. */
export const LABEL_DEVICE = 'tributary.dev/device';
export const TAINT_DEVICE = 'tributary.dev/device';

/** On a remote pod: UID of the home pod that it is the body of. */
export const LABEL_HOME_UID = 'tributary.dev/home-uid';
/**
 * On a remote object: the VirtualNode whose agent made it; on copies that all virtual nodes of a peering share, the
 * provider's ClusterID. Objects without it are never touched.
 */
export const LABEL_MANAGED_BY = 'tributary.dev/managed-by';
/** On a remote object: the home namespace that it comes from. */
export const ANNOTATION_HOME_NAMESPACE = 'tributary.dev/home-namespace';
/** On a remote pod whose home pod is itself a remote pod, placed back to where it came from: the namespace of the first one. */
export const ANNOTATION_CARRIED_NAMESPACE = 'tributary.dev/carried-namespace';
/** Likewise: the UID of the first one. */
export const ANNOTATION_CARRIED_UID = 'tributary.dev/carried-uid';
/** On a remote pod: what of the home pod was last carried across (JSON, see provider/forge/applied.ts). */
export const ANNOTATION_APPLIED = 'tributary.dev/applied';
/**
 * On a reflected ConfigMap or Secret: `UID/resourceVersion` of the home object it is a copy of. On a Secret with tokens of a
 * pod: its keys, joined by commas.
 */
export const ANNOTATION_SOURCE = 'tributary.dev/source';

/** On a copy of a service account's token: when the next token is asked for, RFC 3339. */
export const ANNOTATION_REFRESH_AT = 'tributary.dev/refresh-at';

/**
 * Of the Lease in each tenant namespace by which a home shows that it is there. Made by the provider, renewed by the home's
 * agent in at least one of its tenant namespaces; the newest counts.
 */
export const HOME_LEASE = 'tributary-home';
/** On the Lease of a virtual Node: how often it was renewed. Fewer than before: the cluster was restored from a backup. */
export const ANNOTATION_RENEWALS = 'tributary.dev/renewals';
/** On the same: how often HOME_LEASE was, `UID.COUNT`, so that a restore over there is noticed after a restart, too. */
export const ANNOTATION_FOREIGN_RENEWALS = 'tributary.dev/foreign-renewals';
/** On the same: when a restore of this cluster was noticed, RFC 3339. */
export const ANNOTATION_RESTORED_AT = 'tributary.dev/restored-at';
/**
 * On a remote pod, written by the home: what the provider may do while the home is away and the pod is lost. `Replace`: make it
 * anew, also while a node that does not answer may still run it, once its grace is over (pods of ReplicaSets, as their controller would).
 * `WhenFenced`: only when it is certain that the old one has ended. `Leave`: never.
 */
export const ANNOTATION_WHEN_LOST = 'tributary.dev/when-lost';
export type WhenLost = 'Replace' | 'WhenFenced' | 'Leave';
/** On a home pod: its stay on a virtual node that is not ready was set without end (`Stay`), as its namespace says or as it must be. */
export const ANNOTATION_WHEN_AWAY = 'tributary.dev/when-away';
/**
 * On a remote pod, written by the provider's guardian: JSON `{"count":1,"restarts":{"app":3}}`: how often the pod was made anew
 * while its home was away, and restarts of containers before that.
 */
export const ANNOTATION_RECREATED = 'tributary.dev/recreated';
/**
 * On a remote pod, written by the provider's guardian: `true`: the pod had finished and was removed while its home was away; this
 * one never runs and only bears its result.
 */
export const ANNOTATION_RESULT = 'tributary.dev/result';
/**
 * On such a pod, written by the provider's guardian: JSON, by container the end of its log in base64 (api/result-logs.ts).
 */
export const ANNOTATION_RESULT_LOGS = 'tributary.dev/result-logs';

/** Provisioner of StorageClasses whose volumes are in a foreign cluster. */
export const STORAGE_PROVISIONER = 'tributary.dev/storage';
/** Parameter of such a StorageClass: the class in the foreign cluster, if no policy names another one for that cluster. */
export const PARAMETER_FOREIGN_CLASS = 'foreignClass';
/** On such a PersistentVolume: the volume and the class in the foreign cluster. */
export const ANNOTATION_FOREIGN_VOLUME = 'tributary.dev/foreign-volume';
export const ANNOTATION_FOREIGN_CLASS = 'tributary.dev/foreign-class';

/** On a home pod, only while something is wrong: False, with why the pod does not run over there. */
export const CONDITION_OFFLOADED = 'tributary.dev/Offloaded';

/** On a home pod: True, when its body was made anew by the provider while this cluster was away; how often, in its message. */
export const CONDITION_RECREATED = 'tributary.dev/Recreated';
/** Reason of CONDITION_RECREATED, and of the event that goes with it. */
export const RECREATED_REASON = 'Recreated';

/** On a home pod: True, where the provider reports more of it than is shown; its message says how much is shown at most. */
export const CONDITION_STATUS_CUT = 'tributary.dev/StatusCut';
export const STATUS_CUT_REASON = 'StatusTooLarge';

/** Reasons of CONDITION_OFFLOADED and of the events that go with it; a closed list. */
export const OFFLOADED_REASONS = {
  namespaceNotOffloaded: 'NamespaceNotOffloaded',
  /** The provider has been asked for it. */
  namespaceBeingMade: 'NamespaceBeingMade',
  tenantNamespace: 'TenantNamespaceNotFound',
  daemonSet: 'DaemonSetNotOffloaded',
  missingReference: 'MissingReference',
  volumeNotHere: 'VolumeNotHere',
  nameTaken: 'NameTaken',
  forbidden: 'Forbidden',
  exceededQuota: 'ExceededQuota',
  /** The provider lets us write no more for now; it is asked again when it has said. */
  writesTooMuch: 'WriteBudgetSpent',
  invalid: 'Invalid',
  unschedulable: 'Unschedulable',
  /** A NetworkPolicy that selects the pod is not over there yet. */
  networkPolicy: 'NetworkPolicyNotInForce',
  /** A hard rule about other pods cannot be said over there. */
  placementNotPossible: 'PlacementNotPossible',
  /** In no foreign cluster. */
  placementNowhere: 'PlacementNowhere',
  lost: 'RemotePodLost',
} as const;
export type OffloadedReason = (typeof OFFLOADED_REASONS)[keyof typeof OFFLOADED_REASONS];

/**
 * Reasons of events about a ConfigMap or Secret that a pod refers to and that is not there for it, as virtual-kubelet names
 * them; a closed list.
 */
export type ReferenceReason =
  | `${'Mandatory' | 'Optional'}${'ConfigMap' | 'Secret'}NotFound`
  | `FailedToRead${'Mandatory' | 'Optional'}${'ConfigMap' | 'Secret'}`;

const PLACING_REASONS: ReadonlySet<string | undefined> = new Set([
  OFFLOADED_REASONS.namespaceNotOffloaded,
  OFFLOADED_REASONS.namespaceBeingMade,
  OFFLOADED_REASONS.tenantNamespace,
  OFFLOADED_REASONS.forbidden,
  OFFLOADED_REASONS.exceededQuota,
  OFFLOADED_REASONS.invalid,
  OFFLOADED_REASONS.unschedulable,
  OFFLOADED_REASONS.placementNotPossible,
  OFFLOADED_REASONS.placementNowhere,
  OFFLOADED_REASONS.volumeNotHere,
  OFFLOADED_REASONS.networkPolicy,
]);

/** The foreign cluster has no place for the pod; another cluster may. The other reasons are about the pod itself. */
export const isPlacingReason = (reason: string | undefined): boolean => PLACING_REASONS.has(reason);

/**
 * On a home namespace, set by people: `true` or a pod strategy makes a NamespaceOffloading with defaults; taken away, that
 * goes, too. On a pod: `false` keeps it home.
 */
export const LABEL_OFFLOAD = 'tributary.dev/offload';
/** On a NamespaceOffloading that the label, or the operator's selector, has made: which of the two. */
export const LABEL_OFFLOADING_ORIGIN = 'tributary.dev/offloading-origin';
/** Keeps a NamespaceOffloading until what was made for it is gone. */
export const FINALIZER_OFFLOADING = 'tributary.dev/offloading';
/** On a pod that the webhook has let in: the strategy that it was given. */
export const ANNOTATION_STRATEGY = 'tributary.dev/strategy';
/** On such a pod: virtual nodes that could not take it then, joined by commas; its node affinity excludes just these. */
export const ANNOTATION_AVOIDS = 'tributary.dev/avoids';
/**
 * On a home pod, set by people: how its rules about hosts, zones and regions travel, before what its namespace says; see
 * src/api/placement.ts.
 */
export const ANNOTATION_PLACEMENT = 'tributary.dev/placement';
/** On a home pod that says nothing of it, or nothing that is understood: what its namespace says, written by the webhook. */
export const ANNOTATION_PLACEMENT_OF_NAMESPACE = 'tributary.dev/placement-of-namespace';
/**
 * On a home pod that may run on virtual nodes only, written by the webhook: its hard rules that keep pods apart, JSON. They are not in
 * its spec, since the scheduler at home takes a virtual node for one host; the agent puts them into the remote pod.
 */
export const ANNOTATION_PLACEMENT_RULES = 'tributary.dev/placement-rules';
/** On such a pod: of virtual nodes that it avoids since it is too large for each node over there, what it has too much of. */
export const ANNOTATION_TOO_LARGE = 'tributary.dev/too-large-for';
/** On such a pod: what it costs for each hour on the virtual nodes that it may use, cheapest first, as its preferred node affinity says; or why that was not compared. */
export const ANNOTATION_PREFERRED = 'tributary.dev/preferred';
/** On a home object: `true` or `false` before what the policy of its kind says; see src/api/reflection.ts. */
export const ANNOTATION_REFLECT = 'tributary.dev/reflect';
/** On a home object: `Replace`, and a copy that cannot be changed is deleted and made anew; else it stays as it was. */
export const ANNOTATION_WHEN_IMMUTABLE = 'tributary.dev/when-immutable';
/** On a Node that is virtual: the name of the foreign cluster. To spread over clusters, real nodes need one, too. */
export const LABEL_CLUSTER = 'tributary.dev/cluster';
/** On a home pod that was made anew after its release: the virtual node that could not place it. */
export const ANNOTATION_RELEASED_FROM = 'tributary.dev/released-from';
/** On a Secret in the system namespace: it is the journal of what is to be made anew. Value: `pod`. */
export const LABEL_REMAKE = 'tributary.dev/remake';
/** On a home pod that was made anew: UID of the pod that it stands for. */
export const ANNOTATION_REMADE_FOR = 'tributary.dev/remade-for';

/** Reasons of DisruptionTarget: the pod was disrupted and is not at fault (podFailurePolicy of Jobs); a closed list. */
export const DISRUPTION_REASONS = {
  deleted: 'DeletionByForeignCluster',
  refused: 'RefusedByForeignCluster',
  released: 'ReleasedFromVirtualNode',
} as const;
export type DisruptionReason = (typeof DISRUPTION_REASONS)[keyof typeof DISRUPTION_REASONS];

/** Reasons of conditions of a virtual node's Node, besides those of its VirtualNode and of the Tunnel; a closed list. */
export const NODE_REASONS = {
  ready: 'ForeignClusterReady',
  /** Of Ready=True: what runs there runs on. */
  closed: 'ForeignClusterClosed',
  /** What a home cannot know: the pressure on nodes over there. */
  notApplicable: 'NotApplicable',
  tunnelReady: 'TunnelReady',
} as const;

/** Reason of the decision about a request for a kubelet's serving certificate. */
export const REQUEST_REASONS = { decided: 'TributaryPolicy' } as const;

/** Reasons for which a home pod whose body is ready is not Ready itself; a closed list. */
export const REACH_REASONS = {
  tunnelDown: 'TunnelDown',
  clusterAway: 'ForeignClusterAway',
  noView: 'NoViewOfAddress',
} as const;

/** On EndpointSlices that this program makes (KEP-752), so that no other controller takes them for its own. */
export const LABEL_SLICE_MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
export const SLICE_MANAGER = 'tributary.dev';
/** The manager of EndpointSlices that are made from the selector of a Service. */
export const SELECTOR_SLICE_MANAGER = 'endpointslice-controller.k8s.io';
/** The manager of EndpointSlices with pods of a peer that the peer has asked for; see ANNOTATION_NATIVE_ENDPOINTS. */
export const NATIVE_SLICE_MANAGER = 'native.tributary.dev';
/** On every EndpointSlice: the Service that it belongs to. */
export const LABEL_SERVICE_NAME = 'kubernetes.io/service-name';
/**
 * On a reflected EndpointSlice, set by the provider while packets do not get through to the home: nothing of it is
 * ready, whatever home says, until the annotation is taken away again.
 */
export const ANNOTATION_WITHHELD = 'tributary.dev/withheld';
/** On a GuestNetworkPolicy: `UID/generation` of the NetworkPolicy at home that it says. */
export const ANNOTATION_HOME_GENERATION = 'tributary.dev/home-generation';
/** On a reflected EndpointSlice: pods of the peer that are endpoints, too, JSON; see src/api/native-endpoints.ts. */
export const ANNOTATION_NATIVE_ENDPOINTS = 'tributary.dev/native-endpoints';
/**
 * On a reflected EndpointSlice, set by the provider: addresses of ANNOTATION_NATIVE_ENDPOINTS at which the peer has no pod,
 * joined by commas, the first ones if there are many.
 */
export const ANNOTATION_NO_POD_AT = 'tributary.dev/no-pod-at';
/**
 * On a tenant namespace: the prefixes under which this cluster sees the peer's addresses, joined by commas. A peer's
 * EndpointSlices may name addresses in these only.
 */
export const ANNOTATION_PEER_PREFIXES = 'tributary.dev/peer-prefixes';

/** On everything that was made here because of a provider that we use: its ClusterID. */
export const LABEL_PROVIDER = 'tributary.dev/provider';
/** On everything that is made here for a peer that uses us: its ClusterID. */
export const LABEL_PEER = 'tributary.dev/peer';
/** On objects that stand for a peering, until what was made for it is gone. */
export const FINALIZER_PEERING = 'tributary.dev/peering';
/** On a ForeignCluster that discovery or an incoming link has made: `true`. One without it was made by a person. */
export const LABEL_DISCOVERED = 'tributary.dev/discovered';
/** On a ForeignCluster: `true` ends its peering without waiting for the foreign cluster. */
export const ANNOTATION_FORCE = 'tributary.dev/force';
/** On a SharingPolicy that `tributary peer --to-context` has made: the ClusterID that it was made for. `tributary unpeer` removes it. */
export const LABEL_MADE_FOR = 'tributary.dev/made-for';
/** On a ForeignCluster: the name of the SharingPolicy that `tributary peer --to-context` has made for us in that cluster. */
export const ANNOTATION_POLICY_OVER_THERE = 'tributary.dev/policy-over-there';
/** On a PeeringRequest, by a person, `true`: a peer that no policy selects any more is ended without a grace. */
export const ANNOTATION_END_NOW = 'tributary.dev/end-now';
/** On a PeeringRequest, `true`: its suspension ends now. It is taken off again. */
export const ANNOTATION_RESUME = 'tributary.dev/resume';
/**
 * On an Advertisement, set by people: whenever its text is another one, a new token is asked for at once. `tributary
 * renew` puts the time there.
 */
export const ANNOTATION_RENEW = 'tributary.dev/renew';
/** On a ForeignCluster that discovery made: `spec.outgoing` as it was made, where that is not Auto. What differs is a person's. */
export const ANNOTATION_OUTGOING = 'tributary.dev/discovered-outgoing';
/**
 * On the ConfigMap of the gateway's facts, set by people: whenever its text is another one, the gateway makes itself a
 * new WireGuard key. On a Tunnel: our half of its preshared key is made anew.
 */
export const ANNOTATION_ROTATE = 'tributary.dev/rotate';

/** On an Advertisement: the base of its VirtualNodes' names, chosen once. */
export const ANNOTATION_NODE_NAME = 'tributary.dev/node-name';
/** On a VirtualNode: since when its pods are being ended, RFC 3339. */
export const ANNOTATION_ENDING = 'tributary.dev/ending-since';
/** On a VirtualNode: the provider's SharingPolicy that applies to this cluster, by its name, as the provider says it. */
export const ANNOTATION_SHARING_POLICY = 'tributary.dev/sharing-policy';
/** On a VirtualNode or a Node: keys (JSON) that this program has put there, so that it may take them off again. */
export const ANNOTATION_OWNED = 'tributary.dev/owned';
/** Taint `NoSchedule` of a VirtualNode that takes no new pods: its peering ends, or the offer no longer covers it. */
export const TAINT_CLOSED = 'tributary.dev/closed';
/** On a VirtualNode with that taint: why, as people read it. */
export const ANNOTATION_CLOSED = 'tributary.dev/closed-because';
/** On the Secret with a provider's kubeconfig: from when to when its token is valid. */
export const ANNOTATION_ISSUED = 'tributary.dev/credential-issued';
export const ANNOTATION_EXPIRES = 'tributary.dev/credential-expires';
/** On that Secret: the text of ANNOTATION_RENEW for which its token was asked. */
export const ANNOTATION_RENEWED = 'tributary.dev/credential-renewed';
/** On that Secret: how its server is reached. */
export const ANNOTATION_ACCESS = 'tributary.dev/access';

/** `true` on Services and EndpointSlices that stand here for a provider's Service. None without it is ever written. */
export const LABEL_OFFERED_SERVICE = 'tributary.dev/offered-service';
/** On these: `namespace/name` of the Service in the provider's cluster. */
export const ANNOTATION_OFFERED_SERVICE = 'tributary.dev/offered-service';

/** On a Lease of a role that one replica leads: who waits for it. Its holder takes the annotation away now and then, to see whether it comes back. */
export const ANNOTATION_CANDIDATE = 'tributary.dev/candidate';

/** On all objects that `tributary install` and the Helm chart make, and on no other: `tributary`. */
export const LABEL_INSTALLATION = 'tributary.dev/installation';

/** On the Secret with the cluster's identity: its ClusterID. */
export const ANNOTATION_CLUSTER_ID = 'tributary.dev/cluster-id';
/** Type of the Secrets of join tokens. */
export const JOIN_TOKEN_TYPE = 'tributary.dev/join-token';
/** On these Secrets: the name of the token. They are listed by it, so that no other Secret is read. */
export const LABEL_JOIN_TOKEN = 'tributary.dev/join-token';
