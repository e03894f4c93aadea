/**
 * The home side of one virtual node, as objects to apply: an account with no more rights than its table says, the
 * fence around them, and the agent's Deployment. Pure functions; `tributary manifests peer` prints what they make.
 */
import { agentLeaseName } from '../api/agent-lease.ts';
import { isClusterNamespace } from '../api/cluster-namespaces.ts';
import { forgeFence, isAccount, type PolicyPair, writes } from '../api/fence.ts';
import {
  AGENT_NAME_PREFIX,
  checkedLabel,
  checkedSubdomain,
  checkedUnique,
  type Manifest,
  MAX_VIRTUAL_NODE_NAME,
  SYSTEM_NAMESPACE,
} from '../api/manifest.ts';
import { LABEL_VIRTUAL_NODE } from '../api/names.ts';
import {
  type AccountRef,
  forgeAggregate,
  forgeBinding,
  forgeGrant,
  LABEL_AGGREGATE_AGENTS,
  type Right,
  rulesOf,
} from '../api/rbac.ts';
import type { KubeconfigSecretRef } from '../api/virtual-node.ts';
import { TributaryError } from '../lib/errors.ts';
import { IS_STORAGE, storageValidations } from './storage-fence.ts';
import { checkedImage, forgeDeployment, KUBELET_PORT, labelsOf, OPS_PORT } from './program.ts';
import {
  AGENT_CLUSTER_RIGHTS,
  AGENT_KUBECONFIG_RIGHTS,
  AGENT_LEASE_RIGHTS,
  AGENT_NAMESPACE_RIGHTS,
  AGENT_NODE_EVENT_RIGHTS,
} from './rights/agent.ts';
import { SETTINGS_RIGHTS } from './rights/settings.ts';

export interface AgentOptions {
  virtualNode: string;
  /** Name of the Node; default: as the VirtualNode. */
  node?: string;
  /** The offloaded home namespaces. */
  namespaces: readonly string[];
  image: string;
  kubeconfigSecret: Pick<KubeconfigSecretRef, 'namespace' | 'name'>;
  priorityClassName?: string;
}

type Names = AgentOptions & { node: string; account: AccountRef; labels: Record<string, string> };

/** All objects of one agent, in the order in which they must be applied. */
export function forgeAgent(options: AgentOptions): Manifest[] {
  const names = checkedNames(options);
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...names.account, labels: names.labels } },
    ...forgeAgentFence(names),
    ...forgeAgentGrants(names),
    forgeDeployment({
      ...names,
      args: ['run', 'peer', '--virtual-node', options.virtualNode],
      ports: { kubelet: KUBELET_PORT, ops: OPS_PORT },
      memoryLimit: '512Mi',
    }),
  ];
}

function checkedNames(options: AgentOptions): Names {
  const virtualNode = checkedLabel('virtual node', options.virtualNode, MAX_VIRTUAL_NODE_NAME);
  const node = checkedSubdomain('node', options.node ?? virtualNode);
  checkedLabel('namespace of the kubeconfig Secret', options.kubeconfigSecret.namespace);
  checkedSubdomain('kubeconfig Secret', options.kubeconfigSecret.name, 253);
  for (const namespace of checkedUnique('namespace', options.namespaces)) {
    checkedLabel('namespace', namespace);
    if (isClusterNamespace(namespace)) {
      throw new TributaryError(
        'Invalid',
        `namespace "${namespace}" is the cluster's own and cannot be offloaded`,
      );
    }
  }
  checkedImage(options.image);
  const name = `${AGENT_NAME_PREFIX}${virtualNode}`;
  return {
    ...options,
    node,
    account: { namespace: SYSTEM_NAMESPACE, name },
    labels: { ...labelsOf(name), [LABEL_VIRTUAL_NODE]: virtualNode },
  };
}

/** Narrow rights in many places rather than wide ones in one: each namespace can be taken back by itself. */
function forgeAgentGrants(names: Names): Manifest[] {
  const { account, labels, node, virtualNode, kubeconfigSecret } = names;
  const kinds = `${account.name}-kinds`;
  const placeholders = { node, 'virtual-node': virtualNode, secret: kubeconfigSecret.name };
  const grant = (rights: readonly Right[], namespace?: string, suffix = ''): Manifest[] =>
    forgeGrant({
      name: `${account.name}${suffix}`,
      ...(namespace !== undefined && { namespace }),
      labels,
      account,
      rules: rulesOf(rights, placeholders),
    });
  return [
    ...grant(AGENT_CLUSTER_RIGHTS),
    ...grant(AGENT_LEASE_RIGHTS, 'kube-node-lease'),
    forgeBinding(
      { kind: 'Role', name: 'extension-apiserver-authentication-reader' },
      { name: account.name, namespace: 'kube-system', labels, account },
    ),
    // A name of its own: the namespace of the Secret may be `default`, or be offloaded as well.
    ...grant(AGENT_KUBECONFIG_RIGHTS, kubeconfigSecret.namespace, '-kubeconfig'),
    ...grant(AGENT_NODE_EVENT_RIGHTS, 'default', '-events'),
    ...grant(SETTINGS_RIGHTS, SYSTEM_NAMESPACE, '-settings'),
    ...names.namespaces.flatMap((namespace) => grant(AGENT_NAMESPACE_RIGHTS, namespace)),
    // Each agent has its own, so that it is deleted with the agent.
    forgeAggregate(kinds, { labels, label: LABEL_AGGREGATE_AGENTS }),
    ...names.namespaces.map((namespace) =>
      forgeBinding({ kind: 'ClusterRole', name: kinds }, { name: kinds, namespace, labels, account }),
    ),
  ];
}

/**
 * What RBAC cannot say: an agent writes to pods on its own node only, and makes no other Node and no other Lease. The names
 * were checked to be DNS names before, so they can stand in an expression as they are.
 */
function forgeAgentFence({ node, virtualNode, account, labels }: Names): PolicyPair {
  const isPod = "request.resource.resource == 'pods'";
  return forgeFence({
    name: account.name,
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
        `${isPod} || ${IS_STORAGE} || object.metadata.name == '${node}' || ` +
          `(request.resource.resource == 'leases' && object.metadata.name == '${agentLeaseName(node)}')`,
        `this agent may make the Node ${node}, its Lease and ${agentLeaseName(node)} only`,
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
