import type { ForeignCluster } from '../api/foreign-cluster.ts';
import { type Facts, itemsOf } from './facts.ts';

/** What a person calls it: the name that it gives itself and, where that differs, the one of its object. */
export function titleOf({ metadata, status }: ForeignCluster): string {
  return status?.clusterName === undefined || status.clusterName === '' ? metadata.name : status.clusterName;
}

export const idOf = ({ spec, status }: ForeignCluster): string | undefined =>
  spec?.clusterID ?? status?.clusterID;

/** The ForeignCluster of that ClusterID as a person calls it, else the ID itself. */
export function titleOfID({ lists }: Pick<Facts, 'lists'>, clusterID: string): string {
  const cluster = itemsOf(lists.foreignClusters).find((each) => idOf(each) === clusterID);
  return cluster === undefined ? clusterID : titleOf(cluster);
}
