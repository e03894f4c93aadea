import { GATEWAY_CONFIG_MAP, GATEWAY_LEASE, NETWORK_CONFIG_MAP } from '../../api/own-network.ts';
import type { Right } from '../../api/rbac.ts';

/** Of role `node`, cluster-wide. */
export const NODE_RIGHTS: readonly Right[] = [
  {
    resource: 'tunnels.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'which addresses are reached through the gateway',
  },
];

/** Of role `node`, in the system namespace. */
export const NODE_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'configmaps',
    names: [NETWORK_CONFIG_MAP],
    verbs: ['list', 'watch'],
    why: 'addresses of this cluster and of its nodes',
  },
  {
    resource: 'configmaps',
    names: [GATEWAY_CONFIG_MAP],
    verbs: ['list', 'watch'],
    why: 'on which node the gateway is active',
  },
  {
    resource: 'leases.coordination.k8s.io',
    names: [GATEWAY_LEASE],
    verbs: ['list', 'watch'],
    why: 'where a gateway of an earlier version is active',
  },
];
