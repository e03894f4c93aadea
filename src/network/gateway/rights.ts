import {
  GATEWAY_CONFIG_MAP,
  NETWORK_CONFIG_MAP,
  PRESHARED_SECRET,
  WIREGUARD_SECRET,
} from '../../api/own-network.ts';
import { eventRight, type Right } from '../../api/rbac.ts';

/** Of the active gateway, cluster-wide. */
export const GATEWAY_NETWORK_RIGHTS: readonly Right[] = [
  {
    resource: 'tunnels.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'which networks are to be joined, and as what each is seen',
  },
  {
    resource: 'tunnels.tributary.dev/status',
    verbs: ['patch'],
    why: 'what was measured through each tunnel, and what is wrong with it',
  },
  {
    resource: 'virtualnodes.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'which nodes stand for which peer',
  },
  {
    resource: 'pods',
    verbs: ['list', 'watch'],
    why: 'addresses of offloaded pods and of peers’ pods here: what may pass between them; and on which node each pod of this cluster is',
  },
  {
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'which namespaces are those of which peer',
  },
];

/** Of the active gateway, in the system namespace. */
export const GATEWAY_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'configmaps',
    names: [NETWORK_CONFIG_MAP],
    verbs: ['list', 'watch'],
    why: 'addresses of this cluster and of its nodes',
  },
  {
    resource: 'configmaps',
    verbs: ['create'],
    why: 'the public half of the tunnel key and where it can be dialled, for the cluster role',
  },
  {
    resource: 'configmaps',
    names: [GATEWAY_CONFIG_MAP],
    verbs: ['list', 'watch', 'patch'],
    why: 'keeps it as it is; finds a wish for a new key there',
  },
  { resource: 'secrets', verbs: ['create'], why: 'keeps the private key of the tunnels' },
  {
    resource: 'secrets',
    names: [WIREGUARD_SECRET],
    verbs: ['list', 'watch', 'update'],
    why: 'reads it, and replaces it on request',
  },
  {
    resource: 'secrets',
    names: [PRESHARED_SECRET],
    verbs: ['list', 'watch'],
    why: 'preshared keys of the tunnels',
  },
];

/** Of the active gateway, in `default`, where the events of cluster-scoped objects are. */
export const GATEWAY_EVENT_RIGHTS: readonly Right[] = [
  eventRight('tells when a tunnel works and when it does not'),
];
