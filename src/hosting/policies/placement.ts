/**
 * Where pods of peers run, and as what kind of pod: said by the provider. Our webhook writes it into each pod; that it
 * has is verified here, in the API server, so that without the webhook a pod is refused and never let in unforced. All of
 * it is immutable, or can only become narrower, once a pod is there.
 */
import type { PolicyPair } from '../../api/fence.ts';
import { ANNOTATION_NODE_SELECTOR, ANNOTATION_RUNTIME_CLASS } from '../annotations.ts';
import { BY_PEER, type Validations, forgeTenantAdmission, listedOn, ofPods, saidOn } from './admission.ts';

const affinity = (kind: 'podAffinity' | 'podAntiAffinity'): string => {
  const of = `object.spec.?affinity.?${kind}`;
  const own = (term: string): string =>
    `${term}.?namespaces.orValue([]).size() == 0 && !has(${term}.namespaceSelector)`;
  return (
    `${of}.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]).all(t, ${own('t')}) && ` +
    `${of}.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).all(t, ${own('t.podAffinityTerm')})`
  );
};

/** CEL, of a container: the hosts that its probes and hooks name. Ephemeral containers have neither. */
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
    // Pod Security does so from Kubernetes 1.34 on (KEP-4940).
    expression: `${namesNoHost('containers')} && ${namesNoHost('initContainers')}`,
    message:
      "probes and hooks of peers' pods name no host: the kubelets of this cluster would connect to wherever they say",
  },
  {
    // With none, too: a runtime class may open what a quota closes, such as GPUs by a variable of the environment.
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
    // Another scheduler need not know of taints, or of priorities.
    expression: "object.spec.?schedulerName.orValue('default-scheduler') == 'default-scheduler'",
    message: 'pods of peers are placed by the default scheduler: spec.schedulerName must say no other',
  },
  {
    // A term over all namespaces would keep our own pods off every node that the peer has one on.
    expression: `${affinity('podAffinity')} && ${affinity('podAntiAffinity')}`,
    message:
      'pods of peers speak of pods in their own namespace only: no namespaces and no namespaceSelector in terms of ' +
      'podAffinity and podAntiAffinity',
  },
  {
    // Devices (KEP-4381) are counted by no quota of ours.
    expression: 'object.spec.?resourceClaims.orValue([]).size() == 0',
    message: 'pods of peers may not claim devices of this cluster: spec.resourceClaims must be empty',
  },
  {
    // Our guardian bears results in pods that never run; nobody else here lifts a gate.
    expression: `!(${BY_PEER}) || object.spec.?schedulingGates.orValue([]).size() == 0`,
    message: 'peers may not make pods with scheduling gates: nobody here would lift them',
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantPlacementPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-placement', {
    ...ofPods(),
    variables: [{ name: 'nodes', expression: listedOn(ANNOTATION_NODE_SELECTOR) }],
    validations,
  });
