import type { Right } from '../../api/rbac.ts';
import { TENANT_KINDS_ROLE, TENANT_ROLE } from '../../hosting/tenants/contract-tenant.ts';

/**
 * What lending may do in its own cluster, beside what the offer needs to know of nodes and pods. Writes to
 * namespaces and what is in them, and to FlowSchemas, are fenced to tenants that lending has made (fence.ts): RBAC
 * cannot speak of labels. No verb here reads a Secret outside tributary-system.
 */
export const LENDING_CLUSTER_RIGHTS: readonly Right[] = [
  {
    group: 'tributary.dev',
    resource: 'peeringrequests',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'writes down who asks for what, keeps the finalizer, deletes what is no longer asked for',
  },
  {
    group: 'tributary.dev',
    resource: 'peeringrequests/status',
    verbs: ['update'],
    why: 'decision, offer, contract and use, with their cause',
  },
  {
    group: 'tributary.dev',
    resource: 'sharingpolicies',
    verbs: ['list', 'watch'],
    why: 'what is lent, how much and to whom',
  },
  {
    group: 'tributary.dev',
    resource: 'sharingpolicies/status',
    verbs: ['update'],
    why: 'about whom a policy decides, and what is free',
  },
  {
    group: '',
    resource: 'namespaces',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'tenant namespaces of peers; list, watch: whose a name is; create comes with patch, since server-side apply asks for both. Writes are fenced to tenants',
  },
  {
    group: '',
    resource: 'pods',
    verbs: ['list', 'delete'],
    why: 'ends by force what is left in a tenant namespace a minute after its deletion, whatever grace a peer has asked for',
  },
  {
    group: '',
    resource: 'resourcequotas',
    verbs: ['list', 'watch', 'create', 'patch'],
    why: 'the contract, as a quota; fenced to tenants',
  },
  {
    group: '',
    resource: 'limitranges',
    verbs: ['list', 'watch', 'create', 'patch'],
    why: 'requests of containers that name none; fenced to tenants',
  },
  {
    group: '',
    resource: 'serviceaccounts',
    verbs: ['list', 'watch', 'create', 'patch'],
    why: "takes the token from a tenant's default account, and makes the account of a peer; fenced to tenants and tributary-peers",
  },
  {
    group: 'networking.k8s.io',
    resource: 'networkpolicies',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'keeps the pods of a tenant apart from ours and those of other peers; delete: where the policy wants none; fenced to tenants and to that one name',
  },
  {
    group: 'node.k8s.io',
    resource: 'runtimeclasses',
    verbs: ['list', 'watch'],
    why: 'says on a SharingPolicy that the runtime class it forces on pods is not there',
  },
  {
    group: 'rbac.authorization.k8s.io',
    resource: 'rolebindings',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'lets a peer into its tenant namespaces, and out; fenced to tenants and to the peer of the namespace',
  },
  {
    group: 'rbac.authorization.k8s.io',
    resource: 'clusterroles',
    names: [TENANT_ROLE],
    verbs: ['bind'],
    why: 'this one role and no other may be given away',
  },
  {
    group: 'rbac.authorization.k8s.io',
    resource: 'roles',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'further kinds that a SharingPolicy lets a peer bring; fenced to tenants and to what no cluster is governed by. The API server itself refuses rights that this role does not hold',
  },
  {
    group: 'rbac.authorization.k8s.io',
    resource: 'roles',
    names: [TENANT_KINDS_ROLE],
    verbs: ['bind'],
    why: 'gives a peer that Role of its tenant',
  },
  {
    group: 'authorization.k8s.io',
    resource: 'selfsubjectrulesreviews',
    verbs: ['create'],
    why: 'which rights to further kinds people have given it to pass on',
  },
  {
    group: 'tributary.dev',
    resource: 'tunnels',
    verbs: ['list', 'watch'],
    why: "as what we see a peer's addresses, and whether packets get through to it",
  },
  {
    group: 'discovery.k8s.io',
    resource: 'endpointslices',
    verbs: ['list', 'watch', 'update'],
    why: "withholds a peer's endpoints while its tunnel is down; writes are fenced to those that peers have made, in tenants",
  },
  {
    group: 'flowcontrol.apiserver.k8s.io',
    resource: 'flowschemas',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'bounds what a peer may ask of the API server; fenced to those of peers',
  },
];

/** In tributary-peers. */
export const LENDING_PEERS_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'serviceaccounts',
    verbs: ['delete'],
    why: 'revokes a peer: its tokens die with its account',
  },
  {
    group: '',
    resource: 'serviceaccounts/token',
    verbs: ['create'],
    why: 'short-lived tokens for the accounts of peers, which are all that is in this namespace',
  },
];

/** In the namespace that Tributary runs in. */
export const LENDING_SYSTEM_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'secrets',
    verbs: ['get', 'list', 'create', 'update', 'delete'],
    why: 'join tokens: checked by name, marked as used, listed and swept; names are chosen by people, so these verbs cannot be narrowed',
  },
  {
    group: '',
    resource: 'configmaps',
    names: ['kube-root-ca.crt'],
    verbs: ['get'],
    why: 'the authority of our API server, told to peers that may use it',
  },
];

/** In the namespace `default`. */
export const LENDING_DEFAULT_RIGHTS: readonly Right[] = [
  {
    group: 'discovery.k8s.io',
    resource: 'endpointslices',
    names: ['kubernetes'],
    verbs: ['get'],
    why: 'where our API server is, told to peers that may use it',
  },
  {
    group: '',
    resource: 'events',
    verbs: ['create', 'patch'],
    why: 'says on the PeeringRequest what happened; events of cluster-wide objects are here',
  },
];
