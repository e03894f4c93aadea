/**
 * What RBAC cannot say about our own account, that of role `cluster`, when it hosts pods of peers. To be applied before the
 * rights that these fences bound.
 */
import { isClusterNamespaceIn } from '../api/cluster-namespaces.ts';
import {
  forgeFence,
  forgePolicy,
  isAccount,
  type PolicyPair,
  type PolicySpec,
  writes,
} from '../api/fence.ts';
import type { Manifest } from '../api/manifest.ts';
import {
  ANNOTATION_RECREATED,
  ANNOTATION_RESULT,
  HOME_LEASE,
  LABEL_HOME_UID,
  LABEL_SLICE_MANAGED_BY,
  NATIVE_SLICE_MANAGER,
  SLICE_MANAGER,
} from '../api/names.ts';
import { type AccountRef, CLUSTER_ACCOUNT } from '../api/rbac.ts';
import { LABEL_PEER, LABEL_TENANCY, PEERS_NAMESPACE, TENANCY_CONTRACT } from '../api/tenant-labels.ts';
import { RESULT_GATE } from './guardian/result.ts';
import { isReflectableGroup, KIND_VERBS } from './policies/kinds.ts';
import {
  FLOW_SCHEMA_PREFIX,
  PEERS_PRIORITY_LEVEL,
  TENANT_KINDS_ROLE,
  TENANT_LOGS_ROLE,
  TENANT_ROLE,
} from './tenants/contract-tenant.ts';
import { GUEST_POLICY_PREFIX } from './tenants/guest-policy.ts';
import { ISOLATION_NAME } from './tenants/isolation.ts';
import { isReservedWordIn } from './tenants/reserved-names.ts';

/** CEL: whether these labels mark a tenant that was made because of a contract. */
export const isTenant = (labels: string): string =>
  `(${labels}[?'${LABEL_TENANCY}'].orValue('') == '${TENANCY_CONTRACT}' && ${labels}[?'${LABEL_PEER}'].orValue('') != '')`;
const labelsOf = (what: string): string => `${what}.?metadata.?labels.orValue({})`;

const isKind = (plural: string): string => `request.resource.resource == '${plural}'`;
const isNamespace = isKind('namespaces');
/** CEL: NetworkPolicies that are made of what a peer says of its pods; also in tenants that people have made. */
const isGuestPolicy = `(${isKind('networkpolicies')} && request.name.startsWith('${GUEST_POLICY_PREFIX}'))`;
const isInside = `!(${isNamespace}) && !(${isKind('flowschemas')})`;
/** CEL: the peer of the namespace that is written to. */
const peerHere = `namespaceObject.metadata.?labels[?'${LABEL_PEER}'].orValue('')`;

const isRole = (kind: string, name: string): string =>
  `(object.roleRef.kind == '${kind}' && object.roleRef.name == '${name}')`;
/** CEL: the binding names this account and no other. */
const isBoundTo = (namespace: string, name: string): string =>
  `has(object.subjects) && object.subjects.all(s, s.kind == 'ServiceAccount' && ` +
  `s.?namespace.orValue('') == ${namespace} && s.name == ${name})`;

/** CEL: the manager of a slice. */
const managerOf = (what: string): string => `${labelsOf(what)}[?'${LABEL_SLICE_MANAGED_BY}'].orValue('')`;

const validations: NonNullable<PolicySpec['validations']> = [
  {
    expression: `!(${isNamespace}) || oldObject == null || ${isTenant(labelsOf('oldObject'))}`,
    message: 'lending may change and delete namespaces of tenants that it has made only',
  },
  {
    expression: `!(${isNamespace}) || object == null || ${isTenant(labelsOf('object'))}`,
    message: 'lending may make namespaces of tenants only, and must mark them',
  },
  {
    // A namespace that got another peer would take its pods and Secrets along.
    expression:
      `!(${isNamespace}) || object == null || oldObject == null || ` +
      `${labelsOf('object')}['${LABEL_PEER}'] == ${labelsOf('oldObject')}['${LABEL_PEER}']`,
    message: 'a tenant namespace keeps its peer',
  },
  {
    expression:
      `!(${isNamespace}) || object == null || !(object.metadata.name == 'default' || ` +
      `${isClusterNamespaceIn('object.metadata.name')})`,
    message: "names of the cluster's own namespaces are not for tenants",
  },
  {
    // Of an earlier version there may be some: those can be kept up and deleted.
    expression: `!(${isNamespace}) || oldObject != null || !${isReservedWordIn('object.metadata.name')}`,
    message: "names of domains and of other programs' namespaces are not for tenants",
  },
  {
    expression:
      `!(${isInside}) || (request.namespace == '${PEERS_NAMESPACE}' && ${isKind('serviceaccounts')}) || ` +
      `(${isGuestPolicy} && ${peerHere} != '') || ` +
      isTenant('namespaceObject.metadata.?labels.orValue({})'),
    message: 'lending may write in namespaces of tenants that it has made only',
  },
  {
    // NetworkPolicies that people make in a tenant namespace are theirs: what policies allow adds up.
    expression:
      `!(${isKind('networkpolicies')}) || request.name == '${ISOLATION_NAME}' || ` +
      `request.name.startsWith('${ISOLATION_NAME}-')`,
    message: `lending may make NetworkPolicies only whose names are ${ISOLATION_NAME}, or begin with ${ISOLATION_NAME}-`,
  },
  {
    expression:
      `!(${isKind('rolebindings')}) || object == null || ` +
      `((${isRole('ClusterRole', TENANT_ROLE)} || ${isRole('Role', TENANT_KINDS_ROLE)}) && ` +
      `${isBoundTo(`'${PEERS_NAMESPACE}'`, peerHere)}) || ` +
      `(${isRole('ClusterRole', TENANT_LOGS_ROLE)} && ` +
      `${isBoundTo(`'${CLUSTER_ACCOUNT.namespace}'`, `'${CLUSTER_ACCOUNT.name}'`)})`,
    message: `lending may bind ${TENANT_ROLE} and ${TENANT_KINDS_ROLE} to the peer of the namespace only, and ${TENANT_LOGS_ROLE} to itself`,
  },
  {
    expression:
      `!(${isKind('roles')}) || (request.name == '${TENANT_KINDS_ROLE}' && (object == null || ` +
      'object.?rules.orValue([]).all(r, r.verbs.all(v, v in ' +
      `[${KIND_VERBS.map((verb) => `'${verb}'`).join(', ')}]) && !has(r.nonResourceURLs) && ` +
      "r.?resources.orValue([]).all(n, !n.contains('*') && !n.contains('/')) && " +
      `r.?apiGroups.orValue([]).all(g, ${isReflectableGroup('g')}))))`,
    message: `lending may make the Role ${TENANT_KINDS_ROLE} only, for kinds by which no cluster is governed`,
  },
  {
    expression:
      `!(${isKind('endpointslices')}) || oldObject == null || ` +
      `${managerOf('oldObject')} == '${NATIVE_SLICE_MANAGER}' || ` +
      `(${managerOf('oldObject')} == '${SLICE_MANAGER}' && request.operation == 'UPDATE')`,
    message:
      'lending may withhold endpoints that a peer has made, and change and delete those that it has made itself',
  },
  {
    expression:
      `!(${isKind('endpointslices')}) || object == null || ` +
      `${managerOf('object')} == (oldObject == null ? '${NATIVE_SLICE_MANAGER}' : ${managerOf('oldObject')})`,
    message: `lending may make endpoints managed by ${NATIVE_SLICE_MANAGER} only, and no manager changes`,
  },
  {
    expression:
      `!(${isKind('flowschemas')}) || (request.name.startsWith('${FLOW_SCHEMA_PREFIX}') && (object == null || ` +
      `object.spec.priorityLevelConfiguration.name == '${PEERS_PRIORITY_LEVEL}'))`,
    message: 'lending may make FlowSchemas of peers only, in the priority level of peers',
  },
];

const ALL = ['CREATE', 'UPDATE', 'DELETE'];

/**
 * Lending writes to tenants that it has made itself, and to nothing else. `elsewhere`: CEL for writes of the same account that
 * another fence bounds.
 */
export const forgeLendingFence = (account: AccountRef, elsewhere?: string): PolicyPair =>
  forgePolicy('tributary-lending', {
    matchConstraints: {
      resourceRules: [
        writes('', ['namespaces', 'serviceaccounts', 'resourcequotas', 'limitranges'], ...ALL),
        writes('networking.k8s.io', ['networkpolicies'], ...ALL),
        writes('rbac.authorization.k8s.io', ['roles', 'rolebindings'], ...ALL),
        writes('flowcontrol.apiserver.k8s.io', ['flowschemas'], ...ALL),
        writes('discovery.k8s.io', ['endpointslices'], ...ALL),
      ],
    },
    matchConditions: [
      { name: 'lending', expression: isAccount(account) },
      ...(elsewhere === undefined ? [] : [{ name: 'not-elsewhere', expression: `!${elsewhere}` }]),
    ],
    validations,
  });

const isMade = (plural: string): string => `(${isKind(plural)} && request.operation == 'CREATE')`;
const annotation = (what: string, key: string): string =>
  `${what}.metadata.?annotations[?'${key}'].orValue('')`;
const label = (what: string, key: string): string => `${what}.metadata.?labels[?'${key}'].orValue('')`;
const isResult = (what: string): string =>
  `(${annotation(what, ANNOTATION_RESULT)} == 'true' && ${what}.spec.?nodeName.orValue('') == '' && ` +
  `${what}.spec.?schedulingGates.orValue([]).exists(g, g.name == '${RESULT_GATE}'))`;
const isStatus = "(request.?subResource.orValue('') == 'status')";

/**
 * In tenants, the guardian makes only pods that existed before, and writes the status only of pods that never run. Outside of
 * tenants, the fence of releases holds.
 */
export function forgeGuardianFence(account: AccountRef): Manifest[] {
  return forgeFence({
    name: 'tributary-guardian',
    user: isAccount(account),
    rules: [
      writes('', ['pods'], 'CREATE', 'DELETE'),
      writes('', ['pods/status'], 'UPDATE'),
      writes('coordination.k8s.io', ['leases'], 'CREATE'),
    ],
    variables: { isTenant: `${label('namespaceObject', LABEL_PEER)} != ''` },
    validations: [
      [
        `!${isMade('leases')} || request.namespace == '${account.namespace}' || ` +
          `(variables.isTenant && object.metadata.name == '${HOME_LEASE}')`,
        `in tenants the Lease ${HOME_LEASE} may be made, and outside of them those of our own namespace`,
      ],
      [
        `!${isMade('pods')} || !variables.isTenant || (${label('object', LABEL_HOME_UID)} != '' && ` +
          `object.spec.?nodeName.orValue('') == '' && ` +
          `(${isResult('object')} || ${annotation('object', ANNOTATION_RECREATED)} != ''))`,
        'in tenants only lost pods of the peer may be made anew, and they must say so',
      ],
      [
        `!(${isKind('pods')} && request.operation == 'DELETE' && variables.isTenant) || ` +
          `${label('oldObject', LABEL_HOME_UID)} != ''`,
        'in tenants only pods of the peer may be deleted',
      ],
      [
        `!(${isStatus} && variables.isTenant) || (${isResult('oldObject')} && ` +
          "object.?status.?phase.orValue('') in ['Succeeded', 'Failed'])",
        'in tenants only results of pods that never run may be written',
      ],
    ],
  });
}
