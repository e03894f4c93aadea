import { CLUSTER_MODE } from '../../api/cluster-mode.ts';
import { eventRight, type Right } from '../../api/rbac.ts';
import { TETHER_POLICY } from './sharing-policy.ts';

/** What the cluster role needs, cluster-wide, to keep the mode of its cluster. */
export const MODE_RIGHTS: readonly Right[] = [
  {
    resource: 'clustermodes.tributary.dev',
    verbs: ['list', 'watch', 'create'],
    why: 'which mode people want; makes the one object where there is none, so that the mode can be seen',
  },
  {
    resource: 'clustermodes.tributary.dev/status',
    names: [CLUSTER_MODE],
    verbs: ['update'],
    why: 'the mode, and why it is so',
  },
  {
    resource: 'sharingpolicies.tributary.dev',
    verbs: ['create'],
    why: 'lends all to the cluster that this one is tethered to',
  },
  {
    resource: 'sharingpolicies.tributary.dev',
    names: [TETHER_POLICY],
    verbs: ['patch', 'delete'],
    why: 'keeps that policy as the tether says, and takes it back with the tether',
  },
  eventRight('tells when the mode changes'),
];
