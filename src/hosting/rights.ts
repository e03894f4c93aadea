import { HOME_LEASE } from '../api/names.ts';
import { eventRight, type Right } from '../api/rbac.ts';
import { TENANT_KINDS_ROLE, TENANT_LOGS_ROLE, TENANT_ROLE } from './tenants/contract-tenant.ts';

/**
 * What makes, changes and ends tenants. Writes to namespaces and what is in them, and to FlowSchemas, are fenced to tenants
 * that were made because of a contract (fences.ts), because RBAC knows nothing of labels. No verb here reads a Secret.
 */
export const TENANT_RIGHTS: readonly Right[] = [
  {
    resource: 'namespaces',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'tenant namespaces of peers; list, watch: whose a name is; create comes with patch, since server-side apply asks for both. Writes are fenced to tenants',
  },
  {
    resource: 'pods',
    verbs: ['list', 'delete'],
    why: 'whether a tenant namespace is kept for pods; ends by force what is left in one a minute after its deletion, whatever grace a peer has asked for',
  },
  {
    resource: 'persistentvolumeclaims',
    verbs: ['list'],
    why: 'keeps a tenant namespace with data for the time agreed on after the end, and one without only while pods are in it',
  },
  {
    resource: 'resourcequotas',
    verbs: ['list', 'watch', 'create', 'patch'],
    why: 'the contract, as a quota; fenced to tenants',
  },
  {
    resource: 'limitranges',
    verbs: ['list', 'watch', 'create', 'patch'],
    why: 'requests of containers that name none; fenced to tenants',
  },
  {
    resource: 'serviceaccounts',
    verbs: ['list', 'watch', 'create', 'patch'],
    why: "takes the token from a tenant's default account, and makes the account of a peer; fenced to tenants and tributary-peers",
  },
  {
    resource: 'networkpolicies.networking.k8s.io',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'keeps the pods of a tenant apart from ours and those of other peers, and closes what their home closes; delete: where the policy wants none; fenced to tenants and to names of ours',
  },
  {
    resource: 'guestnetworkpolicies.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'makes NetworkPolicies of what peers say of their pods here',
  },
  {
    resource: 'guestnetworkpolicies.tributary.dev/status',
    verbs: ['update'],
    why: 'says which generation is in force, and what of it stays closed',
  },
  {
    resource: 'rolebindings.rbac.authorization.k8s.io',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'lets a peer into its tenant namespaces, and out; fenced to tenants and to the peer of the namespace',
  },
  {
    resource: 'clusterroles.rbac.authorization.k8s.io',
    names: [TENANT_ROLE, TENANT_LOGS_ROLE],
    verbs: ['bind'],
    why: 'these two roles and no other may be given away: the first to the peer of a tenant, the second to itself there',
  },
  {
    resource: 'roles.rbac.authorization.k8s.io',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'further kinds that a SharingPolicy lets a peer bring; fenced to tenants and to what no cluster is governed by. The API server itself refuses rights that this role does not hold',
  },
  {
    resource: 'roles.rbac.authorization.k8s.io',
    names: [TENANT_KINDS_ROLE],
    verbs: ['bind'],
    why: 'gives a peer that Role of its tenant',
  },
  {
    resource: 'selfsubjectrulesreviews.authorization.k8s.io',
    verbs: ['create'],
    why: 'which rights to further kinds people have given it to pass on',
  },
  {
    resource: 'tunnels.tributary.dev',
    verbs: ['list', 'watch'],
    why: "as what we see a peer's addresses, and whether packets get through to it",
  },
  {
    resource: 'endpointslices.discovery.k8s.io',
    verbs: ['list', 'watch', 'create', 'update', 'delete'],
    why: "withholds a peer's endpoints while its tunnel is down; makes those that are pods of the peer here, which it may only ask for. Writes are fenced to these two, in tenants",
  },
  {
    resource: 'flowschemas.flowcontrol.apiserver.k8s.io',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'bounds what a peer may ask of the API server; fenced to those of peers',
  },
];

/** What peers use over all their namespaces. Pods are watched for the offer anyway. */
export const GUESTS_RIGHTS: readonly Right[] = [
  {
    resource: 'persistentvolumeclaims',
    verbs: ['list', 'watch'],
    why: 'how much storage each peer has claimed over all its namespaces; no more than names and sizes are kept',
  },
];

/** What the guardian may do. Writes to pods and Leases are fenced (fences.ts), because RBAC knows nothing of labels. */
export const GUARDIAN_RIGHTS: readonly Right[] = [
  {
    resource: 'leases.coordination.k8s.io',
    verbs: ['create'],
    why: 'the Lease in each tenant namespace by which a home shows that it is there; fenced to that name and to tenants',
  },
  {
    resource: 'leases.coordination.k8s.io',
    names: [HOME_LEASE],
    verbs: ['list', 'watch'],
    why: 'whether the homes of our peers are there',
  },
  {
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'which are tenants, whose, and how long their pods outlive a home that does not come back',
  },
  {
    resource: 'pods',
    verbs: ['get', 'list', 'watch', 'create', 'delete'],
    why: 'of a peer whose home is away, and of no other: list, watch: what becomes of its pods; get: a pod is believed lost only after a read; create, delete: makes a lost one anew. Writes in tenants are fenced to pods of peers',
  },
  {
    resource: 'pods/status',
    verbs: ['patch'],
    why: 'puts the result of a finished pod back that was removed while its home was away; fenced to pods that never run',
  },
  {
    resource: 'nodes',
    verbs: ['get'],
    why: 'whether the node of a pod that does not end is gone or fenced',
  },
  {
    resource: 'peeringrequests.tributary.dev',
    verbs: ['get'],
    why: 'where it is said that a home is away',
  },
  {
    resource: 'peeringrequests.tributary.dev/status',
    verbs: ['patch'],
    why: 'that a home is away, since when, and what was done for its pods: the condition HomePresent',
  },
];

/** In tributary-peers, where no peer reads or writes. */
export const GUARDIAN_PEERS_RIGHTS: readonly Right[] = [
  {
    resource: 'secrets',
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
    why: 'the journal of the pods of a peer whose home is away; a Secret, as their environment may hold secrets. Nothing else is in this namespace but accounts',
  },
];

/** In each tenant namespace, and in no other. */
export const GUARDIAN_TENANT_RIGHTS: readonly Right[] = [
  {
    resource: 'pods/log',
    verbs: ['get'],
    why: 'keeps the end of the log of a pod that has ended while its home is away, with its result',
  },
];

/** In the namespace `default`, where events of cluster-scoped objects are. */
export const GUARDIAN_EVENT_RIGHTS: readonly Right[] = [
  eventRight('tells on a tenant namespace what its guardian does and what it cannot do'),
];
