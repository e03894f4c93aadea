/**
 * What a tether forbids in the cluster that is tethered. The API server reads the mode itself: the ClusterMode is the
 * parameter of these policies (KEP-3488), so that the one write that changes the mode puts all of them in force, or out of it.
 */
import type * as models from '@kubernetes/client-node';
import { BREAK_OUT_GROUP, CLUSTER_MODE, clusterModes } from '../../api/cluster-mode.ts';
import { isClusterNamespaceIn } from '../../api/cluster-namespaces.ts';
import { forgePolicy, isAccountOf, writes } from '../../api/fence.ts';
import { AGENTS_NAMESPACE, type Manifest, SYSTEM_NAMESPACE } from '../../api/manifest.ts';
import { LABEL_OFFLOADING_ORIGIN } from '../../api/names.ts';
import { LABEL_PEER, PEERS_NAMESPACE } from '../../api/tenant-labels.ts';

const ALL = ['CREATE', 'UPDATE', 'DELETE'];
const CHANGES = ['CREATE', 'UPDATE'];
const NOTHING = "''";

const IS_TETHERED = "params.?status.?mode.orValue('') == 'Tethered'";
const BREAKS_OUT = `params.?spec.?tether.?breakOutGroup.orValue('${BREAK_OUT_GROUP}') in request.userInfo.?groups.orValue([])`;
/** Kubelets, the API server, controllers of Kubernetes, and the accounts of this program and of peers. Administrators are not among them. */
const IS_MACHINE = [
  "request.userInfo.?groups.orValue([]).exists(g, g == 'system:nodes' || g == 'system:serviceaccounts:kube-system')",
  // The API server itself writes how much of a quota is used.
  "request.userInfo.username in ['system:kube-controller-manager', 'system:apiserver']",
  ...[SYSTEM_NAMESPACE, AGENTS_NAMESPACE, PEERS_NAMESPACE].map(isAccountOf),
].join(' || ');
/** What the other cluster brings is not bound by what is forbidden to users here. */
const IS_USERS = `!(${isClusterNamespaceIn('request.namespace')})`;
const USERS_NAMESPACES: models.V1LabelSelector = {
  matchExpressions: [{ key: LABEL_PEER, operator: 'DoesNotExist' }],
};
const PEERS_NAMESPACES: models.V1LabelSelector = {
  matchExpressions: [{ key: LABEL_PEER, operator: 'Exists' }],
};
/** CEL: whether that is the cluster that we are tethered to. */
const isCompany = (peer: string): string =>
  `${peer} != '' && ${peer} == params.?status.?tether.?clusterID.orValue('')`;
const madeByTether = (what: string): string =>
  `${what}.metadata.?labels[?'${LABEL_OFFLOADING_ORIGIN}'].orValue('') == 'tether'`;
const NODES = 'params.?status.?nodes.orValue([])';
const COMPANY = "params.?spec.?tether.?cluster.orValue('another cluster')";

interface Guard {
  name: string;
  rules: models.V1NamedRuleWithOperations[];
  /** Default: all of them. Objects of whole clusters are in all. */
  namespaces?: models.V1LabelSelector;
  /** CEL: what is looked at while tethered. */
  when: string;
  /** CEL: whose requests pass, besides those who break out. Default: those of machines. */
  exempt?: string;
  variables?: Record<string, string>;
  /** CEL: whether it is permitted. */
  permitted: string;
  /** What is refused, after "this cluster is tethered to ..., which decides what runs on its nodes: ". */
  refusal: string;
}

/** A guard that cannot be judged forbids nothing: it must not stop a cluster. */
function forgeGuard({
  name,
  rules,
  namespaces,
  when,
  exempt = IS_MACHINE,
  variables = {},
  permitted,
  refusal,
}: Guard): Manifest[] {
  const [policy, binding] = forgePolicy(name, {
    failurePolicy: 'Ignore',
    paramKind: { apiVersion: `${clusterModes.group}/${clusterModes.version}`, kind: clusterModes.kind },
    matchConstraints: { resourceRules: rules, ...(namespaces && { namespaceSelector: namespaces }) },
    // Machines write most, and what no condition meets costs an API server least.
    matchConditions: [{ name: 'not-exempt', expression: `!(${exempt})` }],
    variables: [
      ...Object.entries(variables).map(([key, expression]) => ({ name: key, expression })),
      { name: 'holds', expression: `${IS_TETHERED} && !(${BREAKS_OUT}) && (${when})` },
    ],
    validations: [
      {
        expression: `!variables.holds || (${permitted})`,
        // The object is not wrong: here and now it is not permitted.
        reason: 'Forbidden',
        messageExpression: `'this cluster is tethered to ' + ${COMPANY} + ', which decides what runs on its nodes: ${refusal}; to end that: tributary untether'`,
        message: `this cluster is tethered to another one, which decides what runs on its nodes: ${refusal}; to end that: tributary untether`,
      },
    ],
  });
  const spec = {
    ...binding.spec,
    paramRef: { name: CLUSTER_MODE, parameterNotFoundAction: 'Allow' },
  };
  return [policy, { ...binding, spec } as Manifest];
}

const HOST = "'kubernetes.io/hostname'";
/** CEL: the node that a pod's spec names by hand; empty: none. */
const chosen = (spec: string): string =>
  `(${spec}.?nodeName.orValue('') != '' ? ${spec}.?nodeName.orValue('') : ${spec}.?nodeSelector[?${HOST}].orValue(''))`;
/** CEL: the same for a workload of any kind. */
const chosenBy = (what: string): string =>
  `(has(${what}.spec.jobTemplate) ? ${chosen(`${what}.spec.jobTemplate.spec.template.spec`)} : ${chosen(`${what}.spec.template.spec`)})`;

const GUARDS: readonly Guard[] = [
  {
    name: 'tributary-tether-bindings',
    rules: [writes('', ['pods/binding', 'bindings'], 'CREATE')],
    namespaces: USERS_NAMESPACES,
    when: IS_USERS,
    // The scheduler binds, and is what this is about.
    exempt: 'false',
    permitted: `object.?target.?name.orValue('') in ${NODES}`,
    refusal: 'its own nodes take no pods of users',
  },
  {
    name: 'tributary-tether-pods',
    rules: [writes('', ['pods'], 'CREATE')],
    namespaces: USERS_NAMESPACES,
    when: IS_USERS,
    variables: { node: chosen('object.spec') },
    permitted: `variables.node == ${NOTHING} || variables.node in ${NODES}`,
    refusal: 'a pod cannot choose one of them by spec.nodeName or kubernetes.io/hostname',
  },
  {
    name: 'tributary-tether-workloads',
    rules: [
      writes('apps', ['deployments', 'statefulsets', 'replicasets'], ...CHANGES),
      writes('batch', ['jobs', 'cronjobs'], ...CHANGES),
    ],
    namespaces: USERS_NAMESPACES,
    when: IS_USERS,
    variables: {
      node: chosenBy('object'),
      before: `oldObject == null ? '' : ${chosenBy('oldObject')}`,
    },
    permitted: `variables.node == ${NOTHING} || variables.node == variables.before || variables.node in ${NODES}`,
    refusal: 'its pods cannot choose one of them by spec.nodeName or kubernetes.io/hostname',
  },
  {
    name: 'tributary-tether-daemonsets',
    rules: [writes('apps', ['daemonsets'], ...CHANGES)],
    namespaces: USERS_NAMESPACES,
    when: IS_USERS,
    permitted: 'oldObject != null && object.spec.template == oldObject.spec.template',
    refusal: 'a DaemonSet of users cannot be made or changed here',
  },
  {
    // Whoever deleted one would get it back at once; without its mark it would be a person's.
    name: 'tributary-tether-offloadings',
    rules: [writes('tributary.dev', ['namespaceoffloadings'], 'UPDATE', 'DELETE')],
    when: madeByTether('oldObject'),
    permitted: `object != null && ${madeByTether('object')}`,
    refusal: 'it takes the pods of this namespace, too, so that this object would be made again',
  },
  {
    name: 'tributary-tether-nodes',
    rules: [writes('', ['nodes'], ...ALL)],
    when: 'true',
    permitted: 'false',
    refusal: 'Nodes cannot be changed here',
  },
  {
    name: 'tributary-tether-tenants',
    // The other guard is about Namespaces.
    rules: [
      { apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], operations: ALL, scope: 'Namespaced' },
    ],
    namespaces: PEERS_NAMESPACES,
    when: isCompany(`namespaceObject.?metadata.?labels[?'${LABEL_PEER}'].orValue('')`),
    // The scheduler binds the other cluster's pods to the nodes here.
    exempt: `${IS_MACHINE} || request.userInfo.username == 'system:kube-scheduler'`,
    permitted: 'false',
    refusal: 'what it runs here cannot be changed',
  },
  {
    name: 'tributary-tether-namespaces',
    // No selector: it would go by labels as they shall be, without the one that is taken off.
    rules: [writes('', ['namespaces', 'namespaces/*'], 'UPDATE', 'DELETE')],
    when: isCompany(`oldObject.metadata.?labels[?'${LABEL_PEER}'].orValue('')`),
    permitted: 'false',
    refusal: 'what it runs here cannot be changed',
  },
];

export const forgeTetherGuards = (): Manifest[] => GUARDS.flatMap((guard) => forgeGuard(guard));
