import { eventRight, type Right } from '../api/rbac.ts';

/** What the cluster role needs, cluster-wide, to offload namespaces. */
export const OFFLOAD_RIGHTS: readonly Right[] = [
  {
    resource: 'namespaceoffloadings.tributary.dev',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'which namespaces are offloaded, and how; create and delete: those that a label of the namespace, or --offload-namespaces, stands for; patch: the finalizer, and the strategy of those',
  },
  {
    resource: 'namespaceoffloadings.tributary.dev/status',
    verbs: ['patch'],
    why: 'where each of them stands in each cluster',
  },
  {
    resource: 'virtualnodes.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'which clusters are selected, and what they have been given',
  },
  {
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'labels of the short form, and what must never leave the cluster; metadata only',
  },
  {
    resource: 'pods',
    verbs: ['list', 'delete'],
    why: 'of namespaces that are, or were, offloaded: those on virtual nodes end when offloading does; those on real nodes are counted; those that wait for a node are looked at when a virtual node that they were kept off is back; those that the webhook has just let in, where there is something to tell on them',
  },
  {
    resource: 'pods/eviction',
    verbs: ['create'],
    why: 'as PodDisruptionBudgets allow, as long as --drain-seconds says; those on real nodes where the NamespaceOffloading says existingPods: Move; those that wait for a node and are kept off one that could take them by now',
  },
];

/** Cluster-wide: news of NamespaceOffloadings, and of pods, is told in their own namespaces. */
export const OFFLOAD_EVENT_RIGHTS: readonly Right[] = [
  eventRight(
    'tells in an offloaded namespace, on the object that it is about, what became of it and of its pods',
  ),
];

/** What the cluster role needs, cluster-wide, to release pods that a foreign cluster cannot place. */
export const RELEASE_RIGHTS: readonly Right[] = [
  {
    resource: 'pods',
    verbs: ['get', 'list', 'watch', 'create', 'delete'],
    why: 'list, watch: pods on virtual nodes, one watch for each, by node name; delete: those that cannot be placed there, by UID; get, create: one without a controller is made anew, in namespaces with a NamespaceOffloading only',
  },
  {
    resource: 'pods/eviction',
    verbs: ['create'],
    why: 'a pod without a controller leaves a cluster as its PodDisruptionBudget allows before it is made anew',
  },
  {
    resource: 'pods/status',
    verbs: ['patch'],
    why: 'says that a pod is disrupted (DisruptionTarget) before it is released, so that a Job does not take it for a failure of its own',
  },
  {
    resource: 'virtualnodes.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'on which Nodes pods may have to be released',
  },
  {
    resource: 'namespaceoffloadings.tributary.dev/status',
    verbs: ['patch'],
    why: 'which owners are held off which virtual nodes, and until when',
  },
];

/** What the cluster role needs, cluster-wide, to do with pods of a foreign cluster that is away as their namespaces say. */
export const AWAY_RIGHTS: readonly Right[] = [
  {
    resource: 'nodes',
    verbs: ['list', 'watch'],
    why: 'which virtual nodes are not ready',
  },
  {
    resource: 'pods',
    verbs: ['list', 'patch', 'delete'],
    why: 'of virtual nodes that are not ready, by node name: how long they stay there (two tolerations; fenced to these); delete: those that their namespace lets move, by UID',
  },
  {
    resource: 'namespaceoffloadings.tributary.dev/status',
    verbs: ['patch'],
    why: 'that new pods are kept on real nodes, and until when',
  },
];

/** In our own namespace. */
export const RELEASE_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'secrets',
    verbs: ['list', 'watch', 'create', 'delete'],
    why: 'the manifest of a pod without a controller, `tributary-remake-<uid>`, from before it is deleted until it is made anew; a Secret, as its environment may hold secrets',
  },
];

/** Cluster-wide: in the namespaces of the pods. */
export const RELEASE_EVENT_RIGHTS: readonly Right[] = [
  eventRight('tells on the pod why it was released and where it may go'),
];
