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
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import type { OfferedPort, OfferedService } from '../protocol/documents.ts';

/** What stands here for a provider's Service: a Service without a selector, and its EndpointSlices. Pure. */

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

interface ForgedEndpoints {
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

interface WriterOptions {
  client: KubeClient;
  /** Ours only, by label. */
  services: Pick<Cache<Service>, 'get'>;
  slices: Pick<Cache<EndpointSlice>, 'get'>;
}

/** Why there is no home Service. */
export interface Refusal {
  reason: string;
  message: string;
}

/** Makes home Services and their slices as they are to be, one write for what differs; whatever is not ours stays as it is. */
export class HomeServiceWriter {
  readonly #options: WriterOptions;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** The Service first: under one of somebody else the endpoints would become that one's. */
  async ensure(
    home: HomeService,
    slices: ForgedEndpoints['slices'],
    signal: AbortSignal,
  ): Promise<Refusal | undefined> {
    const { services: ofServices, slices: ofSlices } = this.#options;
    const service = forgeService(home);
    const put = async <T extends KubeObject>(way: Way<T>, wanted: Draft<T>): Promise<Refusal | undefined> =>
      this.#put(way, wanted, { provider: home.provider, signal });
    const refusal = await put({ type: services, cache: ofServices, mend: mendedService }, service);
    if (refusal !== undefined) return refusal;
    for (const slice of slices) {
      const problem = await put({ type: endpointSlices, cache: ofSlices, mend: mendedSlice }, slice);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  async remove<T extends KubeObject>(type: ResourceType<T>, object: T, signal: AbortSignal): Promise<void> {
    if (object.metadata.deletionTimestamp !== undefined) return;
    const { uid } = object.metadata;
    await this.#options.client
      .delete(type, object.metadata, { uid, signal })
      .catch(ignoring('NotFound', 'Conflict'));
  }

  /** What the API server, or a policy in it, will not have is told where people look; all else is tried again. */
  async #put<T extends KubeObject>(
    { type, cache, mend }: Way<T>,
    wanted: Draft<T>,
    { provider, signal }: { provider: string; signal: AbortSignal },
  ): Promise<Refusal | undefined> {
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
      if (hasCode(error, 'AlreadyExists')) return this.#meet(type, wanted, { provider, signal });
      if (hasCode(error, 'Invalid', 'Forbidden')) {
        return {
          reason: SERVICE_REASONS.refused,
          message: `${type.kind} ${namespace}/${name}: ${errorMessage(error)}`,
        };
      }
      throw error;
    }
  }

  /** Somebody else's, or our own that the cache does not show yet. */
  async #meet<T extends KubeObject>(
    type: ResourceType<T>,
    { metadata: { namespace = '', name = '' } }: Draft<T>,
    { provider, signal }: { provider: string; signal: AbortSignal },
  ): Promise<Refusal | undefined> {
    const there = await this.#options.client.get(type, { namespace, name }, { signal });
    return isOurs(there, provider) ? undefined : taken(type.kind, namespace, name);
  }
}

interface Way<T extends KubeObject> {
  type: ResourceType<T>;
  cache: { get(key: string): T | undefined };
  /** Undefined: it is as wanted. */
  mend: (current: T, wanted: Draft<T>) => T | undefined;
}

const taken = (kind: string, namespace: string, name: string): Refusal => ({
  reason: SERVICE_REASONS.nameTaken,
  message: `there is a ${kind} ${namespace}/${name} that is not of this provider; it is left alone`,
});
