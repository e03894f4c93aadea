/**
 * What a peer may say in an Ingress, as a ValidatingAdmissionPolicy (KEP-3488). An ingress controller belongs to the
 * provider, reads Secrets of all namespaces and answers for hosts of everybody: text of a peer must not become its
 * configuration (CVE-2021-25742, CVE-2021-25745, CVE-2025-1974), and no host of the provider may become the peer's.
 */
import type { PolicyPair } from '../../api/fence.ts';
import { forgeTenantAdmission, listedOn, ofPeers } from './admission.ts';
import type { TenantAdmission } from './admission.ts';

/** On a tenant namespace: the ingress classes that Ingresses there may name, joined by commas. */
export const ANNOTATION_INGRESS_CLASSES = 'tributary.dev/ingress-classes';
/**
 * On a tenant namespace: the hosts that Ingresses there may name, joined by commas; each stands for itself and all
 * names below it, `*` for any host.
 */
export const ANNOTATION_INGRESS_HOSTS = 'tributary.dev/ingress-hosts';

const LIMITS = { rules: 32, paths: 64, tls: 32 };

/** Nothing in a path may end a directive or begin a pattern. */
const PATH = '^/[-A-Za-z0-9._~+@:/]*$';

/** They say how long, how large and how, never where to or with what configuration. */
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

const listed = `[${ANNOTATIONS.map((key) => `'${key}'`).join(', ')}]`;
const isAllowed = (host: string): string =>
  `(${host} != '' && !${host}.startsWith('*') && ` +
  `variables.hosts.exists(s, s == '*' || ${host} == s || ${host}.endsWith('.' + s)))`;
const paths = 'r.?http.?paths.orValue([])';

const validations: TenantAdmission['validations'] = [
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
      `(k in ${listed} && object.metadata.annotations[k].matches('${ANNOTATION_VALUE}')) || ` +
      '(oldObject != null && oldObject.metadata.?annotations[?k] == optional.of(object.metadata.annotations[k])))',
    message: `annotations of peers' Ingresses are of a short list, with plain values; any other could configure this cluster's ingress controller: ${ANNOTATIONS.join(', ')}`,
  },
];

/** The policy and what puts it in force for every namespace that belongs to a peer. */
export const forgeTenantIngressPolicy = (): PolicyPair =>
  forgeTenantAdmission('tributary-tenant-ingresses', {
    ...ofPeers('networking.k8s.io', 'ingresses'),
    variables: [
      { name: 'classes', expression: listedOn(ANNOTATION_INGRESS_CLASSES) },
      { name: 'hosts', expression: listedOn(ANNOTATION_INGRESS_HOSTS) },
      { name: 'rules', expression: 'object.spec.?rules.orValue([])' },
      { name: 'tls', expression: 'object.spec.?tls.orValue([])' },
    ],
    validations,
  });
