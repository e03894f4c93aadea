import type { Right } from '../api/rbac.ts';

/** Of every role that looks for clusters (LAN, WAN and manual), in the whole cluster. */
export const SIGHTING_RIGHTS: readonly Right[] = [
  {
    resource: 'foreignclusters.tributary.dev',
    verbs: ['list', 'watch', 'create'],
    why: 'one for each cluster that is found',
  },
  {
    resource: 'foreignclusters.tributary.dev/status',
    verbs: ['patch'],
    why: 'where and until when it was seen',
  },
];

/** Further rights of the role that looks in DNS zones. */
export const WAN_RIGHTS: readonly Right[] = [
  { resource: 'searchdomains.tributary.dev', verbs: ['list', 'watch'], why: 'which zones to browse' },
  { resource: 'searchdomains.tributary.dev/status', verbs: ['patch'], why: 'what a look at them brought' },
];
