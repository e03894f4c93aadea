import { type ForeignCluster, foreignClusters } from '../../api/foreign-cluster.ts';
import { ANNOTATION_OUTGOING, LABEL_DISCOVERED } from '../../api/names.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { hasCode, ignoring } from '../../lib/errors.ts';
import { TokenBucket } from '../../lib/token-bucket.ts';
import { BY_IDENTITY, hasPeering, isDeleting, isDiscovered, isInUse } from './foreign-cluster.ts';
import type { ReconcilerOptions } from './options.ts';
import { currentSightings } from './sightings.ts';

/** Whoever makes an object writes its first sighting right after; for so long it may have none. */
const GRACE_MS = 60_000;

interface Usage {
  /** There is a link to it, or a peering with it in either direction. */
  isInUse: boolean;
  now: number;
}

/**
 * A cluster that nobody sees any more, that nobody here has said anything about and with which nothing is shared, is
 * forgotten. One that a person has switched off stays, else it would come back switched on.
 */
export function isForgettable(cluster: ForeignCluster, { isInUse, now }: Usage): boolean {
  return (
    isDiscovered(cluster) &&
    !isDeleting(cluster) &&
    !isInUse &&
    !isSpokenOf(cluster) &&
    currentSightings(cluster, now).length === 0 &&
    now >= graceEndOf(cluster)
  );
}

export const graceEndOf = ({ metadata }: ForeignCluster): number =>
  Date.parse(metadata.creationTimestamp) + GRACE_MS;

function isSpokenOf({ metadata, spec = {} }: ForeignCluster): boolean {
  const { outgoing = 'Auto', incoming = 'Auto', namespaces = [], joinTokenSecretRef } = spec;
  if (incoming !== 'Auto' || namespaces.length > 0 || joinTokenSecretRef !== undefined) return true;
  // Policies may mean it by its labels.
  if (Object.keys(metadata.labels ?? {}).some((key) => key !== LABEL_DISCOVERED)) return true;
  // A SearchDomain says what is wanted of all clusters that it lists; that says nothing about this one.
  return outgoing !== (metadata.annotations?.[ANNOTATION_OUTGOING] ?? 'Auto');
}

interface Room {
  /** Whether one more object may be made. */
  hasRoom: boolean;
  /** The object to be forgotten for it. */
  evict?: ForeignCluster;
}

/**
 * Whether there is room for one more cluster that came by itself. Strangers can make identities at will, so those that
 * are known only because they have connected to us are forgotten first, beginning with the oldest.
 */
export function roomFor(
  clusters: Iterable<ForeignCluster>,
  isInUse: (cluster: ForeignCluster) => boolean,
  { most, now }: { most: number; now: number },
): Room {
  const idle = [...clusters].filter(
    (cluster) => isDiscovered(cluster) && !isDeleting(cluster) && !isInUse(cluster),
  );
  if (idle.length < most) return { hasRoom: true };
  const evict = idle
    .filter((cluster) => !isSpokenOf(cluster))
    .filter((cluster) => currentSightings(cluster, now).every(([source]) => source === 'Incoming'))
    .toSorted((a, b) => (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? -1 : 1))[0];
  return evict === undefined ? { hasRoom: false } : { hasRoom: true, evict };
}

/** Identities are cheap, so new peers are limited: so many at once, then at this rate. */
const RATE = { burst: 100, perSecond: 1 };
const NO_ROOM_MS = 30_000;

/** Makes the objects of peers that come by themselves, and removes those that nobody sees any more. */
export class DiscoveredClusters {
  readonly #options: ReconcilerOptions;
  readonly #bucket: TokenBucket;
  /** Whether it was logged that there is no room. */
  #isFull = false;

  constructor(options: ReconcilerOptions) {
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
    // AlreadyExists: we or discovery have made it just now; the cache will show it.
    await client.create(foreignClusters, { metadata, spec }, { signal }).catch(ignoring('AlreadyExists'));
    return {};
  }

  /** Deletes exactly the version that we know: whoever has seen the cluster since keeps its object alive. */
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
