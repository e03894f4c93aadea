/**
 * The tenant of a peering on which people agreed: the objects that let one peer, and only it, run pods in namespaces of this
 * cluster, within a quota and under Pod Security. `tributary tenant` prints them, and `kubectl apply` puts them in place.
 */
import { APP_NAME, checkedLabel, checkedUnique, LABEL_APP_NAME, type Manifest } from '../../api/manifest.ts';
import type { PodSecurityLevel } from '../../api/offer.ts';
import { CLUSTER_ACCOUNT, forgeGrant, rulesOf } from '../../api/rbac.ts';
import { LABEL_PEER, PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import type { ResourceList } from '../../api/wire.ts';
import {
  ANNOTATION_EXTENDED,
  ANNOTATION_KEEP_FOR,
  ANNOTATION_MAX_PRIORITY,
  annotationsOfTerms,
  DEFAULT_KEEP_FOR_SECONDS,
  extendedResources,
  type TenantTerms,
} from '../annotations.ts';
import { forgeTenantPolicies } from '../policies/policies.ts';
import { TributaryError } from '../../lib/errors.ts';
import { GUARDIAN_TENANT_RIGHTS } from '../rights.ts';
import { TENANT_LOGS_ROLE } from './contract-tenant.ts';
import type { Isolation, IsolationFacts } from './isolation.ts';
import { forgeAccount, forgePeersNamespace, forgeTenantNamespace } from './objects.ts';
import { PEER_RIGHTS } from './peer-rights.ts';
import { DEFAULT_QUOTA } from './quota.ts';
import { isReservedNamespace } from './reserved-names.ts';

export interface ManualTenant extends TenantTerms {
  /** What we call the peer; also the name of its account. */
  peer: string;
  /** Made for this peer alone. */
  namespaces: readonly string[];
  /** For each namespace. Default: DEFAULT_QUOTA. */
  quota?: ResourceList;
  /** Default `baseline`: no privileges, no host access. `restricted` also asks for non-root. */
  podSecurity?: PodSecurityLevel;
  /** How long its pods outlive a home that does not come back. Default: a day. */
  keepForSeconds?: number;
  /** Default `Tenant`: a NetworkPolicy keeps its pods apart from ours and those of other peers. */
  isolation?: Isolation;
  /** Addresses of this cluster, which its pods do not reach. Without them, every private range counts as ours. */
  ownCidrs?: readonly string[];
}

/** All objects of one tenant, in the order in which they must be applied. */
export function forgeManualTenant(tenant: ManualTenant): Manifest[] {
  const peer = checkedLabel('peer', tenant.peer);
  if (peer === 'default') {
    throw new TributaryError('Invalid', 'peer "default" is the name of an account that every namespace has');
  }
  if (tenant.namespaces.length === 0) throw new TributaryError('Invalid', 'no tenant namespace is given');
  checkedUnique('tenant namespace', tenant.namespaces);
  if ((tenant.storageClasses ?? []).length > 0 && tenant.quota?.['requests.storage'] === undefined) {
    throw new TributaryError(
      'Invalid',
      'storage classes are lent but no storage: say how much by requests.storage in the quota, as in requests.storage=10Gi',
    );
  }
  return [
    forgePeersNamespace(),
    forgeAccount(peer, PEERS_NAMESPACE, labelsOf(peer)),
    ...forgeTenantPolicies(),
    ...tenant.namespaces.flatMap((namespace) => forgeNamespaceOf({ ...tenant, peer }, namespace)),
  ];
}

function forgeNamespaceOf(tenant: ManualTenant, name: string): Manifest[] {
  checkedLabel('tenant namespace', name);
  if (isReservedNamespace(name)) {
    throw new TributaryError(
      'Invalid',
      `tenant namespace "${name}" is reserved: a peer could take over the cluster, or answer for names that are not its own`,
    );
  }
  const labels = labelsOf(tenant.peer);
  const quota = tenant.quota ?? DEFAULT_QUOTA;
  const account = { namespace: PEERS_NAMESPACE, name: tenant.peer };
  return [
    ...forgeTenantNamespace({
      name,
      labels,
      annotations: {
        [ANNOTATION_MAX_PRIORITY]: '0',
        [ANNOTATION_EXTENDED]: extendedResources(quota),
        ...annotationsOfTerms(tenant),
        [ANNOTATION_KEEP_FOR]: String(tenant.keepForSeconds ?? DEFAULT_KEEP_FOR_SECONDS),
      },
      podSecurity: tenant.podSecurity ?? 'baseline',
      quota,
      isolation: tenant.isolation === 'None' ? undefined : isolationFacts(tenant),
    }),
    ...forgeGrant({ name: 'tributary-peer', namespace: name, labels, account, rules: rulesOf(PEER_RIGHTS) }),
    ...forgeGrant({
      name: TENANT_LOGS_ROLE,
      namespace: name,
      labels,
      account: CLUSTER_ACCOUNT,
      rules: rulesOf(GUARDIAN_TENANT_RIGHTS),
    }),
  ];
}

/** A tenant made by hand has no tunnel, and so no prefixes of its home. */
const isolationFacts = ({ peer, ownCidrs }: ManualTenant): IsolationFacts => ({
  peer,
  prefixes: [],
  own: ownCidrs && { inside: ownCidrs, nodes: [], beside: [] },
});

const labelsOf = (peer: string): Record<string, string> => ({
  [LABEL_APP_NAME]: APP_NAME,
  [LABEL_PEER]: peer,
});
