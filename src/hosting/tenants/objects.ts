import type * as models from '@kubernetes/client-node';

import { APP_NAME, LABEL_APP_NAME, type ManifestOf } from '../../api/manifest.ts';
import type { PodSecurityLevel } from '../../api/offer.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import type { Namespace, Stored } from '../../api/wire.ts';

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
