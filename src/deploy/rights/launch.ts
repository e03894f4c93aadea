import type { Right } from '../../api/rbac.ts';
import { AGENT_KINDS_ROLE, AGENT_NAMESPACE_ROLE } from '../agents.ts';

/**
 * What the `cluster` role needs to start agents. The fence `tributary-launching` narrows it to objects of agents; the
 * API server itself refuses a Role with rights that its maker does not have.
 */
export const LAUNCH_CLUSTER_RIGHTS: readonly Right[] = [
  {
    group: 'rbac.authorization.k8s.io',
    resource: 'clusterroles',
    names: [AGENT_NAMESPACE_ROLE, AGENT_KINDS_ROLE],
    verbs: ['bind'],
    why: 'gives an agent its rights in offloaded namespaces; these roles and no other, see lending for tenants',
  },
  {
    group: 'rbac.authorization.k8s.io',
    resource: 'rolebindings',
    verbs: ['list', 'create', 'patch', 'delete'],
    why: 'likewise, and takes them back; fenced',
  },
];

/** In tributary-system. */
export const LAUNCH_SYSTEM_RIGHTS: readonly Right[] = [
  {
    group: 'rbac.authorization.k8s.io',
    resource: 'roles',
    verbs: ['create', 'patch', 'delete'],
    why: 'the Role of one agent: its kubeconfig Secret and what it serves, by name; fenced to that',
  },
  {
    group: '',
    resource: 'secrets',
    verbs: ['get', 'list', 'watch'],
    why: 'only who may read a kubeconfig Secret can let an agent read it; which one is named after its provider',
  },
  {
    group: 'tributary.dev',
    resource: 'nodes',
    verbs: ['serve'],
    why: 'only who has it can give it: which Nodes an agent serves. Alone it permits nothing',
  },
  {
    group: 'tributary.dev',
    resource: 'virtualnodes',
    verbs: ['serve'],
    why: 'likewise, which VirtualNodes',
  },
];

/** In tributary-agents. */
export const LAUNCH_AGENTS_RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'serviceaccounts',
    verbs: ['create', 'patch', 'delete'],
    why: 'an account for each agent; one that is gone ends its tokens',
  },
  {
    group: 'apps',
    resource: 'deployments',
    verbs: ['create', 'patch', 'delete'],
    why: 'a Deployment for each agent',
  },
  {
    group: '',
    resource: 'pods',
    verbs: ['list', 'watch'],
    why: 'whether an agent still runs, and which address a request for a certificate may name',
  },
];
