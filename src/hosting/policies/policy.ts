/**
 * What neither RBAC nor Pod Security says about pods of peers, as a ValidatingAdmissionPolicy (KEP-3488): it runs in
 * the API server itself, so no webhook has to be up for it to hold. One policy serves all tenants.
 */
import type { PolicyPair } from '../../api/fence.ts';
import { LABEL_HOME_UID } from '../../api/names.ts';
import type { ResourceList } from '../../api/wire.ts';
import { ANNOTATION_TOLERATIONS } from '../tenants/annotations.ts';
import { forgeTenantAdmission, listedOn, saidOn } from './admission.ts';
import type { TenantAdmission } from './admission.ts';

/** On a tenant namespace: the highest priority that pods there may have. */
export const ANNOTATION_MAX_PRIORITY = 'tributary.dev/max-priority';

/** On a tenant namespace: the extended resources that pods there may ask for, joined by commas. */
export const ANNOTATION_EXTENDED = 'tributary.dev/extended-resources';

const NAME = 'tributary-tenants';

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

/** What a pod asks for as a whole (KEP-2837) may only be what quotas count anyway, and huge pages. */
const asksForGrantedAsWhole =
  'object.spec.?resources.?requests.orValue({}).all(r, ' +
  `!r.startsWith('hugepages-') || r in ${listedOn(ANNOTATION_EXTENDED)})`;

/** Whether `object` or `oldObject` bears the label by which the gateway finds pods of peers. */
const isMarked = (pod: string): string => `${pod}.metadata.?labels[?'${LABEL_HOME_UID}'].hasValue()`;

const validations: TenantAdmission['validations'] = [
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
    // An empty key tolerates everything, the control plane's taint included. What the provider itself gives may be that.
    expression:
      "object.spec.?tolerations.orValue([]).all(t, t.?key.orValue('') != '' && " +
      "((!t.key.startsWith('node-role.kubernetes.io/') && t.key != 'node.kubernetes.io/unschedulable') || " +
      `${saidOn(ANNOTATION_TOLERATIONS)}.replace(' ', '').contains('"key":"' + t.key + '"')))`,
    message: 'pods of peers may not tolerate the taints of control-plane and cordoned nodes, nor all taints',
  },
  {
    // A quota says nothing of a resource that it does not name, and would let all GPUs go to a peer with none.
    expression:
      `oldObject != null || (${asksForGranted('containers')} && ${asksForGranted('initContainers')} && ` +
      `${asksForGrantedAsWhole})`,
    message: `pods of peers may ask for the extended resources of the annotation ${ANNOTATION_EXTENDED} only`,
  },
  {
    // Without it the gateway takes the pod for one of ours, and so do other peers. Pods from before can still end.
    expression: `${isMarked('object')} || (oldObject != null && !${isMarked('oldObject')})`,
    message: `pods of peers bear the label ${LABEL_HOME_UID}`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantPolicy = (): PolicyPair =>
  forgeTenantAdmission(NAME, {
    resourceRules: [
      { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] },
    ],
    validations,
  });
