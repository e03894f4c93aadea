/**
 * The provider's side of a peering that was agreed on by people: the objects that let one peer, and only it, run
 * pods in namespaces of this cluster, within a quota and under Pod Security. Pure functions; `tributary tenant`
 * prints what they make, and `kubectl apply` puts it in place.
 */
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import {
  APP_NAME,
  LABEL_APP_NAME,
  checkedLabel,
  checkedUnique,
  type Manifest,
  type ManifestOf,
} from '../../api/manifest.ts';
import type { PodSecurityLevel } from '../../api/offer.ts';
import { forgeGrant, rulesOf } from '../../api/rbac.ts';
import type { Namespace, ResourceList, Stored } from '../../api/wire.ts';
import { TributaryError } from '../../lib/errors.ts';
import { PEER_RIGHTS } from './rights.ts';
import { ANNOTATION_KEEP_FOR } from './annotations.ts';
import { forgeIsolation, type Isolation, type IsolationFacts } from './isolation.ts';
import { DEFAULT_QUOTA, forgeLimits, forgeQuota } from './quota.ts';
import { DEFAULT_KEEP_FOR_SECONDS, annotationsOfTerms, type TenantTerms } from './terms.ts';
import { forgeTenantPolicies } from '../policies/policies.ts';
import { ANNOTATION_EXTENDED, ANNOTATION_MAX_PRIORITY, extendedResources } from '../policies/policy.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import type * as models from '@kubernetes/client-node';

/**
 * Peers' accounts live here and not in a tenant namespace: there a peer may create pods and Secrets, and so could
 * mount its own account or have a token made for it that never expires.
 */
export const PEERS_NAMESPACE = 'tributary-peers';

export type { PodSecurityLevel };

export interface Tenant extends TenantTerms {
  /** What we call the peer; names its account. */
  peer: string;
  /** Made for this peer alone. */
  namespaces: readonly string[];
  /** For each namespace; default: DEFAULT_QUOTA. */
  quota?: ResourceList;
  /** Default `baseline`: no privileges, no host access. `restricted` also asks for non-root. */
  podSecurity?: PodSecurityLevel;
  /** How long its pods outlive a home that does not come back. Default: a day. */
  keepForSeconds?: number;
  /** Default `Tenant`: a NetworkPolicy keeps its pods apart from ours and those of other peers. */
  isolation?: Isolation;
  /** Addresses of this cluster, which its pods do not reach; without them every private range is taken for ours. */
  ownCidrs?: readonly string[];
}

/** Namespaces that no peer is ever given: whoever creates pods there owns the cluster. */
export const isReservedNamespace = (name: string): boolean => name === 'default' || isClusterNamespace(name);

/** All objects of one tenant, in the order in which they must be applied. */
export function forgeTenant(tenant: Tenant): Manifest[] {
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
    forgePeerAccount(peer, labelsOf(peer)),
    ...forgeTenantPolicies(),
    ...tenant.namespaces.flatMap((namespace) => forgeTenantNamespace(namespace, { ...tenant, peer })),
  ];
}

function forgeTenantNamespace(name: string, tenant: Tenant): Manifest[] {
  checkedLabel('tenant namespace', name);
  if (isReservedNamespace(name)) {
    throw new TributaryError(
      'Invalid',
      `tenant namespace "${name}" is reserved: a peer could take over the cluster`,
    );
  }
  const labels = labelsOf(tenant.peer);
  const quota = tenant.quota ?? DEFAULT_QUOTA;
  const account = { namespace: PEERS_NAMESPACE, name: tenant.peer };
  return [
    forgeNamespace(name, labels, {
      podSecurity: tenant.podSecurity ?? 'baseline',
      annotations: {
        [ANNOTATION_MAX_PRIORITY]: '0',
        [ANNOTATION_EXTENDED]: extendedResources(quota),
        ...annotationsOfTerms(tenant),
        [ANNOTATION_KEEP_FOR]: String(tenant.keepForSeconds ?? DEFAULT_KEEP_FOR_SECONDS),
      },
    }),
    forgeQuota(name, labels, quota),
    forgeLimits(name, labels, quota),
    forgeDefaultAccount(name, labels),
    ...(tenant.isolation === 'None' ? [] : [forgeIsolation(name, labels, isolationFacts(tenant))]),
    ...forgeGrant({ name: 'tributary-peer', namespace: name, labels, account, rules: rulesOf(PEER_RIGHTS) }),
  ];
}

/** A tenant made by hand has no tunnel, and so no prefixes of its home. */
const isolationFacts = ({ peer, ownCidrs }: Tenant): IsolationFacts => ({
  peer,
  prefixes: [],
  own: ownCidrs && { inside: ownCidrs, nodes: [] },
});

const labelsOf = (peer: string): Record<string, string> => ({
  [LABEL_APP_NAME]: APP_NAME,
  [LABEL_PEER]: peer,
});

export function forgeNamespace(
  name: string,
  labels: Record<string, string>,
  { podSecurity, annotations }: { podSecurity: PodSecurityLevel; annotations: Record<string, string> },
): ManifestOf<Namespace> {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name,
      labels: {
        ...labels,
        'pod-security.kubernetes.io/enforce': podSecurity,
        'pod-security.kubernetes.io/enforce-version': 'latest',
        // For the administrator's audit log; `warn` would only repeat it to the peer on each write.
        'pod-security.kubernetes.io/audit': 'restricted',
        'pod-security.kubernetes.io/audit-version': 'latest',
      },
      annotations,
    },
  };
}

export function forgePeersNamespace(): ManifestOf<Namespace> {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: PEERS_NAMESPACE,
      labels: {
        [LABEL_APP_NAME]: APP_NAME,
        // No pod belongs here.
        'pod-security.kubernetes.io/enforce': 'restricted',
      },
    },
  };
}

export function forgePeerAccount(
  peer: string,
  labels: Record<string, string>,
): ManifestOf<Stored<models.V1ServiceAccount>> {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name: peer,
      namespace: PEERS_NAMESPACE,
      labels,
    },
    automountServiceAccountToken: false,
  };
}

/** Offloaded pods are nobody here: the account of the tenant namespace is not mounted into them. */
export function forgeDefaultAccount(
  namespace: string,
  labels: Record<string, string>,
): ManifestOf<Stored<models.V1ServiceAccount>> {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default', namespace, labels },
    automountServiceAccountToken: false,
  };
}
