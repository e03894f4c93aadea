/** docs/rights.md: the tables of rights as people read them. */
import type { Right } from '../../src/api/rbac.ts';
import { PEER_RIGHTS } from '../../src/peering/rights.ts';
import { CLUSTER_RIGHTS, CLUSTER_SYSTEM_RIGHTS } from '../../src/provider/agent/manifests-cluster.ts';
import {
  AGENT_AUTHENTICATION_RIGHTS,
  AGENT_CLUSTER_RIGHTS,
  AGENT_KUBECONFIG_RIGHTS,
  AGENT_LEASE_RIGHTS,
  AGENT_NAMESPACE_RIGHTS,
  AGENT_NODE_EVENT_RIGHTS,
} from '../../src/provider/agent/rights.ts';

const code = (text: string): string => `\`${text}\``;

function row({ group, resource, names, verbs, why }: Right): string {
  const of = names === undefined ? '' : ` ${names.map(code).join(', ')}`;
  const where = group === '' ? 'core' : group;
  return `| ${where} | ${code(resource)}${of} | ${verbs.join(', ')} | ${why} |`;
}

const table = (rights: readonly Right[]): string =>
  ['| group | resource | verbs | why |', '| --- | --- | --- | --- |', ...rights.map(row)].join('\n');

export function rightsDocument(): string {
  return `<!-- Made by tools/generate.ts from src/peering/rights.ts, src/provider/agent/rights.ts and src/provider/agent/manifests-cluster.ts. -->

# Rights

Everything that Tributary may do in a cluster, line by line. The Roles are forged from the same tables, and
\`test/integration/rights.test.ts\` asks a real API server for every resource and verb it knows: what it allows is
this, plus what Kubernetes allows every authenticated account (\`system:basic-user\`, \`system:discovery\`,
\`system:public-info-viewer\`, \`system:service-account-issuer-discovery\`: versions, health, the list of APIs, the public keys of the token issuer, and
questions about oneself), and nothing else.

## In the foreign cluster: what a peer may do

In each of its tenant namespaces. Nothing in any other namespace, nothing cluster-wide.

${table(PEER_RIGHTS)}

What else stands between a peer and the cluster:

- **Pod Security** \`baseline\` or \`restricted\` is enforced in tenant namespaces: no privileges, no host network,
  no host paths.
- A **ResourceQuota** bounds CPU, memory, pods (finished ones too) and copied objects; a **LimitRange** gives
  requests to containers that name none. Limits are bounded only where the quota says so
  (\`--quota limits.memory=16Gi\`).
- The **ValidatingAdmissionPolicy** \`tributary-tenants\` refuses pods that choose their own node, that outrank the
  cluster's own (annotation \`tributary.dev/max-priority\` of the namespace, default 0), or that tolerate
  control-plane taints or all taints. Where the cluster has a default PriorityClass above 0, raise the annotation
  to its value.
- The peer's **account lives in \`tributary-peers\`**. In a tenant namespace the peer could mount it into a pod, or
  have a token for it made that never expires, by a Secret of type \`kubernetes.io/service-account-token\`. Keep no
  account with rights, and no Secret of your own, in a tenant namespace.
- Its **tokens expire**; deleting the account ends all of them at once.

## In the home cluster: what the agent of one virtual node may do

\`<node>\`, \`<virtual-node>\` and \`<secret>\` stand for this agent's own Node, VirtualNode and kubeconfig Secret.

Cluster-wide:

${table(AGENT_CLUSTER_RIGHTS)}

In each offloaded namespace:

${table(AGENT_NAMESPACE_RIGHTS)}

In the namespace of its kubeconfig Secret:

${table(AGENT_KUBECONFIG_RIGHTS)}

In \`kube-node-lease\`:

${table(AGENT_LEASE_RIGHTS)}

In \`default\`:

${table(AGENT_NODE_EVENT_RIGHTS)}

In \`kube-system\`, through the Role \`extension-apiserver-authentication-reader\` that Kubernetes ships:

${table(AGENT_AUTHENTICATION_RIGHTS)}

Two things that RBAC cannot say are said by a **ValidatingAdmissionPolicy** for each agent, \`tributary-peer-<virtual-node>\`:
it may write to, and delete, pods on its own node only; and the only Node and Lease that it may create bear its
node's name. Reading pods stays cluster-wide, because pods of any namespace can be bound to a node (DaemonSets with a
blanket toleration always are), and somebody has to refuse them and let their deletion complete.

## In the home cluster: what the \`cluster\` role may do

Cluster-wide:

${table(CLUSTER_RIGHTS)}

In \`tributary-system\`:

${table(CLUSTER_SYSTEM_RIGHTS)}
`;
}
