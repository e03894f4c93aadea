/** What stands here for a provider's Service: a Service without a selector, and its EndpointSlices. Pure. */
import { APP_NAME } from '../../api/manifest.ts';
import {
  ANNOTATION_OFFERED_SERVICE,
  LABEL_OFFERED_SERVICE,
  LABEL_PROVIDER,
  LABEL_SERVICE_NAME,
  LABEL_SLICE_MANAGED_BY,
  SLICE_MANAGER,
} from '../../api/names.ts';
import type { AddressPort } from '../../api/tunnel.ts';
import type { Draft, DraftMeta, EndpointSlice, KubeObject, Service } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import type { OfferedPort, OfferedService } from '../protocol/documents.ts';

/** One accepted Service that is on offer, and where it is to stand. */
export interface HomeService {
  /** ClusterID. */
  provider: string;
  offered: OfferedService;
  homeNamespace: string;
  homeName: string;
}

/** Why endpoints are not to be used now. */
export interface Unreachable {
  reason: string;
  message: string;
}

const FAMILIES = ['IPv4', 'IPv6'] as const;
const familyOf = (address: string): (typeof FAMILIES)[number] => (address.includes(':') ? 'IPv6' : 'IPv4');

export const sourceOf = ({ namespace, name }: { namespace: string; name: string }): string =>
  `${namespace}/${name}`;

/** Names of the slices of a home Service; the first part keeps them apart from those of Kubernetes' own controller. */
const sliceNames = (homeName: string): string[] =>
  FAMILIES.map((family) => `tributary-${homeName}-${family.toLowerCase()}`);

export const isOurs = ({ metadata: { labels = {} } }: KubeObject, provider: string): boolean =>
  labels[LABEL_OFFERED_SERVICE] === 'true' && labels[LABEL_PROVIDER] === provider;

function metaOf(home: HomeService, name: string, labels: Record<string, string>): DraftMeta {
  return {
    namespace: home.homeNamespace,
    name,
    labels: {
      'app.kubernetes.io/managed-by': APP_NAME,
      [LABEL_PROVIDER]: home.provider,
      [LABEL_OFFERED_SERVICE]: 'true',
      ...labels,
    },
    annotations: { [ANNOTATION_OFFERED_SERVICE]: sourceOf(home.offered) },
  };
}

export function forgeService(home: HomeService): Draft<Service> {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metaOf(home, home.homeName, {}),
    spec: {
      type: 'ClusterIP',
      // Both families where this cluster has both: which of them the provider's pods have is not ours to choose.
      ipFamilyPolicy: 'PreferDualStack',
      ports: home.offered.ports.map(servicePort),
    },
  };
}

const servicePort = ({ name, protocol, port, targetPort, appProtocol }: OfferedPort): ServicePort => ({
  ...(name !== undefined && { name }),
  protocol,
  port,
  targetPort,
  ...(appProtocol !== undefined && { appProtocol }),
});
type ServicePort = NonNullable<NonNullable<Service['spec']>['ports']>[number];

/** The Service with what it lacks; undefined where nothing does. What others added to it stays. */
export function mendedService(current: Service, wanted: Draft<Service>): Service | undefined {
  const { selector: _selector, externalIPs: _externalIPs, ...spec } = current.spec ?? {};
  const ports = wanted.spec?.ports ?? [];
  const kept = (spec.ports ?? []).map(({ name, protocol, port, targetPort, appProtocol }) =>
    servicePort({ name, protocol, port, targetPort, appProtocol } as OfferedPort),
  );
  const mended = {
    ...current,
    metadata: mendedMeta(current.metadata, wanted.metadata),
    spec: { ...spec, type: 'ClusterIP', ports: deepEqual(kept, ports) ? (spec.ports ?? []) : ports },
  };
  return deepEqual(mended, current) ? undefined : mended;
}

function mendedMeta(current: KubeObject['metadata'], wanted: DraftMeta): KubeObject['metadata'] {
  return {
    ...current,
    labels: { ...current.labels, ...wanted.labels },
    annotations: { ...current.annotations, ...wanted.annotations },
  };
}

export interface ForgedEndpoints {
  slices: Draft<EndpointSlice>[];
  /** Those that are ready and can be reached now. */
  ready: number;
  /** What our pods in third clusters may reach through us. */
  used: AddressPort[];
}

/**
 * One slice for each family of which there are endpoints. `podAddress`: how we see a pod of the provider; whatever is not
 * one, wherever it may be, is left out.
 */
export function forgeEndpoints(
  home: HomeService,
  podAddress: (theirs: string) => string | undefined,
  unreachable: boolean,
): ForgedEndpoints {
  const seen = home.offered.endpoints.flatMap(({ address: theirs, ready }) => {
    const address = podAddress(theirs);
    return address === undefined ? [] : [{ address, ready: ready && !unreachable }];
  });
  const ports = home.offered.ports.map(({ name, protocol, targetPort, appProtocol }) => ({
    name: name ?? '',
    protocol,
    port: targetPort,
    ...(appProtocol !== undefined && { appProtocol }),
  }));
  const slices = FAMILIES.flatMap((addressType, index) => {
    const endpoints = seen.filter(({ address }) => familyOf(address) === addressType);
    if (endpoints.length === 0) return [];
    const name = sliceNames(home.homeName)[index] ?? '';
    return [
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: metaOf(home, name, {
          [LABEL_SERVICE_NAME]: home.homeName,
          [LABEL_SLICE_MANAGED_BY]: SLICE_MANAGER,
        }),
        addressType,
        endpoints: endpoints.map(({ address, ready }) => ({
          addresses: [address],
          conditions: { ready, serving: ready, terminating: false },
        })),
        ports,
      },
    ];
  });
  return {
    slices,
    ready: seen.filter(({ ready }) => ready).length,
    used: seen.flatMap(({ address }) =>
      home.offered.ports.map(({ protocol, targetPort: port }) => ({ address, protocol, port })),
    ),
  };
}

/** As mendedService. */
export function mendedSlice(current: EndpointSlice, wanted: Draft<EndpointSlice>): EndpointSlice | undefined {
  const mended = {
    ...current,
    metadata: mendedMeta(current.metadata, wanted.metadata),
    endpoints: wanted.endpoints ?? [],
    ports: wanted.ports ?? [],
  };
  return deepEqual(mended, current) ? undefined : mended;
}

/** The same slice with nothing in it that may be used; undefined where that is so already. */
export function silenced(current: EndpointSlice): EndpointSlice | undefined {
  const endpoints = (current.endpoints ?? []).map((endpoint) => ({
    ...endpoint,
    conditions: { ready: false, serving: false, terminating: false },
  }));
  return deepEqual(endpoints, current.endpoints) ? undefined : { ...current, endpoints };
}
