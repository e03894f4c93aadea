import type { Right } from '../../api/rbac.ts';

/** What the cluster role needs, cluster-wide, to release pods that a foreign cluster cannot place. */
export const RELEASE_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'pods',
    verbs: ['get', 'list', 'watch', 'create', 'delete'],
    why: 'list, watch: pods on virtual nodes, one watch for each, by node name; delete: those that cannot be placed there, by UID; get, create: one without an owner is made anew, in namespaces with a NamespaceOffloading only',
  },
  {
    group: '',
    resource: 'pods/eviction',
    verbs: ['create'],
    why: 'a pod without an owner leaves a cluster as its PodDisruptionBudget allows before it is made anew',
  },
  {
    group: '',
    resource: 'pods/status',
    verbs: ['patch'],
    why: 'says that a pod is disrupted (DisruptionTarget) before it is released, so that a Job does not take it for a failure of its own',
  },
  {
    group: 'tributary.dev',
    resource: 'virtualnodes',
    verbs: ['list', 'watch'],
    why: 'on which Nodes pods may have to be released',
  },
  {
    group: 'tributary.dev',
    resource: 'namespaceoffloadings/status',
    verbs: ['patch'],
    why: 'which owners are held off which virtual nodes, and until when',
  },
];

/** In our own namespace. */
export const RELEASE_SYSTEM_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'secrets',
    verbs: ['list', 'watch', 'create', 'delete'],
    why: 'the manifest of a pod without an owner, `tributary-remake-<uid>`, from before it is deleted until it is made anew; a Secret, as its environment may hold secrets',
  },
];

/** Cluster-wide: in the namespaces of the pods. */
export const RELEASE_EVENT_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'events',
    verbs: ['create', 'patch'],
    why: 'tells on the pod why it was released and where it may go',
  },
];
