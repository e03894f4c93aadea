/**
 * What a peer may say of Services here, as ValidatingAdmissionPolicies (KEP-3488). RBAC lets it write Services and
 * EndpointSlices; without these bounds it could draw traffic of others to itself (CVE-2020-8554), or have our proxies
 * send to addresses that it could not reach itself: our pods and nodes (CVE-2021-25740), the proxies' own host
 * (CVE-2021-25737). Our own controllers write in the same namespaces and are not bound.
 */
import type { PolicyPair } from '../../api/fence.ts';
import {
  ANNOTATION_PEER_PREFIXES,
  LABEL_MANAGED_BY,
  LABEL_SLICE_MANAGED_BY,
  SLICE_MANAGER,
} from '../../api/names.ts';
import { forgeTenantAdmission, listedOn, ofPeers } from './admission.ts';
import { ANNOTATION_INGRESS_CLASSES } from './ingress.ts';
import type { TenantAdmission } from './admission.ts';

type Validations = TenantAdmission['validations'];

const WRITES = ['CREATE', 'UPDATE', 'DELETE'];
/** Per slice; Kubernetes' own controllers put 100 into one. */
const MAX_ENDPOINTS = 1000;
/** Of a Service and of a slice; the API server bounds those of a Service by the size of the object only, of a slice by 20,000. */
const MAX_PORTS = 250;
/** Every kube-proxy of the cluster holds each endpoint with each port of its slice. */
const MAX_PAIRS = 25_000;
const MAX_SELECTOR = 64;

/** Annotations of others steer controllers of ours, such as those that publish DNS names. What is there may stay as it is. */
const onlyOurAnnotations: Validations[number] = {
  expression:
    "object == null || object.metadata.?annotations.orValue({}).all(k, k.startsWith('tributary.dev/') || " +
    "k == 'service.kubernetes.io/topology-mode' || " +
    '(oldObject != null && oldObject.metadata.?annotations[?k] == optional.of(object.metadata.annotations[k])))',
  message: "peers may not annotate what steers this cluster's controllers",
};

const labelOf = (object: string, label: string): string =>
  `${object}.metadata.?labels[?'${label}'].orValue('')`;

const serviceValidations: Validations = [
  {
    expression: "object == null || object.spec.type in ['ClusterIP', 'ExternalName']",
    message:
      'Services of peers are of type ClusterIP or ExternalName: they take no port of a node and no load balancer',
  },
  {
    // An ingress controller resolves the name itself, and reaches what neither the peer nor its pods reach.
    expression: `object == null || object.spec.type != 'ExternalName' || ${listedOn(ANNOTATION_INGRESS_CLASSES)}.size() == 0`,
    message:
      'where peers may make Ingresses, their Services may not be of type ExternalName: our ingress controller would ' +
      'follow the name to wherever it can reach',
  },
  {
    expression: 'object == null || !has(object.spec.externalIPs) || object.spec.externalIPs.size() == 0',
    message: 'Services of peers may not claim external IPs (CVE-2020-8554)',
  },
  {
    expression:
      'object == null || (!has(object.spec.loadBalancerIP) && !has(object.spec.loadBalancerClass) && ' +
      '!has(object.spec.loadBalancerSourceRanges) && !has(object.spec.externalTrafficPolicy) && ' +
      '!has(object.spec.healthCheckNodePort) && ' +
      'object.spec.?ports.orValue([]).all(p, !has(p.nodePort) || p.nodePort == 0))',
    message: 'Services of peers say nothing of load balancers and node ports',
  },
  {
    expression:
      `object == null || (object.spec.?ports.orValue([]).size() <= ${MAX_PORTS} && ` +
      `object.spec.?selector.orValue({}).size() <= ${MAX_SELECTOR})`,
    message: `Services of peers have ${MAX_PORTS} ports and ${MAX_SELECTOR} labels in their selector at most`,
  },
  {
    expression: `object == null || ${labelOf('object', LABEL_MANAGED_BY)} != ''`,
    message: `Services of peers bear the label ${LABEL_MANAGED_BY}`,
  },
  onlyOurAnnotations,
];

const isOurs = (object: string): string =>
  `(${labelOf(object, LABEL_SLICE_MANAGED_BY)} == '${SLICE_MANAGER}' && ${labelOf(object, LABEL_MANAGED_BY)} != '')`;
const endpoints = 'object.?endpoints.orValue([])';
const slicePorts = 'object.?ports.orValue([])';

const sliceValidations: Validations = [
  {
    expression: `(object == null || ${isOurs('object')}) && (oldObject == null || ${isOurs('oldObject')})`,
    message:
      `EndpointSlices of peers bear the labels ${LABEL_MANAGED_BY} and ${LABEL_SLICE_MANAGED_BY}=${SLICE_MANAGER}; ` +
      'those of other controllers are not theirs to change',
  },
  {
    expression: "object == null || object.addressType in ['IPv4', 'IPv6']",
    message: 'EndpointSlices of peers name addresses, not names of hosts',
  },
  {
    expression: `object == null || ${endpoints}.size() <= ${MAX_ENDPOINTS}`,
    message: `EndpointSlices of peers have ${MAX_ENDPOINTS} endpoints at most`,
  },
  {
    expression:
      `object == null || (${slicePorts}.size() <= ${MAX_PORTS} && ` +
      `${slicePorts}.size() * ${endpoints}.size() <= ${MAX_PAIRS})`,
    message:
      `EndpointSlices of peers have ${MAX_PORTS} ports at most, and no more than ${MAX_PAIRS} pairs of an endpoint and a port: ` +
      'every kube-proxy of this cluster holds each of them',
  },
  {
    expression:
      `object == null || ${endpoints}.all(e, e.addresses.all(a, isIP(a) && ` +
      'variables.prefixes.exists(p, p.containsIP(a))))',
    message:
      'EndpointSlices of peers may name addresses of the peer only, as this cluster sees them: ' +
      `the prefixes in the annotation ${ANNOTATION_PEER_PREFIXES} of the namespace, none without a tunnel`,
  },
  {
    // Who believes a targetRef or a node takes the endpoint for one of our pods.
    expression: `object == null || ${endpoints}.all(e, !has(e.targetRef) && !has(e.nodeName))`,
    message: 'endpoints of peers are no pods and on no nodes of this cluster',
  },
  onlyOurAnnotations,
];

/** The policies and what puts them in force for every namespace that belongs to a peer. */
export function forgeTenantServicesPolicy(): PolicyPair[number][] {
  return [
    ...forgeTenantAdmission('tributary-tenant-services', {
      ...ofPeers('', 'services', WRITES),
      validations: serviceValidations,
    }),
    ...forgeTenantAdmission('tributary-tenant-endpoints', {
      ...ofPeers('discovery.k8s.io', 'endpointslices', WRITES),
      variables: [
        {
          name: 'prefixes',
          expression: `${listedOn(ANNOTATION_PEER_PREFIXES)}.map(p, cidr(p))`,
        },
      ],
      validations: sliceValidations,
    }),
  ];
}
