import type { ForeignCluster, PeeringState } from '../../api/foreign-cluster.ts';
import { isClusterID } from '../../api/forms.ts';
import type { NetworkAccess, NetworkTransit } from '../../api/tunnel.ts';

/** A cluster that we are peered with, in one direction or both. */
export interface NetworkPeer {
  clusterID: string;
  clusterName?: string;
  /** It runs our pods. */
  outgoing: boolean;
  /** We run its pods. */
  incoming: boolean;
  access: NetworkAccess;
  transit: NetworkTransit;
}

export type NetworkPeers = ReadonlyMap<string, NetworkPeer>;

const isPeered = (state: PeeringState | undefined): boolean =>
  state?.phase === 'Accepted' || state?.phase === 'Established';

/** By ClusterID. A lost link changes nothing here: the phase lasts as long as what was agreed on. */
export function networkPeers(clusters: Iterable<ForeignCluster>): NetworkPeers {
  const peers = new Map<string, NetworkPeer>();
  for (const cluster of clusters) {
    const peer = networkPeer(cluster);
    if (peer !== undefined) peers.set(peer.clusterID, peer);
  }
  return peers;
}

function networkPeer({ spec, status = {} }: ForeignCluster): NetworkPeer | undefined {
  const { clusterName, clusterID = spec?.clusterID ?? '' } = status;
  const [outgoing, incoming] = [isPeered(status.outgoing), isPeered(status.incoming)];
  if (!isClusterID(clusterID) || (!outgoing && !incoming)) return undefined;
  const { access = 'OffloadedPods', transit = 'OffloadedPods' } = spec?.network ?? {};
  const named = clusterName !== undefined && { clusterName };
  return { clusterID, ...named, outgoing, incoming, access, transit };
}
