import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { ForeignCluster } from '../../api/foreign-cluster.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { Tunnel } from '../../api/tunnel.ts';
import type { Cache } from '../../kube/cache.ts';
import type { ControllerBasics } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { PeeringReports, PeerLinks } from '../ports.ts';
import type { ClusterIntent, Policies, Ties } from './intent.ts';

/** All objects of one kind. */
interface Collection<T> {
  list(): Iterable<T>;
  onChange(listener: (key: string, current: T | undefined, previous: T | undefined) => void): () => void;
}

export interface ClustersOptions extends ControllerBasics {
  events: EventRecorder;
  /** Our own ClusterID. */
  own: string;
  /** The namespace that we run in; only its Secrets are looked at. */
  systemNamespace: string;
  /** With `clusterIndexes`. It and the caches of both policies start before `caches()`. */
  clusters: Pick<Cache<ForeignCluster>, 'get' | 'list' | 'byIndex' | 'onChange'>;
  acceptance: Collection<AcceptancePolicy>;
  sharing: Collection<SharingPolicy>;
  /** Of every peer, named by its ClusterID; started before `components()`. Default: this cluster has no network. */
  tunnels?: Pick<Cache<Tunnel>, 'get' | 'onChange'>;
  /** Late bound: these need our intents. */
  links: () => PeerLinks;
  outgoing: () => PeeringReports;
  incoming: () => PeeringReports;
  /** What the mode of this cluster means for another one. Default: nothing. */
  ties?: (clusterID: string) => Ties;
  limits?: Partial<ClustersLimits>;
}

export interface ClustersLimits {
  /** The most ForeignClusters that discovery and links have made and that are not in use. */
  mostIdle: number;
  /** The longest time that a peer that came by itself is remembered after its link has gone; the shortest is half of it. */
  incomingTtlMs: number;
  /** How long the deletion of a ForeignCluster waits for its peerings to come down. */
  unpeerMs: number;
}

export const LIMITS: ClustersLimits = { mostIdle: 1000, incomingTtlMs: 3_600_000, unpeerMs: 60_000 };

/** For the parts that write the objects. */
export interface ReconcilerOptions extends Omit<ClustersOptions, 'limits' | 'acceptance' | 'sharing'> {
  limits: ClustersLimits;
  policies: () => Policies;
  intent: (clusterID: string) => ClusterIntent;
}
