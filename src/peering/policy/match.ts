import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { DiscoverySource, PeerSelector, SecretKeyRef } from '../../api/peer-selector.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import type { KubeObject } from '../../api/wire.ts';

/** What is known of a peer, where policies look at it. */
export interface PeerFacts {
  /** Proved by TLS. */
  clusterID: string;
  /** Of its ForeignCluster object; people here have set them. */
  labels: Readonly<Record<string, string>>;
  foundBy: readonly DiscoverySource[];
  /** The network keys that it has proved to hold, each as `networkKeyName` writes it. */
  networkKeys: readonly string[];
}

/** A peer that has proved nothing yet; its ID may not even be known. */
export interface CandidateFacts {
  clusterID?: string;
  labels: Readonly<Record<string, string>>;
  foundBy: readonly DiscoverySource[];
}

const DEFAULT_KEY = 'key';

/** A network key's name: that of its Secret, or `secret/key` where the key is not the default one. */
export function networkKeyName({ name, key = DEFAULT_KEY }: SecretKeyRef): string {
  return key === DEFAULT_KEY ? name : `${name}/${key}`;
}

/**
 * Whether the selector means this peer: any one field that names it is enough, `discovery` only narrows. Empty
 * lists and maps name nobody, and an empty `discovery` lets nobody through: what is unclear fails closed.
 */
export function matches(selector: PeerSelector, facts: PeerFacts): boolean {
  const { networkKeySecretRef: ref } = selector;
  const proved = ref !== undefined && facts.networkKeys.includes(networkKeyName(ref));
  return passesDiscovery(selector, facts) && (proved || names(selector, facts));
}

/** Whether it is worth dialling: the peer would match if it proved its ID and the network key that is asked for. */
export function couldMatch(selector: PeerSelector, facts: CandidateFacts): boolean {
  const provable = selector.networkKeySecretRef !== undefined;
  return passesDiscovery(selector, facts) && (provable || names(selector, facts));
}

const passesDiscovery = ({ discovery }: PeerSelector, { foundBy }: CandidateFacts): boolean =>
  discovery === undefined || discovery.some((source) => foundBy.includes(source));

function names(selector: PeerSelector, { clusterID, labels }: CandidateFacts): boolean {
  const { clusterIDs = [], matchLabels = {}, anyone } = selector;
  if (anyone === true) return true;
  if (clusterID !== undefined && clusterIDs.includes(clusterID)) return true;
  const wanted = Object.entries(matchLabels);
  return (
    wanted.length > 0 && wanted.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)
  );
}

interface Policy extends KubeObject {
  spec: { peers: PeerSelector; precedence?: number };
}

/** The policy that decides about what this peer may use of us; undefined: nothing. */
export function sharingPolicyFor(
  policies: Iterable<SharingPolicy>,
  facts: PeerFacts,
): SharingPolicy | undefined {
  return decidingPolicy(policies, (selector) => matches(selector, facts));
}

/** The policy that decides about this peer's offers. */
export function acceptancePolicyFor(
  policies: Iterable<AcceptancePolicy>,
  facts: PeerFacts,
): AcceptancePolicy | undefined {
  return decidingPolicy(policies, (selector) => matches(selector, facts));
}

/** Of those that mean the peer: the highest precedence, then the oldest, then the first by name. */
export function decidingPolicy<P extends Policy>(
  policies: Iterable<P>,
  means: (selector: PeerSelector) => boolean,
): P | undefined {
  let best: P | undefined;
  for (const policy of policies) {
    // A policy that is being deleted has been taken back.
    if (policy.metadata.deletionTimestamp !== undefined || !means(policy.spec.peers)) continue;
    if (best === undefined || compare(policy, best) < 0) best = policy;
  }
  return best;
}

function compare(a: Policy, b: Policy): number {
  const byPrecedence = (b.spec.precedence ?? 0) - (a.spec.precedence ?? 0);
  if (byPrecedence !== 0) return byPrecedence;
  const [aged, bAged] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  if (aged !== bAged) return aged < bAged ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
