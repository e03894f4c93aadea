import { SERVICE_REASONS } from '../../api/advertisement.ts';
import { endpointSlices, services } from '../../api/resources.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { Draft, DraftMeta, EndpointSlice, KubeObject, Service } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Cache } from '../../kube/cache.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import {
  type ForgedEndpoints,
  forgeService,
  isOurs,
  mendedService,
  mendedSlice,
  type HomeService,
} from './home.ts';

export interface WriterOptions {
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
export class Writer {
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
