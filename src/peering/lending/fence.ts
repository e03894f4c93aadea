/**
 * What RBAC cannot say about the account that lends: it writes to tenants that it made itself and to nothing else.
 * A ValidatingAdmissionPolicy (KEP-3488); the API server runs it, no webhook is needed.
 */
import { APP_NAME, LABEL_APP_NAME, type ManifestOf } from '../../api/manifest.ts';
import type { AccountRef } from '../../api/rbac.ts';
import type { Stored } from '../../api/wire.ts';
import { LABEL_PEER, LABEL_TENANCY, TENANCY_CONTRACT } from '../labels.ts';
import { PEERS_NAMESPACE } from '../tenant.ts';
import { FLOW_SCHEMA_PREFIX, PEERS_PRIORITY_LEVEL, TENANT_ROLE } from './tenancy.ts';
import type * as models from '@kubernetes/client-node';

type Policy = Stored<models.V1ValidatingAdmissionPolicy>;
type PolicyBinding = Stored<models.V1ValidatingAdmissionPolicyBinding>;

const NAME = 'tributary-lending';
const VERSION = 'admissionregistration.k8s.io/v1';

/** CEL: whether these labels mark a tenant that lending has made. */
const isTenant = (labels: string): string =>
  `(${labels}[?'${LABEL_TENANCY}'].orValue('') == '${TENANCY_CONTRACT}' && ${labels}[?'${LABEL_PEER}'].orValue('') != '')`;
const labelsOf = (what: string): string => `${what}.?metadata.?labels.orValue({})`;

const kind = (plural: string): string => `request.resource.resource == '${plural}'`;
const isNamespace = kind('namespaces');
const isInside = `!(${isNamespace}) && !(${kind('flowschemas')})`;
/** The peer of the namespace in which a write takes place. */
const peerHere = `namespaceObject.metadata.?labels[?'${LABEL_PEER}'].orValue('')`;

const validations: NonNullable<NonNullable<Policy['spec']>['validations']> = [
  {
    expression: `!(${isNamespace}) || oldObject == null || ${isTenant(labelsOf('oldObject'))}`,
    message: 'lending may change and delete namespaces of tenants that it has made only',
  },
  {
    expression: `!(${isNamespace}) || object == null || ${isTenant(labelsOf('object'))}`,
    message: 'lending may make namespaces of tenants only, and must mark them',
  },
  {
    // A namespace that changes hands would take its pods and Secrets along.
    expression:
      `!(${isNamespace}) || object == null || oldObject == null || ` +
      `${labelsOf('object')}['${LABEL_PEER}'] == ${labelsOf('oldObject')}['${LABEL_PEER}']`,
    message: 'a tenant namespace keeps its peer',
  },
  {
    expression:
      `!(${isNamespace}) || object == null || !(object.metadata.name.startsWith('kube-') || ` +
      `object.metadata.name in ['default', 'tributary-system', 'tributary-agents', 'tributary-network', '${PEERS_NAMESPACE}'])`,
    message: "names of the cluster's own namespaces are not for tenants",
  },
  {
    expression:
      `!(${isInside}) || (request.namespace == '${PEERS_NAMESPACE}' && ${kind('serviceaccounts')}) || ` +
      isTenant('namespaceObject.metadata.?labels.orValue({})'),
    message: 'lending may write in namespaces of tenants that it has made only',
  },
  {
    expression:
      `!(${kind('rolebindings')}) || object == null || (object.roleRef.kind == 'ClusterRole' && ` +
      `object.roleRef.name == '${TENANT_ROLE}' && has(object.subjects) && object.subjects.all(s, ` +
      `s.kind == 'ServiceAccount' && s.?namespace.orValue('') == '${PEERS_NAMESPACE}' && s.name == ${peerHere}))`,
    message: `lending may bind ${TENANT_ROLE} to the peer of the namespace only`,
  },
  {
    expression:
      `!(${kind('flowschemas')}) || (request.name.startsWith('${FLOW_SCHEMA_PREFIX}') && (object == null || ` +
      `object.spec.priorityLevelConfiguration.name == '${PEERS_PRIORITY_LEVEL}'))`,
    message: 'lending may make FlowSchemas of peers only, in the priority level of peers',
  },
];

const rule = (apiGroup: string, ...resources: string[]): models.V1NamedRuleWithOperations => ({
  apiGroups: [apiGroup],
  apiVersions: ['*'],
  resources,
  operations: ['CREATE', 'UPDATE', 'DELETE'],
});

/** `elsewhere`: CEL for writes of the same account that another fence holds to their bounds. */
export function forgeLendingFence(
  account: AccountRef,
  elsewhere?: string,
): [ManifestOf<Policy>, ManifestOf<PolicyBinding>] {
  const metadata = { name: NAME, labels: { [LABEL_APP_NAME]: APP_NAME } };
  return [
    {
      apiVersion: VERSION,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [
            rule('', 'namespaces', 'serviceaccounts', 'resourcequotas', 'limitranges'),
            rule('rbac.authorization.k8s.io', 'rolebindings'),
            rule('flowcontrol.apiserver.k8s.io', 'flowschemas'),
          ],
        },
        matchConditions: [
          {
            name: 'lending',
            expression: `request.userInfo.username == 'system:serviceaccount:${account.namespace}:${account.name}'`,
          },
          ...(elsewhere === undefined ? [] : [{ name: 'not-elsewhere', expression: `!${elsewhere}` }]),
        ],
        validations,
      },
    },
    {
      apiVersion: VERSION,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: NAME, validationActions: ['Deny'] },
    },
  ];
}
