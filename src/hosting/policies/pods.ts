/**
 * What neither RBAC nor Pod Security can say about pods of peers. The policies run in the API server itself, so they hold
 * also when no webhook is up.
 */
import type { PolicyPair } from '../../api/fence.ts';
import { LABEL_HOME_UID, TAINT_VIRTUAL_NODE } from '../../api/names.ts';
import { NEVER_TOLERATED, NODE_LIFE_TAINTS } from '../../api/taints.ts';
import {
  ANNOTATION_EXTENDED,
  ANNOTATION_FENCED,
  ANNOTATION_MAX_PRIORITY,
  ANNOTATION_OWN_TOLERATIONS,
  ANNOTATION_PRIORITY_CLASSES,
  ANNOTATION_TOLERATIONS,
} from '../annotations.ts';
import {
  celList,
  eachContainer,
  forgeTenantAdmission,
  listedOn,
  ofPeers,
  saidOn,
  unless,
  type Validations,
} from './admission.ts';
import type { PodBounds } from './pod-bounds.ts';

/** CEL: whether all containers of a list ask only for granted resources. The API server copies limits into requests. */
const asksForGranted = (list: 'containers' | 'initContainers'): string =>
  `(!has(object.spec.${list}) || object.spec.${list}.all(c, !has(c.resources) || !has(c.resources.requests) || ` +
  `c.resources.requests.all(r, !(r.contains('/') || r.startsWith('hugepages-')) || ` +
  `r in namespaceObject.metadata.?annotations[?'${ANNOTATION_EXTENDED}'].orValue('').split(','))))`;

/** CEL: the same for the pod as a whole (KEP-2837), which can ask for cpu, memory and huge pages only. */
const asksForGrantedAsWhole =
  'object.spec.?resources.?requests.orValue({}).all(r, ' +
  `!r.startsWith('hugepages-') || r in ${listedOn(ANNOTATION_EXTENDED)})`;

/** CEL: whether `object` or `oldObject` bears the label by which the gateway finds pods of peers. */
const isOfHome = (pod: string): string => `${pod}.metadata.?labels[?'${LABEL_HOME_UID}'].hasValue()`;

/** CEL: whether this cluster itself gives the toleration `t`; of virtual nodes, those only that it names. */
const isGiven =
  `(variables.given.contains('"key":"' + t.key + '"') && (t.key != '${TAINT_VIRTUAL_NODE}' || ` +
  `variables.given.contains('"key":"' + t.key + '","operator":"Equal","value":"' + t.?value.orValue('') + '"')))`;
/** CEL: an API server gives these two to each pod (DefaultTolerationSeconds). */
const isOfNodeLife = `(t.key in ${celList(NODE_LIFE_TAINTS)} && t.?effect.orValue('') == 'NoExecute')`;
/** CEL: one of the peer's own, which the policy opens. */
const isOwn =
  `(variables.own.exists(k, k == t.key || k == '*') && ` +
  `${NEVER_TOLERATED.map((key) => `!t.key.startsWith('${key}')`).join(' && ')})`;

/** What is given to a pod when it is made, and cannot change later. */
const shareBounds: PodBounds = {
  validations: [
    {
      // The scheduler never sees a pod that is created with a node name: taints, affinity and free room would not count.
      expression: "!has(object.spec.nodeName) || object.spec.nodeName == ''",
      message: 'pods of peers are placed by this cluster: spec.nodeName must be empty',
    },
    {
      // Priority preempts: without a bound, pods of a peer could push out our own. A class may have come anew with another
      // preemptionPolicy, so what the API server has made of its name counts. After the bound was lowered, running pods
      // must still accept updates.
      expression:
        "!has(object.spec.priority) || object.spec.priority <= int(namespaceObject.metadata.?annotations[?'" +
        `${ANNOTATION_MAX_PRIORITY}'].orValue('0')) || (object.spec.?priorityClassName.orValue('') in ` +
        `${listedOn(ANNOTATION_PRIORITY_CLASSES)} && object.spec.?preemptionPolicy.orValue('') == 'Never')`,
      message:
        `pods of peers may not outrank ours: their priority is bounded by the annotation ${ANNOTATION_MAX_PRIORITY}; above it, ` +
        `they have PriorityClasses of the annotation ${ANNOTATION_PRIORITY_CLASSES} only, with preemptionPolicy: Never`,
    },
    {
      // A quota does not bound a resource that it does not name: a peer with no GPU granted could take all of them.
      expression: `${asksForGranted('containers')} && ${asksForGranted('initContainers')} && ${asksForGrantedAsWhole}`,
      message: `pods of peers may ask for the extended resources of the annotation ${ANNOTATION_EXTENDED} only`,
    },
  ],
};

/** Labels and tolerations can change. */
const changeBounds: PodBounds = {
  at: ['Create', 'Update'],
  variables: {
    given: `${saidOn(ANNOTATION_TOLERATIONS)}.replace(' ', '')`,
    own: listedOn(ANNOTATION_OWN_TOLERATIONS),
  },
  validations: [
    {
      // What a pod from before these bounds tolerates stays. An empty key tolerates everything, also the control plane's taint.
      expression:
        'object.spec.?tolerations.orValue([]).all(t, ' +
        `(oldObject != null && t in oldObject.spec.?tolerations.orValue([])) || (t.?key.orValue('') != '' && ` +
        `(${isGiven} || ${isOfNodeLife} || t.key in ${listedOn(ANNOTATION_EXTENDED)} || ${isOwn})))`,
      message:
        'pods of peers tolerate no taints but those that the provider names ' +
        `(SharingPolicy ownTolerations, annotation ${ANNOTATION_OWN_TOLERATIONS} of the namespace), and never the taints of ` +
        'control-plane and cordoned nodes, nor all taints',
    },
    {
      // Without it, the gateway and other peers would take the pod for one of ours. Pods from before this rule can still end.
      expression: `${isOfHome('object')} || (oldObject != null && !${isOfHome('oldObject')})`,
      message: `pods of peers bear the label ${LABEL_HOME_UID}`,
    },
  ],
};

/** Pods of peers have no account and no token of this cluster, whatever has happened to the `default` account. */
const identityBounds: PodBounds = {
  validations: [
    {
      expression: "object.spec.?serviceAccountName.orValue('default') in ['', 'default']",
      message: 'pods of peers run as no account of this cluster: spec.serviceAccountName must be empty',
    },
    {
      expression: '!object.spec.?automountServiceAccountToken.orValue(false)',
      message:
        'pods of peers get no token of this cluster: spec.automountServiceAccountToken must not be true',
    },
  ],
};

/**
 * What peers do to pods that are there. A pod that is deleted without grace is at once gone from the API and from every quota,
 * while its containers run on for as long as its own spec says (kubelet, calculateEffectiveGracePeriod): up to a day.
 */

/** CEL: the names of a pod's scheduling gates, whose order never changes. */
const gates = (pod: string): string => `${pod}.spec.?schedulingGates.orValue([]).map(g, g.name)`;

const livesValidations: Validations = [
  {
    // The effective value: it is 0 also for a pod that has no node, has ended, or asks for no grace itself.
    expression:
      "request.operation != 'DELETE' || request.?options.?gracePeriodSeconds.orValue(1) != 0 || " +
      "oldObject.spec.?nodeName.orValue('') == '' || oldObject.?status.?phase.orValue('') in ['Succeeded', 'Failed'] || " +
      'oldObject.spec.?terminationGracePeriodSeconds.orValue(30) == 0',
    message:
      'peers may not delete pods by force: gracePeriodSeconds is 1 at least; without it the pod would run on unseen, ' +
      'beyond all quotas',
  },
  {
    // A pod that bears a result for a home that is away was admitted as one that never runs.
    expression: `request.operation != 'UPDATE' || ${gates('oldObject')} == ${gates('object')}`,
    message: 'peers may not lift scheduling gates of pods: they are put there by this cluster',
  },
];

export const forgeTenantLivesPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-lives', {
    ...ofPeers('', 'pods', ['UPDATE', 'DELETE']),
    validations: livesValidations,
  });

/** The peer may run its pods at home meanwhile. */
const fenceBounds: PodBounds = {
  validations: [
    {
      expression: `${saidOn(ANNOTATION_FENCED)} != 'true'`,
      message:
        'nothing was heard of the cluster whose pods these are, and it may run them itself by now: no pod is taken before it is back',
    },
  ],
};

/**
 * How large pods of peers may be. The API server bounds the object as a whole (about 1.5 MB in etcd). These bounds, far above
 * any honest use, limit the work that each part of it causes on nodes and in controllers.
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
  /** Characters of the name of an image. */
  image: 1024,
};

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
    expression: eachContainer(`${size('c.?env')} <= ${MOST.env} && ${size('c.?envFrom')} <= ${MOST.envFrom}`),
    message: `containers of peers have ${MOST.env} variables and ${MOST.envFrom} sources of them at most`,
  },
  {
    expression: eachContainer(
      `${size('c.?ports')} <= ${MOST.ports} && ${size('c.?volumeMounts')} <= ${MOST.mounts}`,
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
    expression: eachContainer(`c.?image.orValue('').size() <= ${MOST.image}`),
    message: `images of containers of peers have names of ${MOST.image} characters at most`,
  },
  {
    // The drain of a node waits for it.
    expression: `object.spec.?terminationGracePeriodSeconds.orValue(0) <= ${MOST.graceSeconds}`,
    message: `pods of peers end within a day: terminationGracePeriodSeconds is ${MOST.graceSeconds} at most`,
  },
];

/** Images, tolerations and containers of an existing pod can grow. */
const sizeBounds: PodBounds = {
  at: ['Create', 'Update', 'Debug'],
  // A pod from before these bounds must be able to end: its finalizers are not in its spec.
  variables: { isSame: 'oldObject != null && object.spec == oldObject.spec' },
  validations: unless('variables.isSame', sizesValidations),
};

/** The first one that a pod breaks is what its maker is told. */
export const podBounds: readonly PodBounds[] = [
  fenceBounds,
  shareBounds,
  changeBounds,
  identityBounds,
  sizeBounds,
];
