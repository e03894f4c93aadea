/** The objects of which every tenant consists, whoever makes it. */
import type * as models from '@kubernetes/client-node';

import type { DefaultRequests } from '../../api/default-requests.ts';
import { APP_NAME, LABEL_APP_NAME, type Manifest, type ManifestOf } from '../../api/manifest.ts';
import type { PodSecurityLevel } from '../../api/offer.ts';
import type { ContainerLimits } from '../../api/sharing-policy.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import type { Namespace, ResourceList, Stored } from '../../api/wire.ts';
import { forgeIsolation, type IsolationFacts } from './isolation.ts';
import { forgeLimits, forgeQuota } from './quota.ts';

interface TenantNamespace {
  name: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  podSecurity: PodSecurityLevel;
  quota: ResourceList;
  /** Default: none. */
  defaultRequests?: DefaultRequests | undefined;
  /** Default: no bound. */
  containerLimits?: ContainerLimits | undefined;
  /** Undefined: its pods are not kept apart. */
  isolation: IsolationFacts | undefined;
}

/**
 * A tenant namespace and what bounds the pods in it, in the order in which the objects must be applied. Without the rights
 * of the peer, which come last.
 */
export const forgeTenantNamespace = (tenant: TenantNamespace): Manifest[] => {
  const { name, labels, quota, isolation } = tenant;
  return [
    forgeNamespace(tenant),
    forgeQuota(name, labels, quota),
    forgeLimits(name, labels, quota, tenant),
    forgeAccount('default', name, labels),
    ...(isolation === undefined ? [] : forgeIsolation(name, labels, isolation)),
  ];
};

const forgeNamespace = ({
  name,
  labels,
  annotations,
  podSecurity,
}: TenantNamespace): ManifestOf<Namespace> => ({
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
});

/** The namespace of the accounts of all peers. */
export function forgePeersNamespace(): ManifestOf<Namespace> {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: PEERS_NAMESPACE,
      labels: {
        [LABEL_APP_NAME]: APP_NAME,
        // No pod may run here.
        'pod-security.kubernetes.io/enforce': 'restricted',
      },
    },
  };
}

/** An account without a token in pods. Offloaded pods get no account here, so the `default` account of a tenant is one, too. */
export const forgeAccount = (
  name: string,
  namespace: string,
  labels: Record<string, string>,
): ManifestOf<Stored<models.V1ServiceAccount>> => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name, namespace, labels },
  automountServiceAccountToken: false,
});
