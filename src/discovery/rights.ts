import type { Right } from '../api/rbac.ts';

const group = 'tributary.dev';

/** Of every role that looks for clusters (LAN, WAN and manual), in the whole cluster. */
export const SIGHTING_RIGHTS: readonly Right[] = [
  {
    group,
    resource: 'foreignclusters',
    verbs: ['list', 'watch', 'create'],
    why: 'one for each cluster that is found',
  },
  { group, resource: 'foreignclusters/status', verbs: ['patch'], why: 'where and until when it was seen' },
];

/** Further rights of the role that looks in DNS zones. */
export const WAN_RIGHTS: readonly Right[] = [
  { group, resource: 'searchdomains', verbs: ['list', 'watch'], why: 'which zones to browse' },
  { group, resource: 'searchdomains/status', verbs: ['patch'], why: 'what a look at them brought' },
];
