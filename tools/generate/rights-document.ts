/** docs/rights.md: the tables of rights as people read them. */
import { groupAndResource, type Right } from '../../src/api/rbac.ts';
import {
  CLUSTER_RIGHTS,
  GATEWAY_RIGHTS,
  NODE_ROLE_RIGHTS,
  type PlaceRights,
} from '../../src/deploy/rights/cluster.ts';
import {
  AGENT_AUTHENTICATION_RIGHTS,
  AGENT_CLUSTER_RIGHTS,
  AGENT_KUBECONFIG_RIGHTS,
  AGENT_LEASE_RIGHTS,
  AGENT_NAMESPACE_RIGHTS,
  AGENT_NODE_EVENT_RIGHTS,
  LAUNCHED_CLUSTER_RIGHTS,
  LAUNCHED_LEASE_RIGHTS,
  LAUNCHED_OWN_RIGHTS,
} from '../../src/deploy/rights/agent.ts';
import { TOKEN_RIGHTS } from '../../src/deploy/rights/one-process.ts';
import { UNINSTALL_RIGHTS } from '../../src/deploy/rights/uninstall.ts';
import { SETTINGS_RIGHTS } from '../../src/deploy/rights/settings.ts';
import { PEER_RIGHTS } from '../../src/hosting/tenants/peer-rights.ts';

const code = (text: string): string => `\`${text}\``;

function row({ names, verbs, why, ...right }: Right): string {
  const { group, resource } = groupAndResource(right);
  const of = names === undefined ? '' : ` ${names.map(code).join(', ')}`;
  const where = group === '' ? 'core' : group;
  return `| ${where} | ${code(resource)}${of} | ${verbs.join(', ')} | ${why} |`;
}

const table = (rights: readonly Right[]): string =>
  ['| group | resource | verbs | why |', '| --- | --- | --- | --- |', ...rights.map(row)].join('\n');

/** One table for each part in each place, because a reader wants to know what a right is for. */
const placesOf = (places: readonly PlaceRights[]): string =>
  places
    .map(({ namespace, parts }) => {
      const rows = parts.flatMap(({ part, rights }) => rights.map((right) => ({ part, right })));
      return [
        namespace === undefined ? 'Cluster-wide:' : `In ${code(namespace)}:`,
        '',
        '| part | group | resource | verbs | why |',
        '| --- | --- | --- | --- | --- |',
        ...rows.map(({ part, right }) => `| ${part} ${row(right)}`),
      ].join('\n');
    })
    .join('\n\n');

/** One table for each place. */
const joinedPlaces = (places: readonly PlaceRights[]): PlaceRights[] =>
  [...Map.groupBy(places, ({ namespace }) => namespace)].map(([namespace, same]) => ({
    ...(namespace !== undefined && { namespace }),
    parts: same.flatMap(({ parts }) => parts),
  }));

export const rightsDocument = (): string => `${agentsByHand()}${byThemselves()}`;

/** What people set up by hand, both sides. */
function agentsByHand(): string {
  return `<!-- Made by tools/generate.ts from the tables of rights in src/ (rights*.ts). -->

# Rights

This page lists everything that Tributary may do in a cluster, line by line. The Roles are made from the same tables, and
\`test/integration/rights.test.ts\` asks a real API server for every resource and verb that it knows. The server allows
these rights, those that Kubernetes gives every authenticated account (\`system:basic-user\`, \`system:discovery\`,
\`system:public-info-viewer\`, \`system:service-account-issuer-discovery\`: versions, health, the list of APIs, the public keys of the token issuer, and
questions about the own account), and nothing else.

## In the foreign cluster: what a peer may do

These are its rights in each of its tenant namespaces. It has no rights in other namespaces, and none cluster-wide.

${table(PEER_RIGHTS)}

What else protects the cluster from a peer:

- **Pod Security** \`baseline\` or \`restricted\` is enforced in tenant namespaces: no privileges, no host network,
  no host paths.
- A **ResourceQuota** limits CPU, memory, pods (finished ones too) and copied objects; a **LimitRange** gives
  requests to containers that have none. Limits of containers are bounded only if the quota says so
  (\`--quota limits.memory=16Gi\`).
- The **ValidatingAdmissionPolicy** \`tributary-tenant-pods\` refuses pods that choose their own node, that have a higher
  priority than permitted (annotation \`tributary.dev/max-priority\` of the namespace, default 0), or that tolerate
  taints which the provider has not opened, and all else of [this table](sharing.md#what-is-refused-and-by-which-policy). If the cluster has a default PriorityClass above 0, raise the annotation
  to its value.
- Four more policies restrict what a peer writes besides pods: \`tributary-tenant-services\` and \`-endpoints\` (no
  node ports, no external addresses, endpoints within the peer's own prefixes), \`tributary-tenant-ingresses\` (classes and
  hosts that the SharingPolicy offers, no default backend, annotations of a short list), and \`tributary-tenant-metadata\`
  (no finalizers, no owners, for objects of every kind).
- **Further kinds** that a SharingPolicy names (\`reflectableKinds\`) are in a Role of their own, \`tributary-peer-kinds\`, with the
  verbs list, watch, create, update and delete. It contains what people have given to the \`cluster\` role by ClusterRoles with
  the label \`tributary.dev/aggregate-to-lending: "true"\`, and never a kind that governs a cluster.
- The peer's **account lives in \`tributary-peers\`**. In a tenant namespace the peer could mount it into a pod, or
  get a token for it that never expires, with a Secret of type \`kubernetes.io/service-account-token\`. Keep no
  account with rights, and no Secret of your own, in a tenant namespace.
- Its **tokens expire**; deleting the account ends all of them at once.

## In the home cluster: what the agent of one virtual node may do

\`<node>\`, \`<virtual-node>\` and \`<secret>\` stand for this agent's own Node, VirtualNode and kubeconfig Secret.

Cluster-wide:

${table(AGENT_CLUSTER_RIGHTS)}

In each offloaded namespace:

${table(AGENT_NAMESPACE_RIGHTS)}

It also has the rules of all ClusterRoles with the label \`tributary.dev/aggregate-to-agents: "true"\`, which people make for
further kinds that are to be copied (list and watch are enough to read them). There are none at first.

In the namespace of its kubeconfig Secret:

${table(AGENT_KUBECONFIG_RIGHTS)}

In \`tributary-system\`:

${table(SETTINGS_RIGHTS)}

In \`kube-node-lease\`:

${table(AGENT_LEASE_RIGHTS)}

In \`default\`:

${table(AGENT_NODE_EVENT_RIGHTS)}

In \`kube-system\`, through the Role \`extension-apiserver-authentication-reader\` that Kubernetes ships:

${table(AGENT_AUTHENTICATION_RIGHTS)}

RBAC cannot express two restrictions. A **ValidatingAdmissionPolicy** for each agent, \`tributary-peer-<virtual-node>\`,
adds them: the agent may write to, and delete, pods on its own node only; and the only Node and Lease that it may create have
the name of its node. Reading pods stays cluster-wide, because pods of any namespace can be bound to a node (DaemonSets that
tolerate everything always are), and the agent has to refuse them and complete their deletion.

`;
}

/** What clusters do among themselves. */
function byThemselves(): string {
  return `## Agents that the \`cluster\` role starts

Each of them has its own account in \`tributary-agents\`, one for each foreign cluster. Their roles are static, applied with
the \`cluster\` role's manifests, and bound to all accounts of that namespace. Why: [decision 18](decisions/0018-agent-rights.md).

Cluster-wide:

${table(LAUNCHED_CLUSTER_RIGHTS)}

In each namespace that is offloaded to its provider:

${table(AGENT_NAMESPACE_RIGHTS)}

In \`tributary-system\`, by a Role of its own with the names filled in:

${table(LAUNCHED_OWN_RIGHTS)}

Likewise in \`tributary-system\`, by a Role that all of them share:

${table(SETTINGS_RIGHTS)}

In \`kube-node-lease\`:

${table(LAUNCHED_LEASE_RIGHTS)}

In \`default\`:

${table(AGENT_NODE_EVENT_RIGHTS)}

In \`kube-system\`:

${table(AGENT_AUTHENTICATION_RIGHTS)}

The **ValidatingAdmissionPolicy** \`tributary-agents\` restricts all of them: an agent may write to a Node, its Lease, a pod
on it or a VirtualNode only if its own Role gives it the verb \`serve\` for that name.

## In the home cluster: what the \`cluster\` role may do

${placesOf(CLUSTER_RIGHTS)}

It also has the rules of all ClusterRoles with the label \`tributary.dev/aggregate-to-lending: "true"\`, through
\`tributary-lending-kinds\`: it passes them on and does not use them. There are none at first.

People who have Kubernetes' own ClusterRole \`view\` (and so \`edit\` and \`admin\`) see our kinds by \`tributary-view\`, which is added to
it. No secret is in them. They change nothing by it, and no account of ours is bound to it.

RBAC cannot express all restrictions; four **ValidatingAdmissionPolicies** add them. \`tributary-lending\`: it makes, changes
and deletes only namespaces of tenants that it has made itself, and objects in them.
\`tributary-launching\`: it makes only accounts and Deployments of agents in \`tributary-agents\`, Roles of agents that name
kubeconfig Secrets and what is served, and binds \`tributary-agent-namespace\` and \`tributary-agent-kinds\` to agents only, never in a system namespace. \`tributary-kinds\`: it writes nothing outside the API groups of the table above. \`tributary-borrowing\`: it deletes virtual nodes only. The deletion of pods cannot be restricted in this way: a pod
names its node, but does not say what kind of node that is.

## In the home cluster: what the \`gateway\` role may do

With \`--network off\` the rights for tunnels and events are left out. A **ValidatingAdmissionPolicy** \`tributary-gateway\`
restricts \`create\`, which RBAC cannot do: to the names below, and Secrets to type Opaque, since Kubernetes would fill a Secret
of another type with the token of another account.

${placesOf(joinedPlaces(GATEWAY_RIGHTS))}

On its host: the network of the host, user 0, CAP_NET_ADMIN, and \`/dev/net/tun\` for wireguard-go, which has no account.
Why: [decision 24](decisions/0024-network-privileges.md).

## In the home cluster: what the \`node\` role may do

${placesOf(NODE_ROLE_RIGHTS)}

On its host: the network of the host, user 0 and CAP_NET_ADMIN.

## Where all roles are one process

With the value \`oneProcess\` the parts of the process act under the accounts above, with their rights and policies; the account of the gateway also has those of the
\`node\` role. The account of the \`cluster\` role, which is that of the pod, may get tokens of them. Why: [decision 94](decisions/0094-one-process.md).

${placesOf(TOKEN_RIGHTS)}

On its host: the same as the gateway.

## While a release of Helm is removed

\`helm uninstall\` first runs \`tributary uninstall --prepare\` as a Job, with the account \`tributary-uninstall\`. Helm makes this account and its
rights for the Job and removes them after it, also where it fails. A **ValidatingAdmissionPolicy** of the same name lets it delete only namespaces
that were made for peers. Why: [decision 65](decisions/0065-helm-uninstall-hook.md).

${placesOf(UNINSTALL_RIGHTS)}
`;
}
