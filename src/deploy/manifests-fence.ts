/** What RBAC cannot say: an agent writes to pods on its own node only, and makes no other Node and no other Lease. */
import { type PolicyPair, forgeFence, isAccount, writes } from '../api/fence.ts';
import type { AccountRef } from '../api/rbac.ts';
import { IS_STORAGE, storageValidations } from './fence-storage.ts';

/** The names are checked to be DNS names before, so that they can stand in an expression as they are. */
export function forgeAgentFence(options: {
  name: string;
  node: string;
  virtualNode: string;
  account: AccountRef;
  labels: Record<string, string>;
}): PolicyPair {
  const { name, node, virtualNode, account, labels } = options;
  const isPod = "request.resource.resource == 'pods'";
  return forgeFence({
    name,
    labels,
    user: isAccount(account),
    rules: [
      writes('', ['pods'], 'DELETE'),
      writes('', ['pods/status'], 'UPDATE'),
      writes('', ['nodes'], 'CREATE'),
      writes('coordination.k8s.io', ['leases'], 'CREATE'),
      writes('', ['persistentvolumes'], 'CREATE', 'UPDATE', 'DELETE'),
      writes('', ['persistentvolumeclaims'], 'UPDATE'),
    ],
    validations: [
      [
        `!(${isPod}) || oldObject.?spec.?nodeName.orValue('') == '${node}'`,
        `this agent may write to pods on node ${node} only`,
      ],
      [
        `${isPod} || ${IS_STORAGE} || object.metadata.name == '${node}'`,
        `this agent may make the Node and the Lease ${node} only`,
      ],
      ...storageValidations({
        isNode: (asked) => `${asked} == '${node}'`,
        isVirtualNode: (asked) => `${asked} == '${virtualNode}'`,
        // The agents of providers that were found are started by the `cluster` role, and fenced by name of account.
        isProvider: () => 'false',
      }),
    ],
  });
}
