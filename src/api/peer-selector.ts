/** How a cluster came to be known. */
export type DiscoverySource = 'LAN' | 'WAN' | 'Manual' | 'Incoming';
export const DISCOVERY_SOURCES: readonly DiscoverySource[] = ['LAN', 'WAN', 'Manual', 'Incoming'];

/** Reference to a key of a Secret in the namespace that Tributary runs in. */
export interface SecretKeyRef {
  name: string;
  /** Default `key`. */
  key?: string;
}

/**
 * Which peers a policy speaks of; a peer is meant where any one of the fields says so. An empty selector means
 * nobody: a stranger with a valid ID of its own is still a stranger.
 */
export interface PeerSelector {
  /** ClusterIDs. */
  clusterIDs?: string[];
  /** Peers that hold the same shared network key, shown by proof and never sent. */
  networkKeySecretRef?: SecretKeyRef;
  /** Labels of the ForeignCluster object, set by people here. */
  matchLabels?: Record<string, string>;
  /** Whoever proves an ID, whichever. */
  anyone?: boolean;
  /** Narrows all of the above to clusters that were found in one of these ways. */
  discovery?: DiscoverySource[];
}

/** Of the condition `Valid`, which every policy has that selects peers: it alone says whether the policy makes sense. */
export const POLICY_VALID = 'Valid';
export const POLICY_REASONS = { ok: 'AsExpected', invalid: 'Invalid' } as const;
