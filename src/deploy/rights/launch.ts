import type { Right } from '../../api/rbac.ts';
import { AGENT_KINDS_ROLE, AGENT_NAMESPACE_ROLE } from '../agents.ts';

/**
 * What the `cluster` role needs to start agents. The fence `tributary-launching` restricts it to objects of agents. The
 * API server refuses to create a Role with rights that its creator does not have.
 */
export const LAUNCH_CLUSTER_RIGHTS: readonly Right[] = [
  {
    resource: 'clusterroles.rbac.authorization.k8s.io',
    names: [AGENT_NAMESPACE_ROLE, AGENT_KINDS_ROLE],
    verbs: ['bind'],
    why: 'gives an agent its rights in offloaded namespaces; these roles and no other, see lending for tenants',
  },
  {
    resource: 'rolebindings.rbac.authorization.k8s.io',
    verbs: ['list', 'create', 'patch', 'delete'],
    why: 'likewise, and takes them back; fenced',
  },
];

/** In tributary-system. */
export const LAUNCH_SYSTEM_RIGHTS: readonly Right[] = [
  {
    resource: 'roles.rbac.authorization.k8s.io',
    verbs: ['create', 'patch', 'delete'],
    why: 'the Role of one agent: its kubeconfig Secret and what it serves, by name; fenced to that',
  },
  {
    resource: 'secrets',
    verbs: ['get', 'list', 'watch'],
    why: 'only who may read a kubeconfig Secret can let an agent read it; which one is named after its provider',
  },
  {
    resource: 'nodes.tributary.dev',
    verbs: ['serve'],
    why: 'only who has it can give it: which Nodes an agent serves. Alone it permits nothing',
  },
  {
    resource: 'virtualnodes.tributary.dev',
    verbs: ['serve'],
    why: 'likewise, which VirtualNodes',
  },
];

/** In tributary-agents. */
export const LAUNCH_AGENTS_RIGHTS: readonly Right[] = [
  {
    resource: 'serviceaccounts',
    verbs: ['create', 'patch', 'delete'],
    why: 'an account for each agent; one that is gone ends its tokens',
  },
  {
    resource: 'deployments.apps',
    verbs: ['create', 'patch', 'delete'],
    why: 'a Deployment for each agent',
  },
  {
    resource: 'pods',
    verbs: ['list', 'watch'],
    why: 'whether an agent still runs, and which address a request for a certificate may name',
  },
];
