import type { Right } from '../api/rbac.ts';

/** What the cluster role needs, cluster-wide, to stretch namespaces over clusters. */
export const OFFLOAD_RIGHTS: readonly Right[] = [
  {
    group: 'tributary.dev',
    resource: 'namespaceoffloadings',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'which namespaces are offloaded, and how; create and delete: those that a label of the namespace, or --offload-namespaces, stands for; patch: the finalizer, and the strategy of those',
  },
  {
    group: 'tributary.dev',
    resource: 'namespaceoffloadings/status',
    verbs: ['patch'],
    why: 'where each of them stands in each cluster',
  },
  {
    group: 'tributary.dev',
    resource: 'virtualnodes',
    verbs: ['list', 'watch'],
    why: 'which clusters are selected, and what they have been given',
  },
  {
    group: '',
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'labels of the short form, and what must never leave the cluster; metadata only',
  },
  {
    group: '',
    resource: 'pods',
    verbs: ['list', 'delete'],
    why: 'of namespaces that are, or were, offloaded: those on virtual nodes end when offloading does',
  },
  {
    group: '',
    resource: 'pods/eviction',
    verbs: ['create'],
    why: 'as PodDisruptionBudgets allow, as long as --drain-seconds says',
  },
];

/** Cluster-wide: news of NamespaceOffloadings, and of pods, is told in their own namespaces. */
export const OFFLOAD_EVENT_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'events',
    verbs: ['create', 'patch'],
    why: 'tells in an offloaded namespace, on the object that it is about, what became of it and of its pods',
  },
];
