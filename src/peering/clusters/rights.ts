import { eventRight, type Right } from '../../api/rbac.ts';

/** What the cluster role needs, cluster-wide, to keep ForeignClusters. */
export const CLUSTERS_RIGHTS: readonly Right[] = [
  {
    resource: 'foreignclusters.tributary.dev',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why:
      'create: for a peer that comes by itself; patch: its finalizer, and nothing else; delete: what nobody sees any ' +
      'more and nobody has said anything about',
  },
  {
    resource: 'foreignclusters.tributary.dev/status',
    verbs: ['patch'],
    why: 'link, where both peerings stand, and why; each writer patches its own fields',
  },
  {
    resource: 'acceptancepolicies.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'whom to ask by ourselves, and so whom to dial',
  },
  {
    resource: 'sharingpolicies.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'who may ask, and so whom to dial',
  },
  {
    resource: 'acceptancepolicies.tributary.dev/status',
    verbs: ['update'],
    why: 'about whom a policy decides, and what in it makes no sense',
  },
  eventRight('tells when a peering changes its phase'),
];

/** In the namespace that the program runs in. */
export const CLUSTERS_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'secrets',
    verbs: ['get', 'list', 'watch'],
    why:
      'join tokens and network keys that ForeignClusters and policies refer to; list and watch ask for metadata ' +
      'only, data is read of those alone that are referred to',
  },
];
