import { LABEL_PEER } from '../../api/names.ts';
import type { OwnNetwork } from '../../api/own-network.ts';
import type { Tunnel } from '../../api/tunnel.ts';
import type { Namespace, Pod, Secret } from '../../api/wire.ts';
import { present } from '../../lib/fields.ts';
import {
  canonicalPrefix,
  contains,
  nthAddress,
  parseAddress,
  type Prefix,
  prefixesOf,
  tryPrefix,
} from '../../lib/prefix.ts';
import { isKey } from '../host/wireguard/keys.ts';
import type { GatewayPeer } from '../plan/peer.ts';
import type { ProbeResult, ProbeTarget } from '../probe/peer-probe.ts';
import { translate } from '../views.ts';

/** Addresses of pods, in order, by the ClusterID of a peer. */
export type AddressesByPeer = ReadonlyMap<string, readonly string[]>;

/** Whether the pod's addresses are in use: it has addresses of its own, and has not ended. */
export const isOnNetwork = ({ spec, status }: Pick<Pod, 'spec' | 'status'>): boolean =>
  spec?.hostNetwork !== true && (status?.phase === 'Running' || status?.phase === 'Pending');

/** Whether the pod has a token of its account: of the volume that every pod has by default, or of one that it asks for. */
export const hasToken = ({ spec }: Pick<Pod, 'spec'>): boolean =>
  (spec?.volumes ?? []).some(({ projected }) =>
    projected?.sources?.some(({ serviceAccountToken }) => serviceAccountToken !== undefined),
  );

export const addressesOf = ({ status }: Pick<Pod, 'status'>): string[] =>
  (status?.podIPs ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip]));

/**
 * Addresses of the pods of peers that run here. A label on the pod is only a claim of whoever made it. To which peer the namespace
 * belongs is told by the label that lending has put on it.
 */
export function hostedByPeer(
  pods: Iterable<Pod>,
  namespaceOf: (name: string) => Namespace | undefined,
): AddressesByPeer {
  const byPeer = new Map<string, string[]>();
  for (const pod of pods) {
    const peer = namespaceOf(pod.metadata.namespace ?? '')?.metadata.labels?.[LABEL_PEER];
    if (peer === undefined || !isOnNetwork(pod)) continue;
    const addresses = byPeer.get(peer) ?? [];
    addresses.push(...addressesOf(pod));
    byPeer.set(peer, addresses);
  }
  return byPeer;
}

export interface PeersInput {
  tunnels: readonly Tunnel[];
  network: OwnNetwork;
  /** Our own, base64. */
  publicKey: string;
  preshared: Secret | undefined;
  abroad: AddressesByPeer;
  /** Those of the pods abroad that have a token for our API server. */
  clients: AddressesByPeer;
  hosted: AddressesByPeer;
  endpointOf: (clusterID: string) => string | undefined;
  probes: ReadonlyMap<string, ProbeResult>;
  /** Largest packet on WireGuard. */
  mtu: number;
}

/** Peers for the plan, in the order of their names, so that the plan does not depend on the order of events. */
export function gatewayPeers(input: PeersInput): GatewayPeer[] {
  const refused = refusedPeers(input.tunnels, input.publicKey);
  return input.tunnels
    .filter(({ metadata }) => !refused.has(metadata.name))
    .map((tunnel) => peerOf(tunnel, input));
}

function peerOf(tunnel: Tunnel, input: PeersInput): GatewayPeer {
  const id = tunnel.metadata.name;
  const presharedKey = presharedKeyOf(input.preshared, id);
  const endpoint = input.endpointOf(id);
  const mtu = input.probes.get(id)?.mtu ?? tunnel.status?.connection?.mtu;
  const views = prefixesOf((tunnel.status?.views ?? []).map(({ as }) => as));
  return {
    tunnel,
    ...(presharedKey !== undefined && { presharedKey }),
    ...(endpoint !== undefined && { endpoint }),
    ...(mtu !== undefined && { mtu: Math.min(mtu, input.mtu) }),
    abroad: within(views, input.abroad.get(id)),
    clients: within(views, input.clients.get(id)),
    hosted: within(prefixesOf(input.network.pods), input.hosted.get(id)),
  };
}

/** The address of a pod abroad was reported by its provider: one outside the provider's views would open a way to somebody else. */
function within(prefixes: readonly Prefix[], addresses: readonly string[] = []): string[] {
  const inside = addresses.filter((text) => {
    const address = parseAddress(text);
    return address !== undefined && prefixes.some((prefix) => contains(prefix, address));
  });
  return [...new Set(inside)].toSorted();
}

function presharedKeyOf(secret: Secret | undefined, id: string): string | undefined {
  const data = secret?.data ?? {};
  const value = Object.hasOwn(data, id) ? data[id] : undefined;
  if (value === undefined) return undefined;
  const key = Buffer.from(value, 'base64').toString('latin1').trim();
  // The whole link is checked in the same way, and one bad key must not have it refused.
  return isKey(key) ? key : undefined;
}

/**
 * Peers that get no tunnel, and why. WireGuard tells peers apart by their keys: of two with the same key, the later one would get the
 * packets of the earlier one. A peer announces such a key only on purpose, so the older tunnel stays.
 */
export function refusedPeers(tunnels: readonly Tunnel[], ownKey: string): Map<string, string> {
  const refused = new Map<string, string>();
  const owners = new Map<string, string>([[ownKey, '']]);
  for (const { metadata, spec } of tunnels.toSorted(byAge)) {
    const key = spec.peer?.publicKey;
    if (key === undefined) continue;
    const owner = owners.get(key);
    if (owner === undefined) owners.set(key, metadata.name);
    else if (owner === '') refused.set(metadata.name, 'the peer has announced our own WireGuard key');
    else refused.set(metadata.name, `the peer has announced the WireGuard key of ${owner}`);
  }
  return refused;
}

function byAge({ metadata: one }: Tunnel, { metadata: other }: Tunnel): number {
  const [a, b] = [one, other].map(({ creationTimestamp, name }) => `${creationTimestamp} ${name}`);
  return (a ?? '') < (b ?? '') ? -1 : 1;
}

/**
 * Ranges in which no peer's gateway is: what is ours, and what leads into a tunnel, which would then run through itself, packet in
 * packet without end. There may be a gateway beside our nodes.
 */
export function neverDialled(
  { pods, external, pools, services = [], nodes }: OwnNetwork,
  tunnels: readonly Tunnel[],
): string[] {
  const hosts = nodes.map(({ address }) => `${address}/${address.includes(':') ? 128 : 32}`);
  return [...pods, external, ...pools, ...services, ...hosts, ...viewsOf(tunnels)];
}

/** Prefixes that lead into a tunnel. */
export const viewsOf = (tunnels: readonly Tunnel[]): string[] =>
  tunnels.flatMap(({ status }) => (status?.views ?? []).map(({ as }) => as));

/** Of two ends of a quiet tunnel one asks, and the other listens: the one with the larger key. Both know both keys, and no third thing. */
export const listensTo = (peerKey: string, ownKey: string): boolean => ownKey > peerKey;

/** Our gateway as the peer sees it, which is what the plan translates it to. Undefined: the peer has not said so. */
function gatewaySeenBy({ spec }: Tunnel, { external, gatewayAddress }: OwnNetwork): string | undefined {
  const own = canonicalPrefix(external);
  const pairs = (spec.seenAs ?? []).filter(({ prefix }) => canonicalPrefix(prefix) === own);
  return translate(pairs, gatewayAddress);
}

/** What of these tunnels and of our own network decides to where probes go, and as what they leave. */
export const waysOf = (tunnels: readonly Tunnel[], network: OwnNetwork | undefined): string[] =>
  tunnels.flatMap((tunnel) => [
    ...viewsOf([tunnel]),
    `${tunnel.metadata.name} sees ${network?.gatewayAddress} as ${network && gatewaySeenBy(tunnel, network)}`,
  ]);

/** The peer's gateway has the first address of its external range, which we see as one of the views. */
export function probeTarget(
  tunnel: Tunnel,
  {
    network,
    ownKey,
    endpoint,
  }: { network: OwnNetwork; ownKey?: string | undefined; endpoint?: string | undefined },
): ProbeTarget | undefined {
  const source = network.gatewayAddress;
  const family = source.includes(':');
  const views = tunnel.status?.views ?? [];
  const view = views.find(({ use, as }) => use === 'External' && as.includes(':') === family);
  const prefix = tryPrefix(view?.as ?? '');
  if (prefix === undefined || tunnel.spec.peer === undefined) return undefined;
  try {
    const address = nthAddress(prefix, 1);
    const listens = ownKey !== undefined && listensTo(tunnel.spec.peer.publicKey, ownKey);
    const known = present({ as: gatewaySeenBy(tunnel, network), endpoint });
    return { clusterID: tunnel.metadata.name, address, source, listens, ...known };
  } catch {
    return undefined;
  }
}

/** None before our own network is known. */
export function probeTargets(
  tunnels: readonly Tunnel[],
  given: {
    network: OwnNetwork | undefined;
    ownKey: string | undefined;
    endpointOf: (tunnel: Tunnel) => string | undefined;
  },
): ProbeTarget[] {
  const { network, ownKey, endpointOf } = given;
  if (network === undefined) return [];
  return tunnels.flatMap(
    (tunnel) => probeTarget(tunnel, { network, ownKey, endpoint: endpointOf(tunnel) }) ?? [],
  );
}
