import { eventRight, type Right } from '../../api/rbac.ts';

/** What lending may do in its own cluster, beside what the offer needs to know of nodes and pods, and hosting of tenants. */
export const LENDING_CLUSTER_RIGHTS: readonly Right[] = [
  {
    resource: 'peeringrequests.tributary.dev',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'writes down who asks for what, keeps the finalizer, deletes what is no longer asked for',
  },
  {
    resource: 'peeringrequests.tributary.dev/status',
    verbs: ['update'],
    why: 'decision, offer, contract and use, with their cause',
  },
  {
    resource: 'sharingpolicies.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'what is lent, how much and to whom',
  },
  {
    resource: 'sharingpolicies.tributary.dev/status',
    verbs: ['update'],
    why: 'about whom a policy decides, and what is free',
  },
  {
    resource: 'runtimeclasses.node.k8s.io',
    verbs: ['list', 'watch'],
    why: 'what the runtime class that a SharingPolicy forces on pods costs besides; says on the policy if it is not there',
  },
];

/** In tributary-peers. */
export const LENDING_PEERS_RIGHTS: readonly Right[] = [
  {
    resource: 'serviceaccounts',
    verbs: ['delete'],
    why: 'revokes a peer: its tokens die with its account',
  },
  {
    resource: 'serviceaccounts/token',
    verbs: ['create'],
    why: 'short-lived tokens for the accounts of peers, which are all that is in this namespace',
  },
];

/** In the namespace that Tributary runs in. */
export const LENDING_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'secrets',
    verbs: ['get', 'list', 'create', 'update', 'delete'],
    why: 'join tokens: checked by name, marked as used, listed and swept; names are chosen by people, so these verbs cannot be narrowed',
  },
  {
    resource: 'leases.coordination.k8s.io',
    verbs: ['get', 'create', 'update', 'delete'],
    why: 'when the pods of a device are to be stopped, `tributary-fence-<ClusterID>`; names that peers have, so these verbs cannot be narrowed',
  },
  {
    resource: 'configmaps',
    names: ['kube-root-ca.crt'],
    verbs: ['get'],
    why: 'the authority of our API server, told to peers that may use it',
  },
];

/** In the namespace `default`. */
export const LENDING_DEFAULT_RIGHTS: readonly Right[] = [
  {
    resource: 'endpointslices.discovery.k8s.io',
    names: ['kubernetes'],
    verbs: ['get'],
    why: 'where our API server is, told to peers that may use it',
  },
  eventRight('says on the PeeringRequest what happened; events of cluster-wide objects are here'),
];
