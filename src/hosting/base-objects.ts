/** What hosting needs before there is any peer. People apply it with the manifests of role `cluster`. */
import type * as models from '@kubernetes/client-node';

import { APP_NAME, LABEL_APP_NAME, type Manifest, type ManifestOf } from '../api/manifest.ts';
import {
  type AccountRef,
  forgeAggregate,
  forgeBinding,
  LABEL_AGGREGATE_LENDING,
  RBAC_VERSION,
  type Right,
  rulesOf,
} from '../api/rbac.ts';
import type { Stored } from '../api/wire.ts';
import { forgeTenantPolicies } from './policies/policies.ts';
import { PEERS_PRIORITY_LEVEL, TENANT_LOGS_ROLE, TENANT_ROLE } from './tenants/contract-tenant.ts';
import { forgeLendingFence } from './fences.ts';
import { forgePeersNamespace } from './tenants/objects.ts';
import { GUARDIAN_TENANT_RIGHTS } from './rights.ts';
import { PEER_RIGHTS } from './tenants/peer-rights.ts';

type PriorityLevel = Stored<models.V1PriorityLevelConfiguration>;

/** Rights to further kinds, which are only passed on to peers. People add them by ClusterRoles with LABEL_AGGREGATE_LENDING. */
const LENDING_KINDS_ROLE = 'tributary-lending-kinds';

const labels = { [LABEL_APP_NAME]: APP_NAME };

/**
 * `account`: that of role `cluster`. `elsewhere`: CEL, in parentheses, for its writes that another fence bounds. In the order in
 * which the objects must be applied.
 */
export function forgeHostingBase(account: AccountRef, elsewhere?: string): Manifest[] {
  return [
    forgePeersNamespace(),
    forgeRole(TENANT_ROLE, PEER_RIGHTS),
    forgeRole(TENANT_LOGS_ROLE, GUARDIAN_TENANT_RIGHTS),
    ...forgeTenantPolicies(),
    ...forgeLendingFence(account, elsewhere),
    forgeAggregate(LENDING_KINDS_ROLE, { labels, label: LABEL_AGGREGATE_LENDING }),
    forgeBinding(
      { kind: 'ClusterRole', name: LENDING_KINDS_ROLE },
      { name: LENDING_KINDS_ROLE, labels, account },
    ),
    forgePriorityLevel(),
  ];
}

/** To be bound in tenants. */
const forgeRole = (name: string, rights: readonly Right[]): ManifestOf<Stored<models.V1ClusterRole>> => ({
  apiVersion: RBAC_VERSION,
  kind: 'ClusterRole',
  metadata: { name, labels },
  rules: rulesOf(rights),
});

/**
 * 20 shares, where `workload-low` has 100. Half of them may be lent to others while peers are quiet; peers borrow none from
 * others. Each peer has queues of its own (shuffle sharding), so that one that floods does not delay the rest.
 */
function forgePriorityLevel(): ManifestOf<PriorityLevel> {
  return {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'PriorityLevelConfiguration',
    metadata: { name: PEERS_PRIORITY_LEVEL, labels },
    spec: {
      type: 'Limited',
      limited: {
        nominalConcurrencyShares: 20,
        lendablePercent: 50,
        borrowingLimitPercent: 0,
        limitResponse: { type: 'Queue', queuing: { queues: 64, handSize: 6, queueLengthLimit: 50 } },
      },
    },
  };
}
