import {
  GATEWAY_CONFIG_MAP,
  GATEWAY_LEASE,
  NETWORK_CONFIG_MAP,
  PRESHARED_HALVES_SECRET,
  PRESHARED_SECRET,
} from '../../api/own-network.ts';
import type { Right } from '../../api/rbac.ts';

/** Of the role `cluster`, cluster-wide. */
export const EXCHANGE_RIGHTS: readonly Right[] = [
  {
    resource: 'tunnels.tributary.dev',
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
    why: 'one for each peer: what it says of its end; addresses are read back at the start',
  },
  {
    resource: 'tunnels.tributary.dev/status',
    verbs: ['patch'],
    why: 'as what the prefixes of each peer are seen here',
  },
  {
    resource: 'foreignclusters.tributary.dev',
    verbs: ['list', 'watch'],
    why: 'with whom there is to be a network',
  },
  {
    resource: 'nodes',
    verbs: ['list', 'watch'],
    why: 'addresses of the nodes, and of the pods on each',
  },
  {
    resource: 'servicecidrs.networking.k8s.io',
    verbs: ['list', 'watch'],
    why: 'ranges of Services, which no peer may be seen as',
  },
];

/** In `default`. */
export const EXCHANGE_DEFAULT_RIGHTS: readonly Right[] = [
  {
    resource: 'endpointslices.discovery.k8s.io',
    names: ['kubernetes'],
    verbs: ['list', 'watch'],
    why: 'where the API servers are, for our pods that run at peers',
  },
];

/** In the system namespace. */
export const EXCHANGE_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'configmaps',
    verbs: ['create'],
    why: 'addresses of this cluster and its nodes, for the gateway and the nodes',
  },
  {
    resource: 'configmaps',
    names: [NETWORK_CONFIG_MAP],
    verbs: ['list', 'watch', 'patch'],
    why: 'keeps them as they are; each node keeps its address',
  },
  {
    resource: 'configmaps',
    names: [GATEWAY_CONFIG_MAP],
    verbs: ['list', 'watch'],
    why: 'the public half of the tunnel key and where the gateway can be dialled, for peers',
  },
  {
    resource: 'leases.coordination.k8s.io',
    names: [GATEWAY_LEASE],
    verbs: ['get'],
    why: 'whether a gateway runs: without one, what Tunnels say is not known to be true',
  },
  {
    resource: 'secrets',
    names: [PRESHARED_SECRET, PRESHARED_HALVES_SECRET],
    verbs: ['list', 'watch', 'patch'],
    why: 'preshared keys of the tunnels, and our halves of them',
  },
  { resource: 'secrets', verbs: ['create'], why: 'those Secrets are made with the first key' },
];
