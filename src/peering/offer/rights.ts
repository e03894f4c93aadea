import type { Right } from '../../api/rbac.ts';

/** What whoever lends has to see of its own cluster to know what is free. */
export const STOCK_RIGHTS: readonly Right[] = [
  {
    resource: 'nodes',
    verbs: ['list', 'watch'],
    why: 'what the real nodes have, and which of them take pods',
  },
  {
    resource: 'pods',
    verbs: ['list', 'watch'],
    why: 'requests of pods that run: what is free is what they leave; of peers, what they use of their contract',
  },
  {
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'which namespaces are tenants, by their label; metadata alone is read',
  },
  {
    resource: 'storageclasses.storage.k8s.io',
    verbs: ['list', 'watch'],
    why: 'storage classes that a SharingPolicy offers by name',
  },
  {
    resource: 'ingressclasses.networking.k8s.io',
    verbs: ['list', 'watch'],
    why: 'ingress classes that a SharingPolicy offers by name',
  },
  {
    resource: 'priorityclasses.scheduling.k8s.io',
    verbs: ['list', 'watch'],
    why: 'priority classes that a SharingPolicy offers by name: whether they push out pods of others',
  },
];
