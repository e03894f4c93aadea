/** Whether our pods at a peer can ask our DNS. */
import {
  HOME_REACH_REASONS,
  type HomeDnsView,
  type HomeReachReason,
  type NetworkState,
  type PeerView,
  type PrefixView,
  type TunnelSpec,
} from '../api/tunnel.ts';

/** What of a Tunnel it follows from. */
export interface DnsFacts {
  state: NetworkState['kind'];
  dns: TunnelSpec['dns'];
  services: readonly string[];
  seenAs: readonly PrefixView[];
  /** The peer's pods, as it writes them. */
  theirs: readonly string[];
  views: readonly PeerView[];
}

/**
 * Our DNS answers with ClusterIPs, and for headless Services with addresses of pods as they are written here. Nobody translates an
 * answer, so each of these has to mean the same over there.
 */
export function homeDnsIn({ state, dns, services, seenAs, theirs, views }: DnsFacts): HomeDnsView {
  if (dns === undefined) return { kind: 'NotChosen' };
  if (state === 'Off') return none(HOME_REACH_REASONS.noNetwork, 'no tunnel leads to the provider');
  if (services.length === 0) {
    return none(
      HOME_REACH_REASONS.notChosen,
      'our ClusterIPs are not reached from there: set services: OffloadedPods beside dns: Home, and access other than None, ' +
        'in spec.network of the ForeignCluster',
    );
  }
  const other = views.find(({ use, prefix, as }) => use === 'Pods' && prefix !== as);
  if (other !== undefined) {
    const { prefix, as } = other;
    return none(
      HOME_REACH_REASONS.seenElsewhere,
      `this cluster sees the provider's pods ${prefix} as ${as}, so its DNS names addresses that are others over there: ${OWN_RANGES}`,
    );
  }
  const told = new Map(seenAs.map(({ prefix, as }) => [prefix, as]));
  for (const prefix of [...services, ...dns.addresses]) {
    const as = told.get(prefix);
    if (as !== undefined && as !== prefix) {
      return none(
        HOME_REACH_REASONS.seenElsewhere,
        `the provider sees our ${prefix} as ${as}, so our DNS names addresses that are others over there: ${OWN_RANGES}`,
      );
    }
  }
  const untold = [...services, ...dns.addresses].find((prefix) => !told.has(prefix));
  if (untold !== undefined) {
    return unknown(
      HOME_REACH_REASONS.peerViews,
      `the provider has not told yet as what it sees our ${untold}: see kubectl describe tunnel`,
    );
  }
  const unseen = theirs.find((prefix) => !views.some((view) => view.prefix === prefix));
  if (unseen === undefined) return { kind: 'Open', ranges: services };
  return unknown(
    HOME_REACH_REASONS.prefixRefused,
    `this cluster sees the provider's pods ${unseen} nowhere yet: see kubectl describe tunnel`,
  );
}

const OWN_RANGES =
  'give the two clusters ranges of pods and Services that do not overlap, and let each keep these at the other one ' +
  '(ownAddresses under spec.network of the ForeignCluster)';

const none = (reason: HomeReachReason, message: string): HomeDnsView => ({ kind: 'None', reason, message });
const unknown = (reason: HomeReachReason, message: string): HomeDnsView => ({
  kind: 'Unknown',
  reason,
  message,
});
