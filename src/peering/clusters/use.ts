import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import { isPeered } from './expiry.ts';
import type { KeeperOptions } from './options.ts';
import { idOf } from './same.ts';

type Given = Pick<KeeperOptions, 'links' | 'outgoing' | 'incoming'>;

/** Whether there is a peering with it, in whatever state, either way. */
export const hasPeering = ({ outgoing, incoming }: Given, clusterID: string): boolean =>
  isPeered(outgoing().report(clusterID), incoming().report(clusterID));

/** Whether there is a link or a peering with the cluster that the object is about. */
export function isInUse(given: Given, cluster: ForeignCluster): boolean {
  const id = idOf(cluster);
  return id !== undefined && (given.links().view(id) !== undefined || hasPeering(given, id));
}
