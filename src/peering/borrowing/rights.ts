import { eventRight, type Right } from '../../api/rbac.ts';

/** What the cluster role needs, cluster-wide, to use other clusters. */
export const BORROWING_CLUSTER_RIGHTS: readonly Right[] = [
  {
    resource: 'advertisements.tributary.dev',
    verbs: ['list', 'watch', 'create', 'update', 'patch', 'delete'],
    why: 'offers received; patch: its own finalizer, and the annotation with the name of the virtual node',
  },
  {
    resource: 'advertisements.tributary.dev/status',
    verbs: ['update'],
    why: 'what was decided, the contract, and what became of it',
  },
  {
    resource: 'virtualnodes.tributary.dev',
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    why: 'one or more for each provider that we use; those that people made are never written',
  },
  {
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'only namespaces that exist are offloaded',
  },
  {
    resource: 'nodes',
    verbs: ['get', 'delete'],
    why: 'a virtual node is never given the name of another Node; the Node of a peering that has ended is removed where its agent did not',
  },
  {
    resource: 'pods',
    verbs: ['list', 'delete'],
    why: 'ends the pods on the Nodes of a peering that ends, whatever their namespace (RBAC cannot say "pods on these nodes"); asked for by node name only',
  },
  {
    resource: 'pods/eviction',
    verbs: ['create'],
    why: 'asks PodDisruptionBudgets before a pod on such a Node is ended; less than the deletion above',
  },
];

/** In the namespace that the agents run in. */
export const BORROWING_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'secrets',
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    why: 'the credential for each provider, `tributary-kubeconfig-<id>`, renewed and removed',
  },
];

/** In kube-node-lease. */
export const BORROWING_LEASE_RIGHTS: readonly Right[] = [
  {
    resource: 'leases.coordination.k8s.io',
    verbs: ['delete'],
    why: 'the heartbeat of a Node that is gone goes too',
  },
];

/** In `default`, where events of cluster-scoped objects live. */
export const BORROWING_EVENT_RIGHTS: readonly Right[] = [
  eventRight('what was decided about an Advertisement, and why'),
];
