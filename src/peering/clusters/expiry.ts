import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import { ANNOTATION_OUTGOING, LABEL_DISCOVERED } from '../../api/names.ts';
import type { PeeringReport } from '../ports.ts';
import { isDeleting, isDiscovered } from './same.ts';
import { currentSightings } from './sightings.ts';

/** Whoever makes an object writes its first sighting right after; so long nobody minds that there is none. */
export const GRACE_MS = 60_000;

/** Whether anything is there that would have to be taken down. */
export const isPeered = (...reports: readonly PeeringReport[]): boolean =>
  reports.some(({ phase }) => phase !== 'None' && phase !== 'Denied');

export interface Standing {
  /** A link is up, or a peering there, either way. */
  isInUse: boolean;
  now: number;
}

/**
 * A cluster that nobody sees any more, that nobody here has said anything about and with which nothing is shared, is
 * forgotten. One that a person has switched off stays, else it would come back switched on.
 */
export function isForgettable(cluster: ForeignCluster, { isInUse, now }: Standing): boolean {
  return (
    isDiscovered(cluster) &&
    !isDeleting(cluster) &&
    !isInUse &&
    !hasPersonalWish(cluster) &&
    currentSightings(cluster, now).length === 0 &&
    now >= graceEndOf(cluster)
  );
}

export const graceEndOf = ({ metadata }: ForeignCluster): number =>
  Date.parse(metadata.creationTimestamp) + GRACE_MS;

function hasPersonalWish({ metadata, spec = {} }: ForeignCluster): boolean {
  const { outgoing = 'Auto', incoming = 'Auto', namespaces = [], joinTokenSecretRef } = spec;
  if (incoming !== 'Auto' || namespaces.length > 0 || joinTokenSecretRef !== undefined) return true;
  // Policies may speak of it by them.
  if (Object.keys(metadata.labels ?? {}).some((key) => key !== LABEL_DISCOVERED)) return true;
  // A SearchDomain says what is wanted of the clusters that it lists; that is not a word about this one.
  return outgoing !== (metadata.annotations?.[ANNOTATION_OUTGOING] ?? 'Auto');
}

export interface Room {
  /** Whether another may be made. */
  hasRoom: boolean;
  /** The one to be forgotten for it. */
  evict?: ForeignCluster;
}

/**
 * Whether there is room for one more cluster that came by itself. Strangers can make identities at will, so that
 * those that are only known for having come in are forgotten first, the oldest before all.
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
    .filter((cluster) => !hasPersonalWish(cluster))
    .filter((cluster) => currentSightings(cluster, now).every(([source]) => source === 'Incoming'))
    .toSorted((a, b) => (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? -1 : 1))[0];
  return evict === undefined ? { hasRoom: false } : { hasRoom: true, evict };
}
