import type { Right } from '../api/rbac.ts';
import {
  AGENT_AUTHENTICATION_RIGHTS,
  AGENT_CLUSTER_RIGHTS,
  AGENT_KUBECONFIG_RIGHTS,
  AGENT_LEASE_RIGHTS,
  AGENT_NAMESPACE_RIGHTS,
  AGENT_NODE_EVENT_RIGHTS,
} from './rights.ts';

/**
 * Rights of agents that the `cluster` role starts. Their roles are there before them, so no name of a Node can be in
 * them: what one agent may write to is said by names in a Role of its own, under the verb `serve`, and held to by the
 * ValidatingAdmissionPolicy `tributary-agents` (manifests-agents.ts).
 */
const unnamed = (rights: readonly Right[]): Right[] =>
  rights.map(({ names, ...right }) => {
    if (names === undefined || !names.some((name) => name.includes('<'))) {
      return { ...right, ...(names && { names }), why: right.why.replaceAll('`<node>`', 'what it serves') };
    }
    const writes = right.verbs.some((verb) => ['update', 'delete'].includes(verb));
    return {
      ...right,
      why: `${right.why}; ${writes ? 'writes are fenced to what it serves' : 'of all agents'}`,
    };
  });

/** Of every account in `tributary-agents`, cluster-wide. */
export const LAUNCHED_CLUSTER_RIGHTS: readonly Right[] = [
  ...unnamed(AGENT_CLUSTER_RIGHTS),
  {
    group: 'tributary.dev',
    resource: 'tunnels',
    verbs: ['get', 'list', 'watch'],
    why: 'how addresses translate between the two clusters, and whether packets get through; they hold no secret',
  },
];
/** Likewise, in kube-node-lease. */
export const LAUNCHED_LEASE_RIGHTS: readonly Right[] = unnamed(AGENT_LEASE_RIGHTS);
/** Likewise, in `default`. */
export const LAUNCHED_EVENT_RIGHTS: readonly Right[] = AGENT_NODE_EVENT_RIGHTS;
/** Likewise, in kube-system. */
export const LAUNCHED_AUTHENTICATION_RIGHTS: readonly Right[] = AGENT_AUTHENTICATION_RIGHTS;

/** Of one agent, in each namespace that is offloaded to its provider. */
export const LAUNCHED_NAMESPACE_RIGHTS: readonly Right[] = AGENT_NAMESPACE_RIGHTS;

/** Of one agent, in tributary-system. Nothing there is called so: only the fence asks for `serve`. */
export const LAUNCHED_OWN_RIGHTS: readonly Right[] = [
  ...AGENT_KUBECONFIG_RIGHTS,
  {
    group: 'tributary.dev',
    resource: 'nodes',
    names: ['<node>'],
    verbs: ['serve'],
    why: 'may make and write this Node, its Lease, and pods on it',
  },
  {
    group: 'tributary.dev',
    resource: 'virtualnodes',
    names: ['<virtual-node>'],
    verbs: ['serve'],
    why: 'may write the status of this VirtualNode',
  },
];
