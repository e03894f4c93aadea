import type { Right } from '../../api/rbac.ts';
import { IDENTITY_NAME } from './store.ts';

/** In the project's own namespace, for the role `cluster`. */
export const IDENTITY_RIGHTS: readonly Right[] = [
  {
    resource: 'secrets',
    verbs: ['get'],
    names: [IDENTITY_NAME],
    why: 'the key that this cluster is known by',
  },
  { resource: 'secrets', verbs: ['create'], why: 'that key is made at the first start' },
  {
    resource: 'configmaps',
    verbs: ['get'],
    names: [IDENTITY_NAME],
    why: 'the ClusterID as it was recorded, so that a lost key is noticed',
  },
  { resource: 'configmaps', verbs: ['create'], why: 'that record is made at the first start' },
];
