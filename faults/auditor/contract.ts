/**
 * All that the auditor knows of Tributary: names that its documents promise (docs/objects.md, docs/failures.md,
 * docs/troubleshooting.md, docs/decisions/0003, 0022, 0034). Nothing is imported from the program, so that a mistake there is
 * not repeated here.
 */

/** Label of a remote pod: the UID of the home pod that it is the body of. */
export const HOME_UID = 'tributary.dev/home-uid';
/** Label of a remote object: which virtual node, or which peering, it was made for. */
export const MANAGED_BY = 'tributary.dev/managed-by';
/** Of every label, annotation, finalizer and condition of Tributary. */
export const OWN_PREFIX = 'tributary.dev/';
/** The group of its kinds. */
export const OWN_GROUP = 'tributary.dev';
/** Where its own programs and the accounts of peers are. */
export const OWN_NAMESPACES: ReadonlySet<string> = new Set(['tributary-system', 'tributary-peers']);
/** Names of its objects without a namespace: roles, policies, webhooks, volumes. */
export const OWN_NAME: RegExp = /^tributary([-.:]|$)|\.tributary\.dev$/u;

/** Annotation of a body that the provider made anew while home was away: JSON `{"count":1,"restarts":{"app":3}}`. */
export const RECREATED = 'tributary.dev/recreated';
/** Annotation of a body that never runs and bears the result of one that did. */
export const RESULT = 'tributary.dev/result';

/** Condition of a home pod, False while its pod does not run over there. */
export const OFFLOADED = 'tributary.dev/Offloaded';
/** Condition of a home pod: its status was larger than home shows, so fields were left out. */
export const STATUS_CUT = 'tributary.dev/StatusCut';
/** Home says so of a pod whose body was evicted or deleted over there. */
export const LOST = 'RemotePodLost';
/** Home fails a pod for which the provider has no room: this and a resource. */
export const NO_ROOM: RegExp = /^OutOf/u;
/** Ready=True of a DaemonSet's pod, which has no body. */
export const DAEMON_SET = 'DaemonSetNotOffloaded';
/** How a kubelet, and home, report a container that they can no longer find. */
export const UNKNOWN_CONTAINER = 'ContainerStatusUnknown';

/** Tables of nftables, in family inet. */
export const GATEWAY_TABLE = 'tributary_gateway';
/** Chains of one peer: from our addresses to how the peer sees them, and back. */
export const SOURCE_CHAIN: RegExp = /^snat_(?<peer>.+)$/u;
export const DESTINATION_CHAIN: RegExp = /^dnat_(?<peer>.+)$/u;
/** Maps from a view of a peer to a chain of that peer. */
export const VIEW_MAPS: RegExp = /^(?:from|dnat|access|mss|snat|sent|home)[46]$/u;
/** The chain that sends packets into translation, and the one that drops what was not translated. */
export const TRANSLATING_CHAIN = 'source';
export const DEPARTURE_CHAIN = 'departure';

/** Where home keeps the VirtualNodes. */
export const VIRTUAL_NODES = '/apis/tributary.dev/v1alpha1/virtualnodes';
