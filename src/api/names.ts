/** Labels, annotations, taints and condition types that the project writes on objects of others. */

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
/** Keeps cloud load balancers from sending traffic to a node that has no network of its own (KEP-1143). */
export const LABEL_EXCLUDE_BALANCERS = 'node.kubernetes.io/exclude-from-external-load-balancers';

/** On a remote pod: UID of the home pod that it is the body of. */
export const LABEL_HOME_UID = 'tributary.dev/home-uid';
/**
 * On a remote object: the VirtualNode whose agent made it; on copies that all virtual nodes of a peering share, the
 * provider's ClusterID. Objects without it are never touched.
 */
export const LABEL_MANAGED_BY = 'tributary.dev/managed-by';
/** On a remote object: the home namespace that it comes from. */
export const ANNOTATION_HOME_NAMESPACE = 'tributary.dev/home-namespace';
/** On a remote pod: what of the home pod was last carried across (JSON, see provider/forge/applied.ts). */
export const ANNOTATION_APPLIED = 'tributary.dev/applied';
/** On a reflected ConfigMap or Secret: `UID/resourceVersion` of the home object it is a copy of. */
export const ANNOTATION_SOURCE = 'tributary.dev/source';

/** On a home pod, only while something is wrong: False, with why the pod does not run over there. */
export const CONDITION_OFFLOADED = 'tributary.dev/Offloaded';

/** Reasons of CONDITION_OFFLOADED and of the events that go with it; a closed list. */
export const OFFLOADED_REASONS = {
  namespaceNotOffloaded: 'NamespaceNotOffloaded',
  tenantNamespace: 'TenantNamespaceNotFound',
  daemonSet: 'DaemonSetNotOffloaded',
  missingReference: 'MissingReference',
  nameTaken: 'NameTaken',
  forbidden: 'Forbidden',
  exceededQuota: 'ExceededQuota',
  invalid: 'Invalid',
  unschedulable: 'Unschedulable',
  lost: 'RemotePodLost',
} as const;
export type OffloadedReason = (typeof OFFLOADED_REASONS)[keyof typeof OFFLOADED_REASONS];

/** On everything that was made here because of a provider that we use: its ClusterID. */
export const LABEL_PROVIDER = 'tributary.dev/provider';
/** On objects that stand for a peering, until what was made for it is gone. */
export const FINALIZER_PEERING = 'tributary.dev/peering';
/** On a ForeignCluster that discovery or an incoming link has made: `true`. One without it was made by a person. */
export const LABEL_DISCOVERED = 'tributary.dev/discovered';
/** On a ForeignCluster: `true` ends its peering without waiting for anything over there. */
export const ANNOTATION_FORCE = 'tributary.dev/force';
/**
 * On an Advertisement, set by people: whenever its text is another one, a new token is asked for at once. `tributary
 * renew` puts the time there.
 */
export const ANNOTATION_RENEW = 'tributary.dev/renew';
/** On a ForeignCluster that discovery made: `spec.outgoing` as it was made, where that is not Auto. What differs is a person's. */
export const ANNOTATION_OUTGOING = 'tributary.dev/discovered-outgoing';
