import { createHash } from 'node:crypto';

import type { OwnNetwork } from '../../api/own-network.ts';
import type { HomeApiAddress, PrefixUse, PrefixView, Tunnel } from '../../api/tunnel.ts';
import {
  canonicalPrefix,
  formatPrefix,
  type IpFamily,
  parseAddress,
  type Prefix,
  prefixesOf,
  tryPrefix,
  WIDTHS,
} from '../../lib/prefix.ts';
import { translate } from '../views.ts';

/** One peer, as the active gateway knows it. */
export interface GatewayPeer {
  tunnel: Tunnel;
  /** Base64. */
  presharedKey?: string;
  /** Where WireGuard first sends to: literal `host:port`. */
  endpoint?: string;
  /** Largest packet that goes through the tunnel, in bytes, as probed. At most `GatewayPlanFacts.mtu`. */
  mtu?: number;
  /** Addresses, as we see them, of our pods that run at that peer. */
  abroad: string[];
  /** Those of them whose pods have a token for our API server. */
  clients: string[];
  /** Addresses of that peer's pods that run here. */
  hosted: string[];
}

/** A peer with what was prepared of it. */
export interface PlannedPeer extends GatewayPeer {
  plan: PlanPeer;
  /** Largest packet through its tunnel, in bytes. */
  mtu: number;
  /** Prefixes of our pods. */
  own: readonly string[];
}

/** A prefix of the peer, in our addresses. */
export interface View {
  family: IpFamily;
  /** As the kernel prints it. */
  prefix: string;
}

/** A prefix of ours, and the prefix as which the peer sees it; both as the kernel prints them. */
export interface Export {
  family: IpFamily;
  use: PrefixUse;
  prefix: string;
  as: string;
}

/** What the rules for one peer are made of. Every text in it was parsed, so that none can be more than an address. */
export interface PlanPeer {
  id: string;
  tunnel: Tunnel;
  views: readonly View[];
  /** Pods come first, then transit, then the external range, so that all chains agree where these prefixes overlap. */
  exports: readonly Export[];
  /** Ranges of our ClusterIPs that our pods over there reach. They are not translated: the peer sees them as themselves. */
  services: readonly View[];
  /** Our gateway as the peer sees it. */
  gateway?: string;
  /** What stands for our API servers, as the peer sees it; whether it may reach them or not. */
  apiServersAs?: string;
  /** The API server, where the peer may reach it. */
  apiServer?: ApiServerWay;
  /** All API servers of ours, whether it may reach them or not. */
  servers: readonly HomeApiAddress[];
  /** The API server of the peer, as we see it, where its pods here may not reach it. */
  forbidden?: HomeApiAddress;
}

/** How connections come to an API server of ours. */
export interface ApiServerWay {
  family: IpFamily;
  /** As the peer sees what stands for all of them. */
  as: string;
  port: number;
  /** The one that this peer's connections go to. */
  endpoint: HomeApiAddress;
}

const ORDER: readonly PrefixUse[] = ['Pods', 'Transit', 'External'];
export const FAMILIES: readonly IpFamily[] = [4, 6];
/** The word for the family in nft. */
export const WORDS: Readonly<Record<IpFamily, 'ip' | 'ip6'>> = { 4: 'ip', 6: 'ip6' };

/**
 * `transit`: our views of third clusters that may be exported to this peer. Prefixes that we do not export are passed over, though the
 * peer says as what it sees them.
 */
export function planPeer(tunnel: Tunnel, network: OwnNetwork, transit: ReadonlySet<string>): PlanPeer {
  const pods = new Set(network.pods.map((prefix) => canonicalPrefix(prefix) ?? ''));
  const outside = canonicalPrefix(network.external);
  // All peers share the set of views, of which there are as many as peers: it is asked and never copied.
  const useOf = (prefix: string): PrefixUse | undefined => {
    if (prefix === outside) return 'External';
    if (pods.has(prefix)) return 'Pods';
    return transit.has(prefix) ? 'Transit' : undefined;
  };
  const seen = new Map<string, Export>();
  for (const pair of tunnel.spec.seenAs ?? []) {
    const found = exportOf(pair, useOf);
    if (found !== undefined && !seen.has(found.prefix)) seen.set(found.prefix, found);
  }
  const exports = [...seen.values()].toSorted((a, b) => ORDER.indexOf(a.use) - ORDER.indexOf(b.use));
  const external = exports.filter(({ use }) => use === 'External');
  const gateway = translate(external, network.gatewayAddress);
  const apiServersAs = network.apiServer && translate(external, network.apiServer.address);
  const apiServer = apiServerWay(tunnel, network, apiServersAs);
  const forbidden = forbiddenServer(tunnel);
  return {
    id: tunnel.metadata.name,
    tunnel,
    views: viewsOf(tunnel),
    exports,
    services: openRanges(tunnel, network),
    servers: (network.apiServer?.endpoints ?? []).filter(isSound),
    ...(gateway !== undefined && { gateway }),
    ...(apiServersAs !== undefined && { apiServersAs }),
    ...(apiServer && { apiServer }),
    ...(forbidden && { forbidden }),
  };
}

/**
 * Each peer has one of the API servers, and all peers together have all of them: the translation is one rule, and an API server that
 * is gone takes itself out of the list. Undefined where the Tunnel does not say so, or names another address than ours.
 */
function apiServerWay(
  { metadata, spec }: Tunnel,
  { apiServer }: OwnNetwork,
  as: string | undefined,
): ApiServerWay | undefined {
  if (apiServer === undefined || spec.apiServer?.address !== apiServer.address) return undefined;
  const { address, port, endpoints } = apiServer;
  const sound = endpoints.filter((one) => isSound(one) && familyOf(one.address) === familyOf(address));
  const number = createHash('sha256').update(metadata.name).digest().readUInt32BE();
  const endpoint = sound[number % sound.length];
  if (as === undefined || endpoint === undefined || !isPort(port)) return undefined;
  return { family: familyOf(address), as, port, endpoint };
}

function forbiddenServer({ spec, status }: Tunnel): HomeApiAddress | undefined {
  const said = spec.homeApiServer === 'Forbidden' ? spec.peer?.apiServer : undefined;
  if (said === undefined || !isPort(said.port)) return undefined;
  const external = (status?.views ?? []).filter(({ use }) => use === 'External');
  const address = translate(external, said.address);
  return address === undefined ? undefined : { address, port: said.port };
}

/** Texts become part of rules, so only what was parsed counts. */
const isSound = ({ address, port }: HomeApiAddress): boolean =>
  parseAddress(address) !== undefined && isPort(port);
const isPort = (port: number): boolean => Number.isInteger(port) && port > 0 && port < 65_536;

/**
 * Ranges that the Tunnel names, that are ours, and that the peer sees as themselves: kube-proxy knows no other address of a Service,
 * and it could not translate one after us. A family without views has no pods over there.
 */
function openRanges(tunnel: Tunnel, network: OwnNetwork): View[] {
  const { services = [], seenAs = [] } = tunnel.spec;
  const own = new Set(asViews(network.services).map(({ prefix }) => prefix));
  const same = new Set(
    asViews(seenAs.flatMap(({ prefix, as }) => (prefix === as ? [as] : []))).map(({ prefix }) => prefix),
  );
  const families = new Set(viewsOf(tunnel).map(({ family }) => family));
  return asViews(services).filter(
    ({ family, prefix }) => own.has(prefix) && same.has(prefix) && families.has(family),
  );
}

export const viewsOf = (tunnel: Tunnel): View[] => asViews((tunnel.status?.views ?? []).map(({ as }) => as));

/** Those that are prefixes, as the kernel prints them. */
const asViews = (texts: readonly string[] = []): View[] =>
  prefixesOf(texts).map((prefix) => ({ family: prefix.family, prefix: formatPrefix(prefix) }));

/** Our views of all peers with open transit: these may reach each other through us. */
export function transitViews(tunnels: readonly Tunnel[]): Set<string> {
  const open = tunnels.filter(({ spec }) => spec.transit === 'OffloadedPods');
  return new Set(open.flatMap(viewsOf).map(({ prefix }) => prefix));
}

function exportOf(pair: PrefixView, useOf: (prefix: string) => PrefixUse | undefined): Export | undefined {
  const [own, as] = [tryPrefix(pair.prefix), tryPrefix(pair.as)];
  if (own === undefined || as === undefined || !sameShape(own, as)) return undefined;
  const prefix = formatPrefix(own);
  const use = useOf(prefix);
  return use && { family: own.family, use, prefix, as: formatPrefix(as) };
}

const sameShape = (one: Prefix, other: Prefix): boolean =>
  one.family === other.family && one.length === other.length;

/** `address/32` or `address/128`. */
export const single = (address: string): string => `${address}/${WIDTHS[familyOf(address)]}`;
export const familyOf = (text: string): IpFamily => (text.includes(':') ? 6 : 4);
