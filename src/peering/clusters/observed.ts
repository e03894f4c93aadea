import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import type { DialProblem, LinkView, PeeringReport } from '../ports.ts';
import type { ClusterWish } from './ports.ts';

/** All that is known of one ForeignCluster at one moment. */
export interface Observed {
  cluster: ForeignCluster;
  /** The cluster that it is about; undefined: nobody has said which identity is wanted. */
  clusterID: string | undefined;
  /** All ForeignClusters about the same cluster, this one among them. */
  siblings: readonly ForeignCluster[];
  /** The one that stands for the cluster instead of this one. */
  duplicateOf: string | undefined;
  /** It is about us. */
  isOurselves: boolean;
  view: LinkView | undefined;
  problem: DialProblem | undefined;
  /** It is among those that are dialled, which have at least one endpoint. */
  isDialled: boolean;
  hasEndpoint: boolean;
  wish: ClusterWish | undefined;
  outgoing: PeeringReport;
  incoming: PeeringReport;
  now: number;
  incomingTtlMs: number;
}
