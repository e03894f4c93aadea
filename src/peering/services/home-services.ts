import { SERVICE_REASONS } from '../../api/advertisement.ts';
import { APP_NAME } from '../../api/manifest.ts';
import {
  ANNOTATION_OFFERED_SERVICE,
  LABEL_OFFERED_SERVICE,
  LABEL_PROVIDER,
  LABEL_SERVICE_NAME,
  LABEL_SLICE_MANAGED_BY,
  SLICE_MANAGER,
} from '../../api/names.ts';
import { endpointSlices, type ResourceType, services } from '../../api/resources.ts';
import type { AddressPort } from '../../api/tunnel.ts';
import type { Draft, DraftMeta, EndpointSlice, KubeObject, Service } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { KubeClient } from '../../kube/client.ts';
import { deleteByUid } from '../../kube/write.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode } from '../../lib/errors.ts';
import type { OfferedPort, OfferedService } from '../protocol/documents.ts';

/** A home Service stands here for a Service of a provider: a Service without a selector, and its EndpointSlices. */

/** One Service that is offered and accepted, and where its home Service is. */
export interface HomeService {
  /** ClusterID. */
  provider: string;
  offered: OfferedService;
  homeNamespace: string;
  homeName: string;
}

/** What is wrong with a Service of a provider; the reason is one of SERVICE_REASONS. */
export interface ServiceProblem {
  reason: string;
  message: string;
}

const FAMILIES = ['IPv4', 'IPv6'] as const;
const familyOf = (address: string): (typeof FAMILIES)[number] => (address.includes(':') ? 'IPv6' : 'IPv4');

export const sourceOf = ({ namespace, name }: { namespace: string; name: string }): string =>
  `${namespace}/${name}`;

/** Names of the slices of a home Service. Kubernetes' own controller makes no names that begin so. */
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
      // Both families where this cluster has both: we do not choose which of them the provider's pods have.
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

/** The Service, corrected; undefined where nothing is wrong. What others have added to it stays. */
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

interface ForgedEndpoints {
  slices: Draft<EndpointSlice>[];
  /** How many are ready and can be reached now. */
  ready: number;
  /** What our pods in third clusters may reach through us. */
  used: AddressPort[];
}

/**
 * One slice for each family that has endpoints.
 *
 * @param podAddress how we see a pod of the provider; an address for which it answers undefined is left out
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

/** The slice, corrected; undefined where nothing is wrong. */
export function mendedSlice(current: EndpointSlice, wanted: Draft<EndpointSlice>): EndpointSlice | undefined {
  const mended = {
    ...current,
    metadata: mendedMeta(current.metadata, wanted.metadata),
    endpoints: wanted.endpoints ?? [],
    ports: wanted.ports ?? [],
  };
  return deepEqual(mended, current) ? undefined : mended;
}

/** The same slice, in which no endpoint may be used; undefined where that is so already. */
export function silenced(current: EndpointSlice): EndpointSlice | undefined {
  const endpoints = (current.endpoints ?? []).map((endpoint) => ({
    ...endpoint,
    conditions: { ready: false, serving: false, terminating: false },
  }));
  return deepEqual(endpoints, current.endpoints) ? undefined : { ...current, endpoints };
}

interface WriterOptions {
  client: KubeClient;
  /** Only ours, by label. */
  services: Pick<Cache<Service>, 'get'>;
  slices: Pick<Cache<EndpointSlice>, 'get'>;
}

/** Writes home Services and their slices where they differ; objects that are not ours are left alone. */
export class HomeServiceWriter {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** The Service first: if it is somebody else's, our endpoints would become its endpoints. */
  async ensure(
    home: HomeService,
    slices: ForgedEndpoints['slices'],
    signal: AbortSignal,
  ): Promise<ServiceProblem | undefined> {
    const { services: ofServices, slices: ofSlices } = this.#options;
    const service = forgeService(home);
    const put = async <T extends KubeObject>(
      kind: Kind<T>,
      wanted: Draft<T>,
    ): Promise<ServiceProblem | undefined> => this.#put(kind, wanted, { provider: home.provider, signal });
    const problem = await put({ type: services, cache: ofServices, mend: mendedService }, service);
    if (problem !== undefined) return problem;
    for (const slice of slices) {
      const ofSlice = await put({ type: endpointSlices, cache: ofSlices, mend: mendedSlice }, slice);
      if (ofSlice !== undefined) return ofSlice;
    }
    return undefined;
  }

  async remove<T extends KubeObject>(type: ResourceType<T>, object: T, signal: AbortSignal): Promise<void> {
    if (object.metadata.deletionTimestamp !== undefined) return;
    await deleteByUid(this.#options.client, type, object, { signal });
  }

  /** Returns what the API server, or a policy in it, refuses, to be told to people. All other errors are tried again. */
  async #put<T extends KubeObject>(
    { type, cache, mend }: Kind<T>,
    wanted: Draft<T>,
    { provider, signal }: { provider: string; signal: AbortSignal },
  ): Promise<ServiceProblem | undefined> {
    const { client } = this.#options;
    const { namespace = '', name = '' } = wanted.metadata;
    const cached = cache.get(`${namespace}/${name}`);
    try {
      if (cached === undefined) {
        await client.create(type, wanted as Omit<T, 'metadata'> & { metadata: DraftMeta }, { signal });
        return undefined;
      }
      if (!isOurs(cached, provider)) return taken(type.kind, namespace, name);
      const mended = mend(cached, wanted);
      if (mended !== undefined) await client.replace(type, mended, { signal });
      return undefined;
    } catch (error) {
      if (hasCode(error, 'AlreadyExists')) return this.#checkExisting(type, wanted, { provider, signal });
      if (hasCode(error, 'Invalid', 'Forbidden')) {
        return {
          reason: SERVICE_REASONS.refused,
          message: `${type.kind} ${namespace}/${name}: ${errorMessage(error)}`,
        };
      }
      throw error;
    }
  }

  /** The object that exists is somebody else's, or ours that the cache does not show yet. */
  async #checkExisting<T extends KubeObject>(
    type: ResourceType<T>,
    { metadata: { namespace = '', name = '' } }: Draft<T>,
    { provider, signal }: { provider: string; signal: AbortSignal },
  ): Promise<ServiceProblem | undefined> {
    const there = await this.#options.client.get(type, { namespace, name }, { signal });
    return isOurs(there, provider) ? undefined : taken(type.kind, namespace, name);
  }
}

interface Kind<T extends KubeObject> {
  type: ResourceType<T>;
  cache: { get(key: string): T | undefined };
  /** Undefined: nothing is wrong. */
  mend: (current: T, wanted: Draft<T>) => T | undefined;
}

const taken = (kind: string, namespace: string, name: string): ServiceProblem => ({
  reason: SERVICE_REASONS.nameTaken,
  message: `there is a ${kind} ${namespace}/${name} that is not of this provider; it is left alone`,
});
