import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import { isClusterID } from '../../api/forms.ts';
import { LABEL_DISCOVERED } from '../../api/names.ts';
import type { PeeringReport, PeeringReports, PeerLinks } from '../ports.ts';

/**
 * Several ForeignClusters may be about one cluster: the one that discovery made, and those of people. One of them, the
 * primary, stands for the cluster. The others are duplicates: what they want has no effect, but their sightings count.
 */

/** The ClusterID that the object is about. An object without a wanted identity is about no cluster. */
export function idOf({ metadata, spec }: ForeignCluster): string | undefined {
  if (spec?.clusterID !== undefined) return spec.clusterID;
  return isMarked({ metadata }) && isClusterID(metadata.name) ? metadata.name : undefined;
}

/** Made by discovery or an incoming link, and not given an endpoint by a person since. */
export const isDiscovered = (cluster: ForeignCluster): boolean =>
  isMarked(cluster) && cluster.spec?.endpoint === undefined;

const isMarked = ({ metadata }: Pick<ForeignCluster, 'metadata'>): boolean =>
  metadata.labels?.[LABEL_DISCOVERED] === 'true';

export const isDeleting = ({ metadata }: ForeignCluster): boolean => metadata.deletionTimestamp !== undefined;

/** The one that stands for the cluster: first one that is not being deleted, then one of a person, then the oldest. */
export const primaryOf = (clusters: readonly ForeignCluster[]): ForeignCluster | undefined =>
  clusters.toSorted(compare)[0];

function compare(a: ForeignCluster, b: ForeignCluster): number {
  const byRank = rank(a) - rank(b);
  if (byRank !== 0) return byRank;
  const [aged, bAged] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  if (aged !== bAged) return aged < bAged ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}

const rank = (cluster: ForeignCluster): number =>
  (isDeleting(cluster) ? 2 : 0) + (isDiscovered(cluster) ? 1 : 0);

/** Index of ForeignClusters by the identity that is wanted of them. */
export const BY_IDENTITY = 'identity';
/** For the cache of ForeignClusters. */
export const clusterIndexes: Record<string, (cluster: ForeignCluster) => string[]> = {
  [BY_IDENTITY]: (cluster) => {
    const id = idOf(cluster);
    return id === undefined ? [] : [id];
  },
};

/** Whether anything is there that would have to be taken down. */
export const isPeered = (...reports: readonly PeeringReport[]): boolean =>
  reports.some(({ phase }) => phase !== 'None' && phase !== 'Denied');

const AGREED: ReadonlySet<PeeringReport['phase']> = new Set(['Accepted', 'Established', 'Ending']);

/** Whether the two have come to terms, and one of them counts on the other. */
export const isAgreed = ({ phase }: PeeringReport): boolean => AGREED.has(phase);

/** What tells whether a cluster is in use. */
interface Relations {
  links: () => Pick<PeerLinks, 'view'>;
  outgoing: () => Pick<PeeringReports, 'report'>;
  incoming: () => Pick<PeeringReports, 'report'>;
}

/** Whether there is a peering with it, in any state, in either direction. */
export const hasPeering = ({ outgoing, incoming }: Relations, clusterID: string): boolean =>
  isPeered(outgoing().report(clusterID), incoming().report(clusterID));

/** Whether there is a link or a peering with the cluster that the object is about. */
export function isInUse(relations: Relations, cluster: ForeignCluster): boolean {
  const id = idOf(cluster);
  return id !== undefined && (relations.links().view(id) !== undefined || hasPeering(relations, id));
}
