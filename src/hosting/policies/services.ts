/**
 * What a peer may write into Services, EndpointSlices and Ingresses. Without these bounds it could draw traffic of others to
 * itself (CVE-2020-8554), or make our proxies send to addresses that it cannot reach itself: our pods and nodes
 * (CVE-2021-25740), the proxies' own host (CVE-2021-25737). Our own controllers write in the same namespaces and are not
 * bound.
 */
import type { PolicyPair } from '../../api/fence.ts';
import {
  ANNOTATION_PEER_PREFIXES,
  LABEL_MANAGED_BY,
  LABEL_SLICE_MANAGED_BY,
  SLICE_MANAGER,
} from '../../api/names.ts';
import {
  ANNOTATION_EXTERNAL_NAMES,
  ANNOTATION_INGRESS_CLASSES,
  ANNOTATION_INGRESS_HOSTS,
} from '../annotations.ts';
import { forgeTenantAdmission, listedOn, ofPeers, saidOn, type Validations, WRITES } from './admission.ts';

/** Of one slice. Kubernetes' own controllers put 100 into one. */
const MAX_ENDPOINTS = 1000;
/** Of a Service, and of a slice. The API server bounds a Service only by the size of the object, a slice by 20,000 ports. */
const MAX_PORTS = 250;
/** Every kube-proxy of the cluster holds each endpoint with each port of its slice. */
export const MAX_PAIRS = 25_000;
const MAX_SELECTOR = 64;

/** Other annotations steer controllers of this cluster, such as those that publish DNS names. Those already there may stay. */
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
    // An ingress controller resolves the name itself, and reaches addresses that neither the peer nor its pods reach.
    expression:
      "object == null || object.spec.type != 'ExternalName' || " +
      "(oldObject != null && oldObject.spec.type == 'ExternalName' && object.spec.?externalName == oldObject.spec.?externalName) || " +
      `(${saidOn(ANNOTATION_EXTERNAL_NAMES)} == 'Allow' && ${listedOn(ANNOTATION_INGRESS_CLASSES)}.size() == 0)`,
    message:
      'Services of peers may not be of type ExternalName unless the provider says so (SharingPolicy externalNames), and never ' +
      'where peers may make Ingresses or routes: our ingress controller would follow the name to wherever it can reach',
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
    // Programs that believe a targetRef or a node name would take the endpoint for one of our pods.
    expression: `object == null || ${endpoints}.all(e, !has(e.targetRef) && !has(e.nodeName))`,
    message: 'endpoints of peers are no pods and on no nodes of this cluster',
  },
  onlyOurAnnotations,
];

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

/**
 * An ingress controller belongs to this cluster, reads Secrets of all namespaces and answers for hosts of everybody. Text of a
 * peer must not become its configuration (CVE-2021-25742, CVE-2021-25745, CVE-2025-1974), and a peer must not get a host of
 * somebody else.
 */

const LIMITS = { rules: 32, paths: 64, tls: 32 };

/** No character that could end a directive or begin a pattern. */
const PATH = '^/[-A-Za-z0-9._~+@:/]*$';

/** Annotations that set times, sizes and protocols, and never a destination or raw configuration. */
const ANNOTATIONS = [
  'nginx.ingress.kubernetes.io/backend-protocol',
  'nginx.ingress.kubernetes.io/force-ssl-redirect',
  'nginx.ingress.kubernetes.io/proxy-body-size',
  'nginx.ingress.kubernetes.io/proxy-buffering',
  'nginx.ingress.kubernetes.io/proxy-connect-timeout',
  'nginx.ingress.kubernetes.io/proxy-read-timeout',
  'nginx.ingress.kubernetes.io/proxy-send-timeout',
  'nginx.ingress.kubernetes.io/ssl-redirect',
  'traefik.ingress.kubernetes.io/router.tls',
];
const ANNOTATION_VALUE = '^[A-Za-z0-9]{1,16}$';

const LISTED = `[${ANNOTATIONS.map((key) => `'${key}'`).join(', ')}]`;
const isAllowed = (host: string): string =>
  `(${host} != '' && !${host}.startsWith('*') && ` +
  `variables.hosts.exists(s, s == '*' || ${host} == s || ${host}.endsWith('.' + s)))`;
const paths = 'r.?http.?paths.orValue([])';

const ingressValidations: Validations = [
  {
    expression: "object.spec.?ingressClassName.orValue('') in variables.classes",
    message:
      'Ingresses of peers name a class that this cluster offers them: those in the annotation ' +
      `${ANNOTATION_INGRESS_CLASSES} of the namespace (SharingPolicy ingressClasses)`,
  },
  {
    expression: 'variables.rules.size() > 0 && !has(object.spec.defaultBackend)',
    message:
      'Ingresses of peers have rules and no default backend, which would answer for hosts of everybody',
  },
  {
    expression: `variables.rules.all(r, ${isAllowed("r.?host.orValue('')")})`,
    message:
      'Ingresses of peers name a host in each rule, without wildcards, and within the hosts in the annotation ' +
      `${ANNOTATION_INGRESS_HOSTS} of the namespace (SharingPolicy ingressHosts; none are open unless it says so)`,
  },
  {
    expression: `variables.tls.all(t, t.?hosts.orValue([]).size() > 0 && t.hosts.all(h, ${isAllowed('h')}))`,
    message: 'Ingresses of peers name the hosts of each certificate, within the hosts that rules may name',
  },
  {
    expression:
      `variables.rules.all(r, ${paths}.all(p, !has(p.backend.resource) && ` +
      `p.?path.orValue('/').matches('${PATH}')))`,
    message:
      'Ingresses of peers lead to Services only, and their paths are plain: no pattern, no space, no quote',
  },
  {
    expression:
      `variables.rules.size() <= ${LIMITS.rules} && variables.tls.size() <= ${LIMITS.tls} && ` +
      `variables.rules.all(r, ${paths}.size() <= ${LIMITS.paths})`,
    message: `Ingresses of peers have ${LIMITS.rules} rules of ${LIMITS.paths} paths and ${LIMITS.tls} certificates at most`,
  },
  {
    // What our own controllers have written may stay as it is.
    expression:
      "object.metadata.?annotations.orValue({}).all(k, k.startsWith('tributary.dev/') || " +
      `(k in ${LISTED} && object.metadata.annotations[k].matches('${ANNOTATION_VALUE}')) || ` +
      '(oldObject != null && oldObject.metadata.?annotations[?k] == optional.of(object.metadata.annotations[k])))',
    message: `annotations of peers' Ingresses are of a short list, with plain values; any other could configure this cluster's ingress controller: ${ANNOTATIONS.join(', ')}`,
  },
];

export const forgeTenantIngressPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-ingresses', {
    ...ofPeers('networking.k8s.io', 'ingresses'),
    variables: [
      { name: 'classes', expression: listedOn(ANNOTATION_INGRESS_CLASSES) },
      { name: 'hosts', expression: listedOn(ANNOTATION_INGRESS_HOSTS) },
      { name: 'rules', expression: 'object.spec.?rules.orValue([])' },
      { name: 'tls', expression: 'object.spec.?tls.orValue([])' },
    ],
    validations: ingressValidations,
  });
