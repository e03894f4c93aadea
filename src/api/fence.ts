/**
 * ValidatingAdmissionPolicies (KEP-3488): what RBAC cannot say. The API server runs them and needs no webhook. What a
 * policy cannot judge is refused.
 */
import { APP_NAME, LABEL_APP_NAME, type ManifestOf } from './manifest.ts';
import type { AccountRef } from './rbac.ts';
import type { Stored } from './wire.ts';
import type * as models from '@kubernetes/client-node';

type Policy = Stored<models.V1ValidatingAdmissionPolicy>;
type PolicyBinding = Stored<models.V1ValidatingAdmissionPolicyBinding>;

/** The policy, and the binding that puts it in force. */
export type PolicyPair = [ManifestOf<Policy>, ManifestOf<PolicyBinding>];
export type PolicySpec = NonNullable<Policy['spec']>;

const VERSION = 'admissionregistration.k8s.io/v1';
const LABELS: Record<string, string> = { [LABEL_APP_NAME]: APP_NAME };

/** `labels`: default ours alone. */
export const forgePolicy = (
  name: string,
  spec: PolicySpec,
  labels: Record<string, string> = LABELS,
): PolicyPair => [
  {
    apiVersion: VERSION,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name, labels },
    spec: { failurePolicy: 'Fail', ...spec },
  },
  {
    apiVersion: VERSION,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name, labels },
    spec: { policyName: name, validationActions: ['Deny'] },
  },
];

/** Bounds of one account, or of several. */
export interface Fence {
  name: string;
  /** Default: ours alone. */
  labels?: Record<string, string>;
  /** CEL: whose requests are looked at. */
  user: string;
  /** CEL: which of them; default all. */
  when?: string;
  rules: models.V1NamedRuleWithOperations[];
  /** Of these rules. A request that no rule names costs the API server nothing; one that `when` lets go costs it a look. */
  except?: models.V1NamedRuleWithOperations[];
  variables?: Record<string, string>;
  /** An expression, and the message when it does not hold. */
  validations: readonly (readonly [expression: string, message: string])[];
}

export const forgeFence = (fence: Fence): PolicyPair => {
  const { name, labels, user, when, rules, except, variables = {}, validations } = fence;
  return forgePolicy(
    name,
    {
      matchConstraints: { resourceRules: rules, ...(except && { excludeResourceRules: except }) },
      matchConditions: [
        { name: 'who', expression: user },
        ...(when === undefined ? [] : [{ name: 'what', expression: when }]),
      ],
      variables: Object.entries(variables).map(([name, expression]) => ({ name, expression })),
      validations: validations.map(([expression, message]) => ({ expression, message })),
    },
    labels,
  );
};

/** CEL: whether that account asks. */
export const isAccount = ({ namespace, name }: AccountRef): string =>
  `request.userInfo.username == 'system:serviceaccount:${namespace}:${name}'`;

/** CEL: whether any account of that namespace asks. */
export const isAccountOf = (namespace: string): string =>
  `request.userInfo.username.startsWith('system:serviceaccount:${namespace}:')`;

export const writes = (
  groups: string | string[],
  resources: string[],
  ...operations: string[]
): models.V1NamedRuleWithOperations => ({
  apiGroups: [groups].flat(),
  apiVersions: ['*'],
  resources,
  operations,
});
