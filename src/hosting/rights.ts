import { HOME_LEASE } from '../api/names.ts';
import type { Right } from '../api/rbac.ts';

/** For the whole cluster: what peers use over all their namespaces. Pods are watched for the offer anyway. */
export const GUESTS_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'persistentvolumeclaims',
    verbs: ['list', 'watch'],
    why: 'how much storage each peer has claimed over all its namespaces; no more than names and sizes are kept',
  },
];

/** What the guardian may do in its own cluster. Writes to pods and Leases are fenced (fence.ts): RBAC cannot speak of labels. */
export const GUARDIAN_RIGHTS: readonly Right[] = [
  {
    group: 'coordination.k8s.io',
    resource: 'leases',
    verbs: ['create'],
    why: 'the Lease in each tenant namespace by which a home shows that it is there; fenced to that name and to tenants',
  },
  {
    group: 'coordination.k8s.io',
    resource: 'leases',
    names: [HOME_LEASE],
    verbs: ['list', 'watch'],
    why: 'whether the homes of our peers are there',
  },
  {
    group: '',
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'which are tenants, whose, and how long their pods outlive a home that does not come back',
  },
  {
    group: '',
    resource: 'pods',
    verbs: ['get', 'list', 'watch', 'create', 'delete'],
    why: 'of a peer whose home is away, and of no other: list, watch: what becomes of its pods; get: a pod is believed lost only after a read; create, delete: makes a lost one anew. Writes in tenants are fenced to pods of peers',
  },
  {
    group: '',
    resource: 'pods/status',
    verbs: ['patch'],
    why: 'puts the result of a finished pod back that was removed while its home was away; fenced to pods that never run',
  },
  {
    group: '',
    resource: 'nodes',
    verbs: ['get'],
    why: 'whether the node of a pod that does not end is gone or fenced',
  },
  {
    group: 'tributary.dev',
    resource: 'peeringrequests',
    verbs: ['get'],
    why: 'where it is said that a home is away',
  },
  {
    group: 'tributary.dev',
    resource: 'peeringrequests/status',
    verbs: ['patch'],
    why: 'that a home is away, since when, and what was done for its pods: the condition HomePresent',
  },
];

/** In tributary-peers, where no peer reads or writes. */
export const GUARDIAN_PEERS_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'secrets',
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
    why: 'the journal of the pods of a peer whose home is away; a Secret, as their environment may hold secrets. Nothing else is in this namespace but accounts',
  },
];

/** In the namespace `default`, where events of cluster-scoped objects are. */
export const GUARDIAN_EVENT_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'events',
    verbs: ['create', 'patch'],
    why: 'tells on a tenant namespace what its guardian does and what it cannot do',
  },
];
