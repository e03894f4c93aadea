import type { Right } from '../../api/rbac.ts';

/** For the whole cluster: what peers use over all their namespaces. Pods are watched for the offer anyway. */
export const GUESTS_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'persistentvolumeclaims',
    verbs: ['list', 'watch'],
    why: 'how much storage each peer has claimed over all its namespaces; no more than names and sizes are kept',
  },
];
