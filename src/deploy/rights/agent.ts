import { agentLeaseName } from '../../api/agent-lease.ts';
import { eventRight, type Right } from '../../api/rbac.ts';

/**
 * All that the agent of one virtual node may do in its own cluster, one table for each place where the rights hold.
 * `<node>`, `<virtual-node>` and `<secret>` stand for the names that belong to this agent.
 *
 * The agent cannot read Secrets or ConfigMaps cluster-wide: those rights are bound in each offloaded namespace. It can
 * read Pods cluster-wide, and must. The scheduler, DaemonSets, and people with a toleration for all taints bind pods of any
 * namespace to the node. The agent has to refuse such pods by their status and to let their deletion complete; otherwise
 * they would stay in Terminating for ever. RBAC cannot say "pods on my node". So a ValidatingAdmissionPolicy, which can,
 * fences the verbs that write (see src/deploy/peer.ts).
 *
 * The rights have `update` and not `patch`: a replacement carries the resourceVersion that it was made from, so an agent
 * never overwrites a change that it has not seen.
 */
export const AGENT_CLUSTER_RIGHTS: readonly Right[] = [
  {
    resource: 'nodes',
    verbs: ['create'],
    why: 'makes its Node; a create cannot be narrowed by name here, the fence narrows it to `<node>`',
  },
  {
    resource: 'nodes',
    names: ['<node>'],
    verbs: ['get', 'list', 'watch', 'update', 'delete'],
    why: 'keeps labels and taints of its Node, makes it again when somebody deletes it, removes it at the end',
  },
  {
    resource: 'nodes/status',
    names: ['<node>'],
    verbs: ['update'],
    why: 'conditions, capacity and addresses of its Node',
  },
  {
    resource: 'pods',
    verbs: ['get', 'list', 'watch'],
    why: 'follows the pods bound to its node, whatever their namespace, and those that NetworkPolicies of offloaded namespaces select, by their labels; get: a pod is believed gone only after a read',
  },
  {
    resource: 'pods',
    verbs: ['delete'],
    why: 'completes a deletion once the remote pod is gone, as a kubelet does; fenced to pods on `<node>`',
  },
  {
    resource: 'pods/status',
    verbs: ['update'],
    why: 'says how a pod fares over there, or why it does not run; fenced to pods on `<node>`',
  },
  {
    resource: 'namespaces',
    verbs: ['list', 'watch'],
    why: 'their labels, by which NetworkPolicies of offloaded namespaces select pods; watched only where a policy does',
  },
  {
    resource: 'storageclasses.storage.k8s.io',
    verbs: ['list', 'watch'],
    why: 'classes of provisioner tributary.dev/storage, and what they are over there; they hold no secret',
  },
  {
    resource: 'persistentvolumes',
    verbs: ['get', 'list', 'watch'],
    why: 'its volumes, found by their label; get: one is believed gone only after a read',
  },
  {
    resource: 'persistentvolumes',
    verbs: ['create', 'update', 'delete'],
    why: 'one for each claim that has its data over there; fenced to volumes of tributary.dev/storage whose only place is `<node>`',
  },
  {
    resource: 'virtualnodes.tributary.dev',
    names: ['<virtual-node>'],
    verbs: ['get', 'list', 'watch'],
    why: 'its own configuration, followed without a restart',
  },
  {
    resource: 'virtualnodes.tributary.dev/status',
    names: ['<virtual-node>'],
    verbs: ['update'],
    why: 'conditions, with their cause',
  },
  {
    resource: 'certificatesigningrequests.certificates.k8s.io',
    verbs: ['create', 'get'],
    why: 'a serving certificate for the kubelet API, asked after until it is issued; names are generated, so get cannot be narrowed',
  },
  {
    resource: 'tokenreviews.authentication.k8s.io',
    verbs: ['create'],
    why: 'who calls its kubelet API with a bearer token, as a kubelet asks',
  },
  {
    resource: 'subjectaccessreviews.authorization.k8s.io',
    verbs: ['create'],
    why: 'whether that caller may, as a kubelet asks',
  },
];

/** In kube-node-lease. */
export const AGENT_LEASE_RIGHTS: readonly Right[] = [
  {
    resource: 'leases.coordination.k8s.io',
    verbs: ['create'],
    why: 'makes the heartbeat of its Node, and the Lease by which one agent acts at a time; fenced to the names `<node>` and `tributary-agent.<node>`',
  },
  {
    resource: 'leases.coordination.k8s.io',
    names: ['<node>', agentLeaseName('<node>')],
    verbs: ['get', 'update'],
    why: 'renews them',
  },
];

/** In the namespace of the kubeconfig Secret. */
export const AGENT_KUBECONFIG_RIGHTS: readonly Right[] = [
  {
    resource: 'secrets',
    names: ['<secret>'],
    verbs: ['get', 'list', 'watch'],
    why: 'the credential for the foreign cluster, followed so that a renewed one is used at once',
  },
];

/** In each offloaded namespace. */
export const AGENT_NAMESPACE_RIGHTS: readonly Right[] = [
  {
    resource: 'configmaps',
    verbs: ['get', 'list', 'watch'],
    why: 'what pods mount, and what the rules of the namespace take along, is copied across and kept up to date',
  },
  {
    resource: 'secrets',
    verbs: ['get', 'list', 'watch'],
    why: 'likewise; the foreign cluster can read what is copied, so offload no namespace whose Secrets it must not see',
  },
  {
    resource: 'services',
    verbs: ['get', 'list', 'watch'],
    why: 'every Service is reflected while a network joins the clusters; get: one is believed gone only after a read',
  },
  {
    resource: 'endpointslices.discovery.k8s.io',
    verbs: ['get', 'list', 'watch'],
    why: 'likewise, with addresses as the foreign cluster sees them',
  },
  {
    resource: 'ingresses.networking.k8s.io',
    verbs: ['get', 'list', 'watch'],
    why: 'those of a class that is mapped are reflected, unless a rule says otherwise; get: one is believed gone only after a read',
  },
  {
    resource: 'networkpolicies.networking.k8s.io',
    verbs: ['get', 'list', 'watch'],
    why: 'say who may reach pods over there, too; get: one is believed gone only after a read',
  },
  {
    resource: 'persistentvolumeclaims',
    verbs: ['get', 'list', 'watch'],
    why: 'claims for which the scheduler has chosen its node; get: one is believed gone only after a read',
  },
  {
    resource: 'persistentvolumeclaims',
    verbs: ['update'],
    why: 'gives a claim back to the scheduler when no volume can be made for it; fenced to that annotation',
  },
  {
    resource: 'serviceaccounts/token',
    verbs: ['create'],
    why: 'tokens that pods ask for, made here and carried across; for any account of the namespace',
  },
  eventRight(
    'why a pod does not run, and what happens to it over there, where `kubectl describe pod` shows it; patch: it counts on',
  ),
];

/** In the namespace `default`, where events of Nodes are stored. */
export const AGENT_NODE_EVENT_RIGHTS: readonly Right[] = [eventRight('events of its Node')];

/** In kube-system, by the Role extension-apiserver-authentication-reader, which is part of Kubernetes. */
export const AGENT_AUTHENTICATION_RIGHTS: readonly Right[] = [
  {
    resource: 'configmaps',
    names: ['extension-apiserver-authentication'],
    verbs: ['get', 'list', 'watch'],
    why: 'the authority that signs client certificates of the API server, which calls the kubelet API',
  },
];

/**
 * For agents that the `cluster` role starts. Their shared roles exist before them, so those cannot contain the name of a
 * Node. Instead each agent has a Role of its own, which names what it may write to, under the verb `serve`. The
 * ValidatingAdmissionPolicy `tributary-agents` enforces that (src/deploy/agents.ts).
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

/** Cluster-wide rights of every account in `tributary-agents`. */
export const LAUNCHED_CLUSTER_RIGHTS: readonly Right[] = [
  ...unnamed(AGENT_CLUSTER_RIGHTS),
  {
    resource: 'tunnels.tributary.dev',
    verbs: ['get', 'list', 'watch'],
    why: 'how addresses translate between the two clusters, and whether packets get through; they hold no secret',
  },
];
/** Likewise, in kube-node-lease. */
export const LAUNCHED_LEASE_RIGHTS: readonly Right[] = unnamed(AGENT_LEASE_RIGHTS);

/** Of one agent, in tributary-system. No such objects exist there: only the fence asks for the verb `serve`. */
export const LAUNCHED_OWN_RIGHTS: readonly Right[] = [
  ...AGENT_KUBECONFIG_RIGHTS,
  {
    resource: 'nodes.tributary.dev',
    names: ['<node>'],
    verbs: ['serve'],
    why: 'may make and write this Node, its Leases, and pods on it',
  },
  {
    resource: 'virtualnodes.tributary.dev',
    names: ['<virtual-node>'],
    verbs: ['serve'],
    why: 'may write the status of this VirtualNode',
  },
];
