import type { ForeignCluster, PeeringState } from '../../api/foreign-cluster.ts';
import { isClusterID } from '../../api/forms.ts';
import { TUNNEL_LIMITS } from '../../api/limits.ts';
import type {
  AddressPort,
  NetworkAccess,
  NetworkTransit,
  PeerView,
  Tunnel,
  TunnelPeer,
  TunnelSpec,
} from '../../api/tunnel.ts';
import type { RefusedPrefix, WantedPrefix } from '../ipam/wanted-prefixes.ts';
import { checkSeenAs } from '../ipam/seen-as.ts';
import type { NetworkDocument } from '../../api/peer-documents.ts';

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

/**
 * What a peer said last; null: that it has nothing to say (any more); undefined: nothing yet since we started, so that
 * what is stored stands.
 */
export type Heard = NetworkDocument | null | undefined;

interface SpecFacts {
  peer: NetworkPeer;
  heard: Heard;
  /** All prefixes that we have told it. */
  exported: readonly string[];
  current?: TunnelSpec;
  services?: TunnelServices;
}

/** Endpoints of Services between the two; of what is undefined nothing is known yet, and what is stored stands. */
export interface TunnelServices {
  offered: readonly AddressPort[] | undefined;
  used: readonly AddressPort[] | undefined;
}

interface Decided {
  spec: TunnelSpec;
  /** Views of the peer that cannot be. */
  refused: RefusedPrefix[];
}

/** The Tunnel's spec as it is to be. */
export function decideSpec({ peer, heard, exported, current, services }: SpecFacts): Decided {
  const { clusterID, clusterName, access, transit } = peer;
  const end = endOf(peer, heard === undefined ? current?.peer : (heard ?? undefined));
  // What is stored may name what we export no more, and what may be another peer's by now.
  const views = heard === undefined ? current?.seenAs : heard?.views;
  const { seenAs, refused } = checkSeenAs(views ?? [], exported);
  const spec: TunnelSpec = {
    clusterID,
    ...(clusterName !== undefined && { clusterName }),
    ...(end && { peer: end }),
    ...(seenAs.length > 0 && { seenAs }),
    access,
    transit,
    ...servicesOf(peer, services, current),
  };
  return { spec, refused: heard === undefined ? [] : refused };
}

function servicesOf(
  { incoming, outgoing }: NetworkPeer,
  services?: TunnelServices,
  current?: TunnelSpec,
): Pick<TunnelSpec, 'offered' | 'used'> {
  const offered = incoming ? bounded(services?.offered ?? current?.offered) : [];
  const used = outgoing ? bounded(services?.used ?? current?.used) : [];
  return { ...(offered.length > 0 && { offered }), ...(used.length > 0 && { used }) };
}

const bounded = (places: readonly AddressPort[] = []): AddressPort[] =>
  places.slice(0, TUNNEL_LIMITS.offered);

function endOf({ incoming }: NetworkPeer, said: TunnelPeer | undefined): TunnelPeer | undefined {
  if (said === undefined) return undefined;
  const { publicKey, endpoints, pods, external, transit = [] } = said;
  // Only a home forwards for its pods; anybody else has no third cluster to speak for.
  const forwarded = incoming && transit.length > 0 && { transit };
  return { publicKey, endpoints, pods, external, ...forwarded };
}

/** What is to be seen of a peer. Undefined: it has said nothing, and what is assigned stays. */
export function wantedPrefixes(peer: TunnelPeer | undefined): WantedPrefix[] | undefined {
  if (peer === undefined) return undefined;
  const { pods, external, transit = [] } = peer;
  const all: WantedPrefix[] = [
    ...pods.map((prefix) => ({ prefix, use: 'Pods' as const })),
    ...external.map((prefix) => ({ prefix, use: 'External' as const })),
    ...transit.map((prefix) => ({ prefix, use: 'Transit' as const })),
  ];
  const seen = new Set<string>();
  return all.filter(({ prefix }) => !seen.has(prefix) && seen.add(prefix));
}

/**
 * Prefixes of other clusters that we forward for a peer: as we see those pods that run ours, for one that runs ours as
 * well. So our pods over there reach our pods over here, through us.
 */
export function transitFor(peer: NetworkPeer, tunnels: Iterable<Tunnel>, peers: NetworkPeers): string[] {
  if (!forwards(peer)) return [];
  const found: string[] = [];
  for (const { metadata, spec, status } of tunnels) {
    const other = peers.get(metadata.name);
    if (other === undefined || other.clusterID === peer.clusterID) continue;
    if (!forwards(other) || spec.transit !== 'OffloadedPods') continue;
    found.push(...podViews(status?.views));
  }
  return found.toSorted();
}

const forwards = ({ outgoing, transit }: NetworkPeer): boolean => outgoing && transit === 'OffloadedPods';

export const podViews = (views: readonly PeerView[] = []): string[] =>
  views.filter(({ use }) => use === 'Pods').map(({ as }) => as);
