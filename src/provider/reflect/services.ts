/** How a Service of home is kept in the tenant namespace. Pure. */
import { services } from '../../api/resources.ts';
import type { Service } from '../../api/wire.ts';
import { withoutKeys } from '../../lib/fields.ts';
import {
  mayBeCopied,
  mergedMeta,
  type MirroredKind,
  mirroredMeta,
  SAME_NAME,
  travellingLabels,
} from './mirrored-kind.ts';

type ServiceSpec = NonNullable<Service['spec']>;

/**
 * Fields that travel. All others stay at home: addresses and node ports mean nothing over there, and external IPs and load
 * balancers would take the foreign cluster's own traffic (CVE-2020-8554). Fields that Kubernetes adds later stay at home, too,
 * until somebody has thought about them.
 */
const PLAIN_FIELDS = [
  'selector',
  'sessionAffinity',
  'sessionAffinityConfig',
  'publishNotReadyAddresses',
  'internalTrafficPolicy',
] as const satisfies readonly (keyof ServiceSpec)[];

/** Fields that we own; those that the foreign API server adds (addresses, families) are not among them. */
const OWNED_FIELDS: readonly (keyof ServiceSpec)[] = [
  ...PLAIN_FIELDS,
  'type',
  'ports',
  'externalName',
  'ipFamilyPolicy',
];

/** Annotations steer controllers whose owners have not asked for it; this one only steers kube-proxy's hints. */
const HARMLESS_ANNOTATIONS = ['service.kubernetes.io/topology-mode'];
/** Would hand the Service to a proxy that the foreign cluster may not have. */
const LABEL_PROXY = 'service.kubernetes.io/service-proxy-name';

const isHeadless = (spec: Pick<ServiceSpec, 'clusterIP'> | undefined): boolean => spec?.clusterIP === 'None';

const isExternalName = (spec: Pick<ServiceSpec, 'type'> | undefined): boolean =>
  spec?.type === 'ExternalName';

export const serviceKind: MirroredKind<Service> = {
  kind: 'services',
  type: services,
  ruledBy: { group: '', resource: 'services' },
  needsNetwork: true,
  ...SAME_NAME,
  select: (source) =>
    mayBeCopied(source) &&
    // The API server's own, which every cluster has.
    !(source.metadata.namespace === 'default' && source.metadata.name === 'kubernetes'),
  forge: (source, context) => {
    const { [LABEL_PROXY]: _proxy, ...labels } = travellingLabels(source.metadata.labels);
    return {
      object: {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: mirroredMeta(source.metadata.name, context, { labels, annotations: harmless(source) }),
        spec: forgeSpec(source.spec ?? {}),
      },
    };
  },
  mayReplace: true,
  mustReplace: ({ spec: before }, { spec: wanted }) =>
    isHeadless(before) !== isHeadless(wanted) || isExternalName(before) !== isExternalName(wanted),
  merge: (copy, wanted) => ({
    ...wanted,
    ...copy,
    metadata: mergedMeta(copy.metadata, wanted.metadata, HARMLESS_ANNOTATIONS),
    spec: {
      ...withoutKeys(copy.spec ?? {}, OWNED_FIELDS),
      ...wanted.spec,
    },
  }),
};

const harmless = ({ metadata }: Service): Record<string, string> =>
  Object.fromEntries(
    Object.entries(metadata.annotations ?? {}).filter(([key]) => HARMLESS_ANNOTATIONS.includes(key)),
  );

function forgeSpec(spec: ServiceSpec): ServiceSpec {
  const plain = Object.fromEntries(
    PLAIN_FIELDS.filter((key) => spec[key] !== undefined).map((key) => [key, spec[key]]),
  );
  const ports = spec.ports?.map(({ nodePort: _nodePort, ...port }) => port);
  const common = { ...plain, ...(ports !== undefined && { ports }) };
  if (isExternalName(spec)) {
    return {
      ...common,
      type: 'ExternalName',
      ...(spec.externalName !== undefined && { externalName: spec.externalName }),
    };
  }
  return {
    ...common,
    type: 'ClusterIP',
    ...(isHeadless(spec) && { clusterIP: 'None' }),
    ...families(spec),
  };
}

/** The foreign cluster may have fewer address families: none is required. */
function families({ ipFamilyPolicy }: ServiceSpec): Pick<ServiceSpec, 'ipFamilyPolicy'> {
  if (ipFamilyPolicy === undefined) return {};
  return { ipFamilyPolicy: ipFamilyPolicy === 'SingleStack' ? 'SingleStack' : 'PreferDualStack' };
}
