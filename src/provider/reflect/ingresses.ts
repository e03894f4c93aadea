/** How an Ingress of home is kept in the tenant namespace. Pure. */
import { ingresses } from '../../api/resources.ts';
import type { Ingress } from '../../api/wire.ts';
import {
  type Forged,
  mayBeCopied,
  mergedMeta,
  type MirrorContext,
  type MirroredKind,
  mirroredMeta,
  SAME_NAME,
  travellingLabels,
} from './mirrored-kind.ts';
import { serviceKind } from './services.ts';

type IngressSpec = NonNullable<Ingress['spec']>;
type Backend = NonNullable<IngressSpec['defaultBackend']>;

const INGRESS_REASONS = {
  /** Nobody has said what its class is over there. */
  classNotMapped: 'IngressClassNotMapped',
  /** It names a backend that does not travel. */
  backendNotReflected: 'IngressBackendNotReflected',
} as const;

/** The older way to name a class (KEP-2124 replaced it). */
const ANNOTATION_CLASS = 'kubernetes.io/ingress.class';
/**
 * Annotations put text into the configuration of the foreign cluster's controller (CVE-2021-25742, CVE-2023-5043 and many
 * more). So only a few travel, which say how to speak to the backend, and only with a switch or a number as value.
 */
const HARMLESS_ANNOTATIONS = [
  ...[
    'backend-protocol',
    'force-ssl-redirect',
    'proxy-body-size',
    'proxy-buffering',
    'proxy-connect-timeout',
    'proxy-read-timeout',
    'proxy-send-timeout',
    'ssl-redirect',
  ].map((name) => `nginx.ingress.kubernetes.io/${name}`),
  'traefik.ingress.kubernetes.io/router.tls',
];
const HARMLESS_VALUE = /^(true|false|on|off|[0-9]{1,9}[kmg]?|HTTPS?|GRPCS?)$/iu;

/** The class at home; empty where the Ingress names none and leaves it to the cluster. */
export const classOf = ({ metadata, spec }: Ingress): string =>
  spec?.ingressClassName ?? metadata.annotations?.[ANNOTATION_CLASS] ?? '';

/** Secrets that hold its certificates, each once: over there the Ingress is useless without them. */
export const secretsOf = ({ spec }: Ingress): string[] => [
  ...new Set((spec?.tls ?? []).flatMap(({ secretName = '' }) => (secretName === '' ? [] : [secretName]))),
];

const backendsOf = ({ defaultBackend, rules = [] }: IngressSpec): Backend[] => [
  ...(defaultBackend === undefined ? [] : [defaultBackend]),
  ...rules.flatMap(({ http }) => (http?.paths ?? []).map(({ backend }) => backend)),
];

/** Services that it leads to, each once. */
export const servicesOf = ({ spec }: Ingress): string[] => [
  ...new Set(backendsOf(spec ?? {}).flatMap(({ service }) => service?.name ?? [])),
];

/** What an Ingress that travels refers to, as pods refer to their ConfigMaps and Secrets. */
export const ingressReferences = (ingress: Ingress): { kind: 'Secret'; name: string }[] =>
  secretsOf(ingress).map((name) => ({ kind: 'Secret', name }));

export const ingressKind: MirroredKind<Ingress> = {
  kind: 'ingresses.networking.k8s.io',
  type: ingresses,
  ruledBy: { group: 'networking.k8s.io', resource: 'ingresses' },
  needsNetwork: false,
  ...SAME_NAME,
  select: mayBeCopied,
  forge: forgeIngress,
  mustReplace: () => false,
  // Its status belongs to the foreign cluster's controller, as the status at home belongs to home's.
  merge: (copy, wanted) => ({
    ...wanted,
    ...copy,
    metadata: mergedMeta(copy.metadata, wanted.metadata, HARMLESS_ANNOTATIONS),
    spec: wanted.spec ?? {},
  }),
};

function forgeIngress(source: Ingress, context: MirrorContext): Forged<Ingress> {
  const { name, labels, annotations } = source.metadata;
  const homeClass = classOf(source);
  const { ingressClasses } = context;
  // hasOwn, since a class may be called `constructor`.
  const foreignClass = Object.hasOwn(ingressClasses, homeClass) ? ingressClasses[homeClass] : undefined;
  if (foreignClass === undefined) return { leftOut: notMapped(homeClass, context) };
  const { defaultBackend, rules = [], tls } = source.spec ?? {};
  const foreignKind = backendsOf(source.spec ?? {}).find(({ resource }) => resource !== undefined)?.resource;
  if (foreignKind !== undefined) {
    const message = `its backend ${foreignKind.kind} "${foreignKind.name}" is no Service, and only Services are known over there`;
    return { leftOut: { reason: INGRESS_REASONS.backendNotReflected, message } };
  }
  const leftOut = missingServices(servicesOf(source), context);
  return {
    object: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: mirroredMeta(name, context, {
        labels: travellingLabels(labels),
        annotations: harmless(annotations),
      }),
      spec: {
        // Empty: the class that is the default over there.
        ...(foreignClass !== '' && { ingressClassName: foreignClass }),
        ...(defaultBackend !== undefined && { defaultBackend }),
        ...(rules.length > 0 && { rules }),
        ...(tls !== undefined && { tls }),
      },
    },
    ...(leftOut !== undefined && { leftOut }),
  };
}

const harmless = (annotations: Record<string, string> = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries(annotations).filter(
      ([key, value]) => HARMLESS_ANNOTATIONS.includes(key) && HARMLESS_VALUE.test(value),
    ),
  );

function notMapped(
  homeClass: string,
  { virtualNode }: MirrorContext,
): NonNullable<Forged<Ingress>['leftOut']> {
  const [what, key] =
    homeClass === '' ? ['it names no class', '""'] : [`its class is "${homeClass}"`, `"${homeClass}"`];
  return {
    reason: INGRESS_REASONS.classNotMapped,
    // Role `cluster` writes the field of the VirtualNode of a peering.
    message:
      `${what}, and nobody has said which class that is in the cluster of virtual node ${virtualNode}: ` +
      `name ${key} under ingressClasses of the AcceptancePolicy (of the VirtualNode, if it was made by hand)`,
  };
}

/** The Ingress travels nevertheless: Services may come later, and until then its controller answers 503. */
function missingServices(
  names: readonly string[],
  { network, isSelected }: MirrorContext,
): Forged<Ingress>['leftOut'] {
  if (names.length === 0) return undefined;
  const reason = INGRESS_REASONS.backendNotReflected;
  if (network.state.kind === 'Off') {
    return { reason, message: 'no network joins the clusters, so none of its Services is over there' };
  }
  const missing = names.filter((name) => !isSelected(serviceKind.kind, name));
  if (missing.length === 0) return undefined;
  return { reason, message: `Service "${missing.join('", "')}" does not travel, or does not exist` };
}
