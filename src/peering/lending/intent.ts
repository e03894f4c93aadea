import type { PeeringWish } from '../../api/foreign-cluster.ts';
import type { PeerFacts } from '../policy/match.ts';

/** What people and policies of this cluster say about a peer; src/peering/clusters knows. */
export interface LendingIntent {
  /** Disabled also while its ForeignCluster is being deleted. */
  incoming: PeeringWish;
  facts: PeerFacts;
  /** The other cluster that this one is tethered to, as people call it. */
  tetheredTo?: string;
  /** Where pods of a device may come back to it: VirtualNodes, and the names of their Nodes. */
  returning?: { virtualNodes: readonly string[]; nodes: readonly string[] };
}
