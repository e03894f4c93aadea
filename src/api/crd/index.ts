/**
 * The schemas of our kinds, from which `npm run generate` writes deploy/crds: one file per kind, beside it the
 * pieces of schema they share. Descriptions are written for `kubectl explain`, defaults and rules are enforced by
 * the API server, so an agent never meets an object that breaks them.
 */
import { acceptancePolicyDefinition } from './acceptance-policy.ts';
import { advertisementDefinition } from './advertisement.ts';
import { clusterModeDefinition } from './cluster-mode.ts';
import type { CustomResourceDefinition, Definition } from './definition.ts';
import { forgeDefinition } from './definition.ts';
import { foreignClusterDefinition } from './foreign-cluster.ts';
import { guestNetworkPolicyDefinition } from './guest-network-policy.ts';
import { namespaceOffloadingDefinition } from './namespace-offloading.ts';
import { peeringRequestDefinition } from './peering-request.ts';
import { searchDomainDefinition } from './search-domain.ts';
import { sharingPolicyDefinition } from './sharing-policy.ts';
import { tunnelDefinition } from './tunnel.ts';
import { virtualNodeDefinition } from './virtual-node.ts';

export type { CustomResourceDefinition } from './definition.ts';

/** Every kind of ours, in the order in which they are applied. */
export const DEFINITIONS: readonly Definition[] = [
  virtualNodeDefinition,
  foreignClusterDefinition,
  searchDomainDefinition,
  sharingPolicyDefinition,
  acceptancePolicyDefinition,
  peeringRequestDefinition,
  advertisementDefinition,
  tunnelDefinition,
  namespaceOffloadingDefinition,
  clusterModeDefinition,
  guestNetworkPolicyDefinition,
];

export const customResourceDefinitions = (): CustomResourceDefinition[] => DEFINITIONS.map(forgeDefinition);
