import { type PolicyPair, writes } from '../../api/fence.ts';
import { LABEL_HOME_UID } from '../../api/names.ts';
import { ANNOTATION_EXTENDED, ANNOTATION_MAX_PRIORITY, ANNOTATION_TOLERATIONS } from '../annotations.ts';
import {
  forgeTenantAdmission,
  listedOn,
  ofPeers,
  ofPods,
  saidOn,
  type TenantAdmission,
  type Validations,
} from './admission.ts';

/**
 * What neither RBAC nor Pod Security says about pods of peers, as a ValidatingAdmissionPolicy (KEP-3488): it runs in
 * the API server itself, so no webhook has to be up for it to hold. One policy serves all tenants.
 */

const NAME = 'tributary-tenants';

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
const isOfHome = (pod: string): string => `${pod}.metadata.?labels[?'${LABEL_HOME_UID}'].hasValue()`;

const podValidations: TenantAdmission['validations'] = [
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
    expression: `${isOfHome('object')} || (oldObject != null && !${isOfHome('oldObject')})`,
    message: `pods of peers bear the label ${LABEL_HOME_UID}`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantPolicy = (): PolicyPair =>
  forgeTenantAdmission(NAME, {
    resourceRules: [
      { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] },
    ],
    validations: podValidations,
  });

/** Pods of peers are nobody in this cluster: no account, no token of it, whatever has become of the `default` account. */

const identityValidations: Validations = [
  {
    expression: "object.spec.?serviceAccountName.orValue('default') in ['', 'default']",
    message: 'pods of peers run as no account of this cluster: spec.serviceAccountName must be empty',
  },
  {
    expression: '!object.spec.?automountServiceAccountToken.orValue(false)',
    message: 'pods of peers get no token of this cluster: spec.automountServiceAccountToken must not be true',
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantIdentityPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-identity', { ...ofPods(), validations: identityValidations });

/**
 * What peers do to pods that are there. A pod that is deleted without grace is gone from the API at once, and from every
 * quota, while its containers run on for as long as its own spec says (kubelet, calculateEffectiveGracePeriod): up to a day.
 */

/** What the gates of a pod are called; in an order that never changes. */
const gates = (pod: string): string => `${pod}.spec.?schedulingGates.orValue([]).map(g, g.name)`;

const livesValidations: Validations = [
  {
    // As it is in effect: 0, too, for a pod that no node has or that has ended, or wants none itself.
    expression:
      "request.operation != 'DELETE' || request.?options.?gracePeriodSeconds.orValue(1) != 0 || " +
      "oldObject.spec.?nodeName.orValue('') == '' || oldObject.?status.?phase.orValue('') in ['Succeeded', 'Failed'] || " +
      'oldObject.spec.?terminationGracePeriodSeconds.orValue(30) == 0',
    message:
      'peers may not delete pods by force: gracePeriodSeconds is 1 at least; without it the pod would run on unseen, ' +
      'beyond all quotas',
  },
  {
    // What bears a result for a home that is away was admitted as a pod that never runs.
    expression: `request.operation != 'UPDATE' || ${gates('oldObject')} == ${gates('object')}`,
    message: 'peers may not lift scheduling gates of pods: they are put there by this cluster',
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantLivesPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-lives', {
    ...ofPeers('', 'pods', ['UPDATE', 'DELETE']),
    validations: livesValidations,
  });

/**
 * How large pods of peers may be. The API server bounds the object as a whole (about 1.5 MB in etcd); what nodes and our
 * own controllers do with each part of it is bounded here, far above what anybody honest has.
 */

const MOST = {
  containers: 64,
  env: 1000,
  envFrom: 100,
  ports: 250,
  mounts: 250,
  volumes: 250,
  sources: 100,
  tolerations: 64,
  hostAliases: 250,
  pullSecrets: 64,
  graceSeconds: 86_400,
  /** Of the name of an image. */
  image: 1024,
};

/** CEL: on each container of all lists. */
const each = (condition: (container: string) => string): string =>
  ['containers', 'initContainers', 'ephemeralContainers']
    .map((list) => `object.spec.?${list}.orValue([]).all(c, ${condition('c')})`)
    .join(' && ');
const size = (what: string): string => `${what}.orValue([]).size()`;
const atMost = (field: string, most: number): string => `${size(`object.spec.?${field}`)} <= ${most}`;

const sizesValidations: Validations = [
  {
    expression: ['containers', 'initContainers', 'ephemeralContainers']
      .map((list) => atMost(list, MOST.containers))
      .join(' && '),
    message: `pods of peers have ${MOST.containers} containers of each sort at most`,
  },
  {
    expression: each(
      (c) => `${size(`${c}.?env`)} <= ${MOST.env} && ${size(`${c}.?envFrom`)} <= ${MOST.envFrom}`,
    ),
    message: `containers of peers have ${MOST.env} variables and ${MOST.envFrom} sources of them at most`,
  },
  {
    expression: each(
      (c) => `${size(`${c}.?ports`)} <= ${MOST.ports} && ${size(`${c}.?volumeMounts`)} <= ${MOST.mounts}`,
    ),
    message: `containers of peers have ${MOST.ports} ports and ${MOST.mounts} mounts at most`,
  },
  {
    expression:
      `${atMost('volumes', MOST.volumes)} && ` +
      `object.spec.?volumes.orValue([]).all(v, ${size('v.?projected.?sources')} <= ${MOST.sources})`,
    message: `pods of peers have ${MOST.volumes} volumes of ${MOST.sources} projected sources at most`,
  },
  {
    expression: [
      atMost('tolerations', MOST.tolerations),
      atMost('hostAliases', MOST.hostAliases),
      atMost('imagePullSecrets', MOST.pullSecrets),
    ].join(' && '),
    message: `pods of peers have ${MOST.tolerations} tolerations, ${MOST.hostAliases} hostAliases and ${MOST.pullSecrets} imagePullSecrets at most`,
  },
  {
    expression: each((c) => `${c}.?image.orValue('').size() <= ${MOST.image}`),
    message: `images of containers of peers have names of ${MOST.image} characters at most`,
  },
  {
    // A node that is drained waits as long.
    expression: `object.spec.?terminationGracePeriodSeconds.orValue(0) <= ${MOST.graceSeconds}`,
    message: `pods of peers end within a day: terminationGracePeriodSeconds is ${MOST.graceSeconds} at most`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantSizesPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-sizes', {
    resourceRules: [
      // Images and tolerations of a pod that is there can grow.
      writes('', ['pods'], 'CREATE', 'UPDATE'),
      writes('', ['pods/ephemeralcontainers'], 'UPDATE'),
    ],
    // A pod from before these bounds must be able to end: finalizers are no part of its spec.
    matchConditions: [{ name: 'grows', expression: 'oldObject == null || object.spec != oldObject.spec' }],
    validations: sizesValidations,
  });
