import { foreignClusters, type ForeignCluster } from '../../api/foreign-cluster.ts';
import { LABEL_DISCOVERED } from '../../api/names.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { hasCode, ignoring } from '../../lib/errors.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';
import { roomFor } from './expiry.ts';
import type { KeeperOptions } from './options.ts';
import { BY_IDENTITY } from './same.ts';
import { hasPeering, isInUse } from './use.ts';

/** Identities are cheap: so many new peers at once, then at this rate. */
const RATE = { burst: 50, perSecond: 5 };
const NO_ROOM_MS = 30_000;

/** Makes the objects of peers that come by themselves, and removes those that nobody sees any more. */
export class Newcomers {
  readonly #options: KeeperOptions;
  readonly #bucket: TokenBucket;
  /** Said once, until there is room again. */
  #isFull = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#bucket = new TokenBucket({ clock: options.clock, ...RATE });
  }

  /** A peer that is linked to us gets an object, so that people see it and policies can speak of it. */
  async welcome(clusterID: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { clusters, links, clock, own, limits } = this.#options;
    if (clusters.byIndex(BY_IDENTITY, clusterID).length > 0 || clusterID === own) return {};
    if (links().view(clusterID)?.dialledBy !== 'Them') return {};
    // Without an object nothing would be wanted of it once the link breaks, and what was agreed on would end.
    if (hasPeering(this.#options, clusterID)) return this.#create(clusterID, signal);
    const { hasRoom, evict } = roomFor(clusters.list(), (cluster) => isInUse(this.#options, cluster), {
      most: limits.mostIdle,
      now: clock.now(),
    });
    this.#noteRoom(hasRoom);
    if (!hasRoom) return { requeueAfterMs: NO_ROOM_MS };
    if (!this.#bucket.tryTake(1)) return { requeueAfterMs: 1000 / RATE.perSecond };
    if (evict !== undefined) await this.forget(evict, signal);
    return this.#create(clusterID, signal);
  }

  async #create(clusterID: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { client } = this.#options;
    const metadata = { name: clusterID, labels: { [LABEL_DISCOVERED]: 'true' } };
    const spec = { clusterID, outgoing: 'Auto', incoming: 'Auto' } as const;
    // AlreadyExists: made just now, by us or by discovery; the cache will tell.
    await client.create(foreignClusters, { metadata, spec }, { signal }).catch(ignoring('AlreadyExists'));
    return {};
  }

  /** By version: whoever has seen it since keeps it alive. */
  async forget({ metadata }: ForeignCluster, signal: AbortSignal): Promise<ReconcileResult> {
    const { client, log } = this.#options;
    const { name, uid, resourceVersion } = metadata;
    try {
      await client.delete(foreignClusters, { name }, { uid, resourceVersion, signal });
      log.info('a cluster that nobody sees any more is forgotten', { name });
    } catch (error) {
      if (!hasCode(error, 'NotFound')) throw error;
    }
    return {};
  }

  #noteRoom(hasRoom: boolean): void {
    const { log, limits } = this.#options;
    if (!hasRoom && !this.#isFull) {
      log.warn('too many clusters have come by themselves; the rest is not shown', { most: limits.mostIdle });
    }
    this.#isFull = !hasRoom;
  }
}
