import type { Right } from '../../api/rbac.ts';

/** What whoever lends has to see of its own cluster to know what is free. */
export const STOCK_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'nodes',
    verbs: ['list', 'watch'],
    why: 'what the real nodes have, and which of them take pods',
  },
  {
    group: '',
    resource: 'pods',
    verbs: ['list', 'watch'],
    why: 'requests of pods that run: what is free is what they leave; of peers, what they use of their contract',
  },
  {
    group: '',
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'which namespaces are tenants, by their label; metadata alone is read',
  },
  {
    group: 'storage.k8s.io',
    resource: 'storageclasses',
    verbs: ['list', 'watch'],
    why: 'storage classes that a SharingPolicy offers by name',
  },
  {
    group: 'networking.k8s.io',
    resource: 'ingressclasses',
    verbs: ['list', 'watch'],
    why: 'ingress classes that a SharingPolicy offers by name',
  },
];
