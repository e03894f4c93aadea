/**
 * What neither RBAC nor Pod Security says about pods of peers, as a ValidatingAdmissionPolicy (KEP-3488): it runs in
 * the API server itself, so no webhook has to be up for it to hold. One policy serves all tenants.
 */
import { APP_NAME, LABEL_APP_NAME, type ManifestOf } from '../api/manifest.ts';
import type { ResourceList, Stored } from '../api/wire.ts';
import { LABEL_PEER } from './labels.ts';
import type * as models from '@kubernetes/client-node';

type Policy = Stored<models.V1ValidatingAdmissionPolicy>;
type PolicyBinding = Stored<models.V1ValidatingAdmissionPolicyBinding>;

/** On a tenant namespace: the highest priority that pods there may have. */
export const ANNOTATION_MAX_PRIORITY = 'tributary.dev/max-priority';

/** On a tenant namespace: the extended resources that pods there may ask for, joined by commas. */
export const ANNOTATION_EXTENDED = 'tributary.dev/extended-resources';

const NAME = 'tributary-tenants';
const ADMISSION_VERSION = 'admissionregistration.k8s.io/v1';

/** Not cpu, memory and the like: what a quota bounds only where it names it, such as a GPU, or huge pages. */
const isExtended = (resource: string): boolean => resource.includes('/') || resource.startsWith('hugepages-');

/** The annotation for a quota's resources. */
export const extendedResources = (quota: Readonly<ResourceList>): string =>
  Object.keys(quota).filter(isExtended).toSorted().join(',');

/** Whether all containers of a list ask for granted resources only; the API server copies limits into requests. */
const asksForGranted = (list: 'containers' | 'initContainers'): string =>
  `(!has(object.spec.${list}) || object.spec.${list}.all(c, !has(c.resources) || !has(c.resources.requests) || ` +
  `c.resources.requests.all(r, !(r.contains('/') || r.startsWith('hugepages-')) || ` +
  `r in namespaceObject.metadata.?annotations[?'${ANNOTATION_EXTENDED}'].orValue('').split(','))))`;

const validations: NonNullable<NonNullable<Policy['spec']>['validations']> = [
  {
    // A pod created with a node name never meets the scheduler, and so no taint, no affinity, no free room.
    expression: "oldObject != null || !has(object.spec.nodeName) || object.spec.nodeName == ''",
    message: 'pods of peers are placed by this cluster: spec.nodeName must be empty',
  },
  {
    // Priority preempts: without a bound, pods of a peer could push out our own.
    // It cannot change later; a bound that was lowered must not lock the pods that run.
    expression:
      "oldObject != null || !has(object.spec.priority) || object.spec.priority <= int(namespaceObject.metadata.?annotations[?'" +
      `${ANNOTATION_MAX_PRIORITY}'].orValue('0'))`,
    message: `pods of peers may not outrank ours: their priority is bounded by the annotation ${ANNOTATION_MAX_PRIORITY}`,
  },
  {
    // An empty key tolerates everything, the control plane's taint included.
    expression:
      "!has(object.spec.tolerations) || object.spec.tolerations.all(t, has(t.key) && t.key != '' && " +
      "!t.key.startsWith('node-role.kubernetes.io/'))",
    message: 'pods of peers may not tolerate the taints of control-plane nodes, nor all taints',
  },
  {
    // A quota says nothing of a resource that it does not name, and would let all GPUs go to a peer with none.
    expression: `oldObject != null || (${asksForGranted('containers')} && ${asksForGranted('initContainers')})`,
    message: `pods of peers may ask for the extended resources of the annotation ${ANNOTATION_EXTENDED} only`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export function forgeTenantPolicy(): [ManifestOf<Policy>, ManifestOf<PolicyBinding>] {
  const metadata = { name: NAME, labels: { [LABEL_APP_NAME]: APP_NAME } };
  return [
    {
      apiVersion: ADMISSION_VERSION,
      kind: 'ValidatingAdmissionPolicy',
      metadata,
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          namespaceSelector: { matchExpressions: [{ key: LABEL_PEER, operator: 'Exists' }] },
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] },
          ],
        },
        validations,
      },
    },
    {
      apiVersion: ADMISSION_VERSION,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: NAME, validationActions: ['Deny'] },
    },
  ];
}
