/** What role `all` may do in a pod, beyond what its parts may do under their own accounts. */
import { AGENTS_NAMESPACE } from '../../api/manifest.ts';
import { NETWORK_NAMESPACE } from '../program.ts';
import {
  CLUSTER_RIGHTS,
  GATEWAY_NAME,
  GATEWAY_RIGHTS,
  LAN_GATEWAY_RIGHTS,
  NODE_ROLE_RIGHTS,
  type PlaceRights,
} from './cluster.ts';

/**
 * The process has one account by its pod. By these rights it gets tokens of the others, so that each part goes on acting under
 * its own, with the rights and fences of that one (docs/decisions/0094-one-process.md).
 */
export const TOKEN_RIGHTS: readonly PlaceRights[] = [
  {
    namespace: NETWORK_NAMESPACE,
    parts: [
      {
        part: 'one process',
        rights: [
          {
            resource: 'serviceaccounts/token',
            names: [GATEWAY_NAME],
            verbs: ['create'],
            why: 'the part that ends tunnels acts under the account of the gateway',
          },
        ],
      },
    ],
  },
  {
    namespace: AGENTS_NAMESPACE,
    parts: [
      {
        part: 'one process',
        rights: [
          {
            resource: 'serviceaccounts/token',
            verbs: ['create'],
            why: 'the agent of each peer acts under its own account; only accounts of agents are there',
          },
        ],
      },
    ],
  },
];

/** Of the account of role `cluster`. */
export const ONE_PROCESS_RIGHTS: readonly PlaceRights[] = [...CLUSTER_RIGHTS, ...TOKEN_RIGHTS];

/** Of the account of the gateway, which also routes for its node. */
export const oneProcessGatewayRights = (network: boolean): readonly PlaceRights[] =>
  network ? [...GATEWAY_RIGHTS, ...NODE_ROLE_RIGHTS] : LAN_GATEWAY_RIGHTS;
