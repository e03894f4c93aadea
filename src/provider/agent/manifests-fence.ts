/**
 * What RBAC cannot say: an agent writes to pods on its own node only, and makes no other Node and no other Lease.
 * A ValidatingAdmissionPolicy (KEP-3488) for one account; the API server runs it, no webhook is needed.
 */
import type { ManifestOf } from '../../api/manifest.ts';
import type { AccountRef } from '../../api/rbac.ts';
import type { Stored } from '../../api/wire.ts';
import type * as models from '@kubernetes/client-node';

type Policy = Stored<models.V1ValidatingAdmissionPolicy>;
type PolicyBinding = Stored<models.V1ValidatingAdmissionPolicyBinding>;

const ADMISSION_VERSION = 'admissionregistration.k8s.io/v1';

/** The node name is checked to be a DNS name before, so that it can stand in an expression as it is. */
export function forgeFence(options: {
  name: string;
  node: string;
  account: AccountRef;
  labels: Record<string, string>;
}): [ManifestOf<Policy>, ManifestOf<PolicyBinding>] {
  const { name, node, account, labels } = options;
  const isPod = "request.resource.resource == 'pods'";
  return [
    {
      apiVersion: ADMISSION_VERSION,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name, labels },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: { resourceRules: fencedWrites() },
        matchConditions: [
          {
            name: 'this-agent',
            expression: `request.userInfo.username == 'system:serviceaccount:${account.namespace}:${account.name}'`,
          },
        ],
        validations: [
          {
            expression: `!(${isPod}) || oldObject.?spec.?nodeName.orValue('') == '${node}'`,
            message: `this agent may write to pods on node ${node} only`,
          },
          {
            expression: `${isPod} || object.metadata.name == '${node}'`,
            message: `this agent may make the Node and the Lease ${node} only`,
          },
        ],
      },
    },
    {
      apiVersion: ADMISSION_VERSION,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name, labels },
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ];
}

const fencedWrites = (): models.V1NamedRuleWithOperations[] => [
  { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['DELETE'] },
  { apiGroups: [''], apiVersions: ['v1'], resources: ['pods/status'], operations: ['UPDATE'] },
  { apiGroups: [''], apiVersions: ['v1'], resources: ['nodes'], operations: ['CREATE'] },
  {
    apiGroups: ['coordination.k8s.io'],
    apiVersions: ['v1'],
    resources: ['leases'],
    operations: ['CREATE'],
  },
];
