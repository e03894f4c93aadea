/**
 * While Tributary is being uninstalled nothing new of its kinds may come: the label of a namespace would make a
 * NamespaceOffloading again, discovery a ForeignCluster, and a peer a PeeringRequest. One ConfigMap says so, to the API server
 * itself; the roles need not know.
 */
import {
  APP_NAME,
  LABEL_APP_NAME,
  type Manifest,
  type ManifestOf,
  SYSTEM_NAMESPACE,
} from '../../api/manifest.ts';
import { forgePolicy, writes } from '../../api/fence.ts';
import type { ConfigMap } from '../../api/wire.ts';

const NAME = 'tributary-uninstalling';
export const UNINSTALLING: Readonly<{ namespace: string; name: string }> = {
  namespace: SYSTEM_NAMESPACE,
  name: NAME,
};

/** It is in force while that ConfigMap is there. */
export function forgeUninstallFence(): Manifest[] {
  const [policy, binding] = forgePolicy(NAME, {
    paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    matchConstraints: { resourceRules: [writes('tributary.dev', ['*'], 'CREATE')] },
    validations: [
      {
        expression: 'false',
        message: 'Tributary is being uninstalled here; to keep it: tributary install',
        reason: 'Forbidden',
      },
    ],
  });
  return [
    policy,
    {
      ...binding,
      spec: { ...binding.spec, paramRef: { ...UNINSTALLING, parameterNotFoundAction: 'Allow' } },
    } as Manifest,
  ];
}

/** What puts it in force. */
export const forgeUninstalling = (): ManifestOf<ConfigMap> => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...UNINSTALLING, labels: { [LABEL_APP_NAME]: APP_NAME } },
  data: {},
});
