import { LABEL_MANAGED_BY } from '../../api/names.ts';
import type { ResourceType } from '../../api/resources.ts';
import type { KubeObject } from '../../api/wire.ts';
import type { ObjectRef } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { deleteByUid } from '../../kube/write.ts';
import { ignoring } from '../../lib/errors.ts';
import type { TokenBucket } from '../../lib/token-bucket.ts';
import { homeLookups, LOOKUP_WAIT_MS } from '../home-paces.ts';
import type { CommonParts } from '../namespaces.ts';
import { keepCopyMs } from '../restored/home-history.ts';

/** A cache that a live read contradicted is listed again; until then the key waits this long. */
export const RELIST_WAIT_MS = 1_000;
/** An object that is refused again and again is tried this often. */
export const REFUSED_RETRY_MS = 30_000;

type Relistable = Pick<Informer<KubeObject>, 'relist'>;

interface RemoteCopiesOptions extends Pick<CommonParts, 'home' | 'foreign' | 'history' | 'clock'> {
  /** Name under which copies are known as ours; see ReflectorOptions. */
  owner: string;
}

/** What Reflector and Mirror both do with their copies in tenant namespaces, besides writing them. */
export class RemoteCopies {
  readonly #options: RemoteCopiesOptions;
  readonly #lookups: TokenBucket;
  /** Keys of copies that exist, as a refusal to create them has shown, and that the cache should show soon. */
  readonly #awaited = new Set<string>();

  constructor(options: RemoteCopiesOptions) {
    this.#options = options;
    this.#lookups = homeLookups(options.clock);
  }

  async delete<T extends KubeObject>(
    type: ResourceType<T>,
    copy: KubeObject,
    signal: AbortSignal,
  ): Promise<void> {
    await deleteByUid(this.#options.foreign, type, copy, { signal });
  }

  /** Past the caches. By a list of one, since peers may list copies but not get them. */
  async live<T extends KubeObject>(
    type: ResourceType<T>,
    { name, namespace = '' }: ObjectRef,
    { metadataOnly = false, signal }: { metadataOnly?: boolean; signal: AbortSignal },
  ): Promise<T | undefined> {
    const fieldSelector = `metadata.name=${name}`;
    const options = { namespace, fieldSelector, metadataOnly, signal };
    const { items } = await this.#options.foreign.list(type, options);
    return items.find(({ metadata }) => metadata.name === name);
  }

  /** Whether the object that has the name in the tenant namespace bears our mark. */
  async isOurs<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    signal: AbortSignal,
  ): Promise<boolean> {
    const live = await this.live(type, ref, { metadataOnly: true, signal });
    return live?.metadata.labels?.[LABEL_MANAGED_BY] === this.#options.owner;
  }

  /** Ours, made a moment ago, perhaps by another virtual node: the watch brings it, or else the cache has lost it. */
  awaitShown(key: string, cache: Relistable | undefined): ReconcileResult {
    if (this.#awaited.delete(key)) cache?.relist('an object exists that the cache has lost');
    else this.#awaited.add(key);
    return { requeueAfterMs: RELIST_WAIT_MS };
  }

  /** The cache shows the copy. */
  shown(key: string): void {
    this.#awaited.delete(key);
  }

  /**
   * How long to wait with the deletion of a copy whose object the home cache does not show: home may have it nevertheless, and
   * then the cache is listed again, or may have lost it by a restore. Undefined: it is gone.
   */
  async waitForHome<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    { cache, signal }: { cache: Relistable; signal: AbortSignal },
  ): Promise<ReconcileResult | undefined> {
    const { home, history } = this.#options;
    if (!this.#lookups.tryTake(1)) return { requeueAfterMs: LOOKUP_WAIT_MS };
    const live = await home.get(type, ref, { signal }).catch(ignoring('NotFound'));
    if (live !== undefined) {
      cache.relist('an object exists that the cache has lost');
      return { requeueAfterMs: RELIST_WAIT_MS };
    }
    const requeueAfterMs = await keepCopyMs(history, signal);
    return requeueAfterMs > 0 ? { requeueAfterMs } : undefined;
  }
}
