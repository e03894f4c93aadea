/**
 * What agents that the `cluster` role starts stand on, applied once by people: their namespace, their roles, and one
 * fence around them all. So the `cluster` role needs no right to make ClusterRoles, ClusterRoleBindings or policies.
 */
import { AGENT_LEASE_PREFIX } from '../api/agent-lease.ts';
import { isClusterNamespaceIn } from '../api/cluster-namespaces.ts';
import { forgeFence, isAccount, isAccountOf, writes } from '../api/fence.ts';
import {
  AGENT_NAME_PREFIX,
  AGENTS_NAMESPACE,
  APP_NAME,
  LABEL_APP_NAME,
  type Manifest,
  PEERS_NAME,
  SYSTEM_NAMESPACE,
} from '../api/manifest.ts';
import { LABEL_NODE_TYPE, NODE_TYPE_VIRTUAL } from '../api/names.ts';
import { forgeAggregate, forgeBinding, forgeGrant, LABEL_AGGREGATE_AGENTS, rulesOf } from '../api/rbac.ts';
import { forgeNamespace } from './program.ts';
import { IS_STORAGE, storageValidations } from './storage-fence.ts';
import {
  AGENT_NAMESPACE_RIGHTS,
  AGENT_NODE_EVENT_RIGHTS,
  LAUNCHED_CLUSTER_RIGHTS,
  LAUNCHED_LEASE_RIGHTS,
} from './rights/agent.ts';
import { SETTINGS_RIGHTS } from './rights/settings.ts';

const AGENT_USER_PREFIX = `system:serviceaccount:${AGENTS_NAMESPACE}:${AGENT_NAME_PREFIX}`;
const PEERS_USER = `system:serviceaccount:${AGENTS_NAMESPACE}:${PEERS_NAME}`;

/** Role of all of them, and the name of their fence. */
const AGENTS_ROLE = 'tributary-agents';
/** Bound in each offloaded namespace. */
export const AGENT_NAMESPACE_ROLE = 'tributary-agent-namespace';
/** Likewise, beside it: rights to further kinds, from ClusterRoles with LABEL_AGGREGATE_AGENTS. */
export const AGENT_KINDS_ROLE = 'tributary-agent-kinds';
/** Of those bindings, followed by the provider's ClusterID. */
export const AGENT_BINDING_PREFIX = 'tributary-agent-';

const labels = { [LABEL_APP_NAME]: APP_NAME };

/** In the order in which they must be applied. */
export function forgeAgentStatics(): Manifest[] {
  const account = { accountsOf: AGENTS_NAMESPACE };
  const grant = { name: AGENTS_ROLE, labels, account };
  const [namespaceRole] = forgeGrant({
    name: AGENT_NAMESPACE_ROLE,
    labels,
    account,
    rules: rulesOf(AGENT_NAMESPACE_RIGHTS),
  });
  return [
    forgeNamespace(AGENTS_NAMESPACE, 'restricted'),
    // Before the rights that it bounds.
    ...forgeAgentsFence(),
    ...forgeGrant({ ...grant, rules: rulesOf(LAUNCHED_CLUSTER_RIGHTS) }),
    ...forgeGrant({ ...grant, namespace: 'kube-node-lease', rules: rulesOf(LAUNCHED_LEASE_RIGHTS) }),
    ...forgeGrant({ ...grant, namespace: 'default', rules: rulesOf(AGENT_NODE_EVENT_RIGHTS) }),
    ...forgeGrant({ ...grant, namespace: SYSTEM_NAMESPACE, rules: rulesOf(SETTINGS_RIGHTS) }),
    forgeBinding(
      { kind: 'Role', name: 'extension-apiserver-authentication-reader' },
      { ...grant, namespace: 'kube-system' },
    ),
    namespaceRole,
    forgeAggregate(AGENT_KINDS_ROLE, { labels, label: LABEL_AGGREGATE_AGENTS }),
  ];
}

/**
 * One for all agents: whoever writes to a Node, its Lease, its pods or its VirtualNode must have been given the verb
 * `serve` for that name. RBAC keeps the names, in a Role for each agent; the API server asks itself (CEL `authorizer`).
 */
function forgeAgentsFence(): Manifest[] {
  const isPod = "request.resource.resource == 'pods'";
  const kind = "(request.resource.resource == 'virtualnodes' ? 'virtualnodes' : 'nodes')";
  // The Lease of the agent is named after its Node, like that of the Node itself.
  const name =
    `request.resource.resource == 'leases' && request.name.startsWith('${AGENT_LEASE_PREFIX}') ? ` +
    `request.name.substring(${AGENT_LEASE_PREFIX.length}) : request.name`;
  const serves = (resource: string, name: string): string =>
    `authorizer.group('tributary.dev').resource(${resource}).namespace('${SYSTEM_NAMESPACE}').name(${name})` +
    `.check('serve').allowed()`;
  return forgeFence({
    name: AGENTS_ROLE,
    user: isAccountOf(AGENTS_NAMESPACE),
    rules: [
      writes('', ['pods'], 'DELETE'),
      writes('', ['pods/status'], 'UPDATE'),
      writes('', ['nodes', 'nodes/status'], 'CREATE', 'UPDATE', 'DELETE'),
      writes('coordination.k8s.io', ['leases'], 'CREATE', 'UPDATE', 'DELETE'),
      writes('tributary.dev', ['virtualnodes', 'virtualnodes/status'], 'CREATE', 'UPDATE', 'DELETE'),
      writes('', ['persistentvolumes'], 'CREATE', 'UPDATE', 'DELETE'),
      writes('', ['persistentvolumeclaims'], 'UPDATE'),
    ],
    variables: { subject: `${isPod} ? oldObject.?spec.?nodeName.orValue('') : ${name}` },
    validations: [
      [
        `${IS_STORAGE} || (variables.subject != '' && ${serves(kind, 'variables.subject')})`,
        'an agent may write to the Nodes that it serves, their Leases and pods, and their VirtualNodes only',
      ],
      ...storageValidations({
        isNode: (name) => serves("'nodes'", name),
        isVirtualNode: (name) => serves("'virtualnodes'", name),
        isProvider: (clusterID) =>
          `(request.userInfo.username == '${AGENT_USER_PREFIX}' + ${clusterID} || ` +
          // It is the agent of every provider.
          `request.userInfo.username == '${PEERS_USER}')`,
      }),
    ],
  });
}

/** CEL: whether the `cluster` role writes to what belongs to an agent; what lending writes to is fenced elsewhere. */
export const IS_LAUNCHING: string =
  `(request.resource.resource in ['roles', 'rolebindings', 'serviceaccounts', 'deployments'] && ` +
  `(request.namespace in ['${AGENTS_NAMESPACE}', '${SYSTEM_NAMESPACE}'] || ` +
  `(request.resource.resource == 'rolebindings' && request.name.startsWith('${AGENT_BINDING_PREFIX}'))))`;

/** What the `cluster` role may make for agents: accounts and Deployments, their own Roles, and no other. */
export function forgeLaunchFence(account: { namespace: string; name: string }): Manifest[] {
  const of = (...resources: string[]): string =>
    `request.resource.resource in [${resources.map((name) => `'${name}'`).join(', ')}]`;
  const isIn = (namespace: string): string => `request.namespace == '${namespace}'`;
  const isHome = `!(request.namespace in ['${AGENTS_NAMESPACE}', '${SYSTEM_NAMESPACE}'])`;
  const bound = "has(object.subjects) && object.subjects.all(s, s.kind == 'ServiceAccount' && ";
  const namespaceRoles = `['${AGENT_NAMESPACE_ROLE}', '${AGENT_KINDS_ROLE}']`;
  const ofAgents = `s.?namespace.orValue('') == '${AGENTS_NAMESPACE}'`;
  return forgeFence({
    name: 'tributary-launching',
    user: isAccount(account),
    when: IS_LAUNCHING,
    rules: [
      writes('', ['serviceaccounts'], 'CREATE', 'UPDATE', 'DELETE'),
      writes('apps', ['deployments'], 'CREATE', 'UPDATE', 'DELETE'),
      writes('rbac.authorization.k8s.io', ['roles', 'rolebindings'], 'CREATE', 'UPDATE', 'DELETE'),
    ],
    validations: [
      [
        `${isHome} || request.name.startsWith('${AGENT_NAME_PREFIX}') || ` +
          `(request.name == '${PEERS_NAME}' && !(${of('roles', 'rolebindings')}))`,
        `what is made for an agent is named ${AGENT_NAME_PREFIX}..., or ${PEERS_NAME} for the one of all`,
      ],
      [
        `${isHome} || (${of('roles', 'rolebindings')} ? ${isIn(SYSTEM_NAMESPACE)} : ${isIn(AGENTS_NAMESPACE)})`,
        `accounts and Deployments of agents are in ${AGENTS_NAMESPACE}, their Roles in ${SYSTEM_NAMESPACE}`,
      ],
      [
        `!(${of('roles')}) || object == null || object.rules.all(r, has(r.resourceNames) && ` +
          `r.resourceNames.size() > 0 && r.verbs.all(v, v in ['get', 'list', 'watch', 'serve']) && ` +
          `r.resources.all(n, n in ['nodes', 'virtualnodes'] ? r.apiGroups == ['tributary.dev'] : ` +
          `(n == 'secrets' && r.resourceNames.all(s, s.startsWith('tributary-kubeconfig-')))))`,
        'the Role of an agent speaks of kubeconfig Secrets and of what it serves, by name, and of nothing else',
      ],
      [
        `!(${of('rolebindings')}) || ${isHome} || object == null || (object.roleRef.kind == 'Role' && ` +
          `object.roleRef.name == request.name && ${bound}${ofAgents} && s.name in [request.name, '${PEERS_NAME}']))`,
        'the Role of an agent is bound to that agent, or to the one of all',
      ],
      [
        `!(${of('rolebindings')}) || !(${isHome}) || object == null || (object.roleRef.kind == 'ClusterRole' && ` +
          `object.roleRef.name in ${namespaceRoles} && ${bound}${ofAgents}))`,
        `in offloaded namespaces ${AGENT_NAMESPACE_ROLE} and ${AGENT_KINDS_ROLE} may be bound, to agents, and nothing else`,
      ],
      [
        `!(${of('rolebindings')}) || !(${isHome}) || oldObject == null || ` +
          `oldObject.roleRef.name in ${namespaceRoles}`,
        `a binding of another role than ${AGENT_NAMESPACE_ROLE} and ${AGENT_KINDS_ROLE} is not an agent's`,
      ],
      [
        `!(${isHome}) || !${isClusterNamespaceIn('request.namespace')}`,
        "the cluster's own namespaces are not offloaded",
      ],
      [
        `!(${of('deployments')}) || object == null || ` +
          `object.spec.template.spec.?serviceAccountName.orValue('') == request.name`,
        'an agent runs under its own account',
      ],
    ],
  });
}

/** The `cluster` role may remove the Node of a peering that has ended if its agent did not, but no real Node. */
export function forgeNodeFence(account: { namespace: string; name: string }): Manifest[] {
  return forgeFence({
    name: 'tributary-borrowing',
    user: isAccount(account),
    rules: [writes('', ['nodes'], 'DELETE')],
    validations: [
      [
        `oldObject.metadata.?labels[?'${LABEL_NODE_TYPE}'].orValue('') == '${NODE_TYPE_VIRTUAL}'`,
        'only virtual nodes may be deleted',
      ],
    ],
  });
}
