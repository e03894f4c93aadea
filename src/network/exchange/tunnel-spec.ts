import type { ForeignCluster, ForeignClusterNetwork, PeeringState } from '../../api/foreign-cluster.ts';
import { isClusterID } from '../../api/forms.ts';
import { TUNNEL_LIMITS } from '../../api/limits.ts';
import type {
  AddressPort,
  ApiServerAccess,
  HomeApiAddress,
  NetworkAccess,
  NetworkDns,
  NetworkServices,
  NetworkTransit,
  PeerView,
  Tunnel,
  TunnelPeer,
  TunnelSpec,
} from '../../api/tunnel.ts';
import type { OwnNetwork } from '../../api/own-network.ts';
import type { RefusedPrefix, WantedPrefix } from '../ipam/wanted-prefixes.ts';
import { contains, formatPrefix, prefixesOf } from '../../lib/prefix.ts';
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
  /** Whether our pods there reach our API server. */
  apiServer: ApiServerAccess;
  /** Whether our pods there reach our ClusterIPs. */
  services: NetworkServices;
  /** Which DNS our pods there ask. */
  dns: NetworkDns;
  /** Ranges in which it keeps its own addresses here. Absent: nobody has said. */
  ownAddresses?: readonly string[];
}

export type NetworkPeers = ReadonlyMap<string, NetworkPeer>;

const isPeered = (state: PeeringState | undefined): boolean =>
  state?.phase === 'Accepted' || state?.phase === 'Established';

/** Our peers by ClusterID. A lost link changes nothing here: the phase lasts as long as the agreement. */
export function networkPeers(
  clusters: Iterable<ForeignCluster>,
  defaults: Pick<ForeignClusterNetwork, 'ownAddresses'> = {},
): NetworkPeers {
  const peers = new Map<string, NetworkPeer>();
  for (const cluster of clusters) {
    const peer = networkPeer(cluster, defaults);
    if (peer !== undefined) peers.set(peer.clusterID, peer);
  }
  return peers;
}

/** As the API server sets them. */
const NETWORK_DEFAULTS: Required<Omit<ForeignClusterNetwork, 'ownAddresses'>> = {
  access: 'OffloadedPods',
  transit: 'OffloadedPods',
  apiServer: 'OffloadedPods',
  services: 'None',
  dns: 'Foreign',
};

function networkPeer(
  { spec, status = {} }: ForeignCluster,
  defaults: Pick<ForeignClusterNetwork, 'ownAddresses'>,
): NetworkPeer | undefined {
  const { clusterName, clusterID = spec?.clusterID ?? '' } = status;
  const [outgoing, incoming] = [isPeered(status.outgoing), isPeered(status.incoming)];
  if (!isClusterID(clusterID) || (!outgoing && !incoming)) return undefined;
  const named = clusterName !== undefined && { clusterName };
  return { clusterID, ...named, outgoing, incoming, ...NETWORK_DEFAULTS, ...defaults, ...spec?.network };
}

/**
 * The last document of a peer. null: the peer has said that it has none (any more). undefined: it has said nothing since we started,
 * so what is stored stays.
 */
export type Heard = NetworkDocument | null | undefined;

interface SpecFacts {
  peer: NetworkPeer;
  heard: Heard;
  /** All prefixes that we have told the peer. */
  exported: readonly string[];
  /** Those of them that are ranges of our ClusterIPs. */
  ranges?: readonly string[];
  /** Those of them that have pods: ours, and ours in third clusters. */
  pods?: readonly string[];
  current?: TunnelSpec;
  services?: TunnelServices;
  /** Where our API servers are for pods of ours at peers. */
  apiServer?: HomeApiAddress;
  /** Our policy keeps the peer's pods here from its API server. */
  forbidsHomeApiServer?: boolean;
}

/** Endpoints of Services between the two clusters. Undefined: not known yet, and what is stored stays. */
export interface TunnelServices {
  offered: readonly AddressPort[] | undefined;
  used: readonly AddressPort[] | undefined;
}

interface Decided {
  spec: TunnelSpec;
  /** How the peer sees our prefixes, as far as that cannot be believed. */
  refused: RefusedPrefix[];
}

/** The Tunnel's spec as it should be. */
export function decideSpec(facts: SpecFacts): Decided {
  const { peer, heard, exported, current } = facts;
  const { clusterID, clusterName, access, transit } = peer;
  const end = endOf(peer, heard === undefined ? current?.peer : (heard ?? undefined));
  // What is stored may name prefixes that we no longer export, and that may belong to another peer now.
  const views = heard === undefined ? current?.seenAs : heard?.views;
  const { seenAs, refused } = checkSeenAs(views ?? [], exported);
  const spec: TunnelSpec = {
    clusterID,
    ...(clusterName !== undefined && { clusterName }),
    ...(end && { peer: end }),
    ...(seenAs.length > 0 && { seenAs }),
    ...ownAddressesOf(peer),
    access,
    transit,
    ...apiServersOf(facts, end),
    ...clusterIPsOf(facts),
    ...servicesOf(peer, facts.services, current),
  };
  return { spec, refused: heard === undefined ? [] : refused };
}

const ownAddressesOf = ({ ownAddresses }: NetworkPeer): Pick<TunnelSpec, 'ownAddresses'> =>
  ownAddresses === undefined ? {} : { ownAddresses: [...ownAddresses] };

function clusterIPsOf({
  peer: { outgoing, dns },
  ranges = [],
  pods = [],
}: SpecFacts): Pick<TunnelSpec, 'services' | 'dns'> {
  return {
    ...(ranges.length > 0 && { services: [...ranges] }),
    ...(outgoing && dns === 'Home' && { dns: { addresses: [...pods] } }),
  };
}

/** Where the pods of each find their API server, and whether they may. `end`: as the peer said it. */
function apiServersOf(
  { peer, apiServer, forbidsHomeApiServer = false }: SpecFacts,
  end: TunnelPeer | undefined,
): Pick<TunnelSpec, 'apiServer' | 'homeApiServer'> {
  const isOpen = peer.outgoing && peer.access !== 'None' && peer.apiServer === 'OffloadedPods';
  const { address, port } = apiServer ?? {};
  return {
    ...(isOpen &&
      end?.forbidsHomeApiServer !== true &&
      address !== undefined &&
      port !== undefined && { apiServer: { address, port } }),
    ...(peer.incoming && forbidsHomeApiServer && { homeApiServer: 'Forbidden' as const }),
  };
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

function endOf({ incoming, outgoing }: NetworkPeer, said: TunnelPeer | undefined): TunnelPeer | undefined {
  if (said === undefined) return undefined;
  const { publicKey, endpoints, pods, external, transit = [], apiServer, forbidsHomeApiServer } = said;
  // Only a home forwards for its pods. No other peer speaks for third clusters.
  const forwarded = incoming && transit.length > 0 && { transit };
  return {
    publicKey,
    endpoints,
    pods,
    external,
    ...forwarded,
    // Only pods that run here ask for the API server of their home, and only who runs ours can forbid them ours.
    ...(incoming && apiServer !== undefined && { apiServer }),
    ...(outgoing && forbidsHomeApiServer === true && { forbidsHomeApiServer }),
  };
}

/** Prefixes of a peer that need a view. Undefined: the peer has said nothing, and the views that it has stay. */
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
 * Prefixes of third clusters that we forward for a peer that runs our pods: our views of the pods of the other peers that run ours as
 * well. So our pods at one peer reach our pods at another one, through us.
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

/** Ranges of our ClusterIPs that our pods at that peer reach. */
export function serviceRangesFor(
  { outgoing, access, services }: NetworkPeer,
  own: Pick<OwnNetwork, 'services'>,
): string[] {
  if (!outgoing || access === 'None' || services === 'None') return [];
  // ServiceCIDRs may lie in each other, and a peer sees no prefix twice.
  const all = prefixesOf(own.services ?? []);
  const widest = all.filter((one) => !all.some((other) => other.length < one.length && contains(other, one)));
  return [...new Set(widest.map(formatPrefix))].slice(0, TUNNEL_LIMITS.services);
}

const forwards = ({ outgoing, transit }: NetworkPeer): boolean => outgoing && transit === 'OffloadedPods';

export const podViews = (views: readonly PeerView[] = []): string[] =>
  views.filter(({ use }) => use === 'Pods').map(({ as }) => as);
