import type { Right } from '../../api/rbac.ts';

/** What the cluster role needs, cluster-wide, for Services that one cluster uses of another; fence.ts bounds the writes. */
export const SERVICES_RIGHTS: readonly Right[] = [
  {
    resource: 'services',
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
    why: 'Services of ours that a SharingPolicy offers are read, namespace by namespace; home Services for those of providers that an AcceptancePolicy names are made and removed (RBAC cannot say "those that we made": a fence does)',
  },
  {
    resource: 'endpointslices.discovery.k8s.io',
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
    why: 'where the pods of those Services are; the endpoints of home Services',
  },
  {
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'which namespaces there are, and which are tenants of peers: nothing is offered of those, and no home Service is made in them',
  },
  {
    resource: 'sharingpolicies.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'which Services are offered',
  },
  {
    resource: 'advertisements.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'which providers a contract is in force with',
  },
  {
    resource: 'advertisements.tributary.dev/status',
    verbs: ['patch'],
    why: 'where each Service of a provider stands',
  },
];
