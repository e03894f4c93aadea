import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { ForeignCluster, PeeringWish } from '../../api/foreign-cluster.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { PeerFacts } from '../policy/match.ts';
import type { PeeringReport } from '../ports.ts';

/** What people and policies here want of one cluster; for lending and borrowing alike. */
export interface ClusterWish {
  clusterID: string;
  /** The object that stands for it; the subject of events. */
  subject?: ForeignCluster;
  /** What policies look at. */
  facts: PeerFacts;
  /** Whether we use it: Enabled, or Auto and a policy that asks by itself. */
  wanted: boolean;
  /** The AcceptancePolicy that decides about its offers. */
  policy?: AcceptancePolicy;
  /** Home namespaces that the ForeignCluster names. */
  namespaces: readonly string[];
  /** The other cluster's one-time token. */
  joinToken?: string;
  /** Whether it may use us; Disabled also while its ForeignCluster is being deleted. */
  incoming: PeeringWish;
  /** The SharingPolicy that decides about it; not looked at where `incoming` is Disabled. */
  sharingPolicy?: SharingPolicy;
  /** Take it down without waiting for anything over there. */
  force: boolean;
}

/** Where one direction stands, by peer: lending or borrowing. */
export interface PeeringReports {
  report(clusterID: string): PeeringReport;
  /** Calls back with the ClusterID of each report that may have changed; the returned function ends that. */
  onChange(listener: (clusterID: string) => void): () => void;
}

/** All objects of one kind, as an Informer holds them. */
export interface Collection<T> {
  list(): Iterable<T>;
  onChange(listener: (key: string, current: T | undefined, previous: T | undefined) => void): () => void;
}

/** A key that clusters of one owner share. */
export interface NamedKey {
  /** As `networkKeyName` writes it. */
  name: string;
  key: Uint8Array;
}
