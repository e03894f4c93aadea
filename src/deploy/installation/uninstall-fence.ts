/**
 * While Tributary is being uninstalled nothing new of its kinds may come: the label of a namespace would make a
 * NamespaceOffloading again, discovery a ForeignCluster, and a peer a PeeringRequest. An admission policy says so to the API
 * server itself; the roles need not know. It is installed open and closed by `uninstall`, in its expression: an API server that has
 * stopped to watch the parameters of a policy, because the policy was deleted, never sees them again.
 */
import { forgePolicy, writes } from '../../api/fence.ts';
import type { Manifest } from '../../api/manifest.ts';

export const UNINSTALL_FENCE = 'tributary-uninstalling';

export const forgeUninstallFence = (door: 'open' | 'closed' = 'open'): Manifest[] =>
  forgePolicy(UNINSTALL_FENCE, {
    matchConstraints: { resourceRules: [writes('tributary.dev', ['*'], 'CREATE')] },
    validations: [
      {
        expression: door === 'open' ? 'true' : 'false',
        message: 'Tributary is being uninstalled here; to keep it: tributary install, or helm rollback',
        reason: 'Forbidden',
      },
    ],
  });
