/**
 * Where pods of peers run, and with which runtime class, as the SharingPolicy says. Our webhook writes it into each pod
 * (guests/placement.ts). The API server verifies here that it did: when the webhook is down, a pod is refused, and never let
 * in without it. Once a pod is there, all of it is immutable or can only become narrower.
 */
import { TOPOLOGY_KEYS } from '../../api/placement.ts';
import { LABEL_PEER } from '../../api/tenant-labels.ts';
import { ANNOTATION_NODE_SELECTOR, ANNOTATION_RUNTIME_CLASS } from '../annotations.ts';
import { BY_PEER, celList, listedOn, saidOn, type Validations } from './admission.ts';
import type { PodBounds } from './pod-bounds.ts';

/** CEL: the peer whose namespace this is. */
const PEER = `namespaceObject.metadata.?labels[?'${LABEL_PEER}'].orValue('')`;
/** At most so many rules of one sort: the scheduler looks at each for each pod and node. */
const MOST_RULES = 32;

/** CEL: a condition for each term of affinity. */
const eachTerm = (condition: (term: string) => string): string =>
  ['podAffinity', 'podAntiAffinity']
    .map((kind) => `object.spec.?affinity.?${kind}`)
    .flatMap((of) => [
      `${of}.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]).all(t, ${condition('t')})`,
      `${of}.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).all(t, ${condition('t.podAffinityTerm')})`,
    ])
    .join(' && ');

const isOwn = (term: string): string =>
  `${term}.?namespaces.orValue([]).size() == 0 && (!has(${term}.namespaceSelector) || ` +
  `${term}.namespaceSelector.?matchLabels[?'${LABEL_PEER}'] == optional.of(${PEER}))`;
const isOpenKey = (rule: string): string => `${rule}.topologyKey in ${celList(TOPOLOGY_KEYS)}`;
const SPREAD = 'object.spec.?topologySpreadConstraints.orValue([])';
const RULES = ['podAffinity', 'podAntiAffinity'].flatMap((kind) =>
  ['required', 'preferred'].map(
    (when) => `object.spec.?affinity.?${kind}.?${when}DuringSchedulingIgnoredDuringExecution.orValue([])`,
  ),
);

/** CEL: where the probes and hooks of a container name a host. Ephemeral containers have neither. */
const HOSTS = [
  'livenessProbe.?httpGet',
  'livenessProbe.?tcpSocket',
  'readinessProbe.?httpGet',
  'readinessProbe.?tcpSocket',
  'startupProbe.?httpGet',
  'startupProbe.?tcpSocket',
  'lifecycle.?postStart.?httpGet',
  'lifecycle.?postStart.?tcpSocket',
  'lifecycle.?preStop.?httpGet',
  'lifecycle.?preStop.?tcpSocket',
];
const namesNoHost = (list: string): string =>
  `object.spec.?${list}.orValue([]).all(c, ${HOSTS.map((of) => `c.?${of}.?host.orValue('') == ''`).join(' && ')})`;

const validations: Validations = [
  {
    // Pod Security checks this, too, from Kubernetes 1.34 on (KEP-4940).
    expression: `${namesNoHost('containers')} && ${namesNoHost('initContainers')}`,
    message:
      "probes and hooks of peers' pods name no host: the kubelets of this cluster would connect to wherever they say",
  },
  {
    // Also where the annotation is absent: a runtime class may give what a quota refuses, such as GPUs by an environment variable.
    expression: `object.spec.?runtimeClassName.orValue('') == ${saidOn(ANNOTATION_RUNTIME_CLASS)}`,
    messageExpression:
      "'pods of peers run with the runtime class of the provider: \"' + " +
      `${saidOn(ANNOTATION_RUNTIME_CLASS)} + '" by the annotation ${ANNOTATION_RUNTIME_CLASS} of the namespace, not "' + ` +
      "object.spec.?runtimeClassName.orValue('') + '\"'",
    message: `pods of peers run with the runtime class of the annotation ${ANNOTATION_RUNTIME_CLASS} of the namespace, and with none where it has none`,
  },
  {
    expression:
      "variables.nodes.all(it, object.spec.?nodeSelector[?it.split('=')[0].trim()] == optional.of(it.split('=')[1].trim()))",
    message: `pods of peers run on nodes with the labels in the annotation ${ANNOTATION_NODE_SELECTOR} of the namespace: all of them must be in spec.nodeSelector`,
  },
  {
    // Another scheduler may ignore taints and priorities.
    expression: "object.spec.?schedulerName.orValue('default-scheduler') == 'default-scheduler'",
    message: 'pods of peers are placed by the default scheduler: spec.schedulerName must say no other',
  },
  {
    // Anti-affinity works both ways: a term over all namespaces would keep our own pods off every node on which the peer has one. A
    // selector of namespaces that the webhook has not narrowed (guests/placement.ts) is one over all.
    expression: eachTerm(isOwn),
    message:
      'pods of peers speak of pods in the namespaces of that peer only: terms of podAffinity and podAntiAffinity name no ' +
      `namespaces, and their namespaceSelector has the label ${LABEL_PEER} of the namespace`,
  },
  {
    // Another key is a label that we have given our nodes for ourselves; its values are not to be found out.
    expression: `${eachTerm(isOpenKey)} && ${SPREAD}.all(t, ${isOpenKey('t')})`,
    message: `pods of peers speak of other pods by host, zone and region only: topologyKey is one of ${TOPOLOGY_KEYS.join(', ')}`,
  },
  {
    expression: [...RULES, SPREAD].map((list) => `${list}.size() <= ${MOST_RULES}`).join(' && '),
    message: `pods of peers have ${MOST_RULES} rules about other pods of each sort at most`,
  },
  {
    // No quota of ours counts devices (KEP-4381).
    expression: 'object.spec.?resourceClaims.orValue([]).size() == 0',
    message: 'pods of peers may not claim devices of this cluster: spec.resourceClaims must be empty',
  },
  {
    // Our guardian keeps results in pods that never run; nobody else here uses or lifts gates.
    expression: `!(${BY_PEER}) || object.spec.?schedulingGates.orValue([]).size() == 0`,
    message: 'peers may not make pods with scheduling gates: nobody here would lift them',
  },
];

export const placementBounds: PodBounds = {
  variables: { nodes: listedOn(ANNOTATION_NODE_SELECTOR) },
  validations,
};
