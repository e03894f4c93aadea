import type { NetworkNode } from '../../api/own-network.ts';
import type { Tunnel, WireGuardChoice } from '../../api/tunnel.ts';
import {
  type Address,
  nthAddress,
  parseAddress,
  prefixesOf,
  PrefixSet,
  tryPrefix,
  WIDTHS,
} from '../../lib/prefix.ts';
import type { HostConfig, RouteConfig, RuleConfig, WireGuardPeerConfig } from '../host/host-config.ts';
import { gatewayTable, type GatewayTableFacts } from './gateway-table.ts';
import { METRICS, RETURN_PRIORITY, RETURN_TABLE } from './names.ts';
import {
  FAMILIES,
  familyOf,
  type GatewayPeer,
  type PlannedPeer,
  planPeer,
  single,
  transitViews,
} from './peer.ts';

export interface GatewayPlanFacts extends GatewayTableFacts {
  nodeName: string;
  vxlanLink: string;
  /** Largest packet on WireGuard, in bytes. */
  mtu: number;
  /** Whose WireGuard; default `auto`. */
  wireguard?: WireGuardChoice;
  /** Base64. */
  privateKey: string;
  peers: GatewayPeer[];
  /** Pods' addresses that do not lie in the CIDRs of their nodes, each with the name of that node. Default: none. */
  strays?: ReadonlyMap<string, string>;
}

/** Keeps the mapping of a NAT on the way (RFC 4787 section 4.3 asks for two minutes; many keep UDP for 30 s only). */
const KEEPALIVE_SECONDS = 25;
const KEY = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

/** What the active gateway wants of its host. */
export function gatewayPlan(facts: GatewayPlanFacts): HostConfig {
  const { network, link } = facts;
  const transit = transitViews(facts.peers.map(({ tunnel }) => tunnel));
  const peers = facts.peers.map((peer): PlannedPeer => {
    const through = peer.tunnel.spec.transit === 'OffloadedPods' ? transit : new Set<string>();
    return {
      ...peer,
      plan: planPeer(peer.tunnel, network, through),
      mtu: Math.min(peer.mtu ?? facts.mtu, facts.mtu),
      own: network.pods,
    };
  });
  const back = returnPath(facts);
  return {
    owner: 'gateway',
    links: [
      {
        kind: 'wireguard',
        name: link,
        mtu: facts.mtu,
        addresses: [single(network.gatewayAddress)],
        ...(facts.wireguard !== undefined && { by: facts.wireguard }),
      },
    ],
    routes: [...peers.flatMap((peer) => viewRoutes(facts, peer)), ...back],
    rules: [...returnRules(link, back), ...(back.length === 0 ? [] : probeRules(facts))],
    sysctls: {
      // WireGuard and the filter check the sources, and no packet may be lost while a view changes.
      [`net/ipv4/conf/${link}/rp_filter`]: '2',
      // Packets between two peers leave by the link by which they came.
      [`net/ipv4/conf/${link}/send_redirects`]: '0',
    },
    nftables: gatewayTable(facts, peers),
    wireguard: { link, port: facts.port, privateKey: facts.privateKey, peers: wireguardPeers(peers) },
  };
}

function viewRoutes(
  { network, link, mtu }: GatewayPlanFacts,
  { tunnel, plan, mtu: through }: PlannedPeer,
): RouteConfig[] {
  const way = (destination: string): RouteConfig => ({
    destination,
    metric: METRICS.tunnel,
    to: { link },
    ...(familyOf(destination) === familyOf(network.gatewayAddress) && { source: network.gatewayAddress }),
  });
  const views = plan.views.map(({ prefix }) => way(prefix));
  if (through >= mtu) return views;
  const narrow = views.map((route) => ({ ...route, mtu: through }));
  // Larger probes to the gateway must leave whole, so that a path that has become wider is noticed.
  return [...narrow, ...gatewaysOf(tunnel).map((address) => way(single(address)))];
}

/** The peer's gateway, as we see it. */
function gatewaysOf({ status }: Tunnel): string[] {
  return (status?.views ?? []).flatMap(({ use, as }) => {
    const prefix = use === 'External' ? tryPrefix(as) : undefined;
    return prefix === undefined || prefix.length === WIDTHS[prefix.family] ? [] : [nthAddress(prefix, 1)];
  });
}

/**
 * Routes to pods and nodes on other hosts. Table `main` has those to pods of this host, and to whatever is missing here. A packet that
 * goes to another node than the pod's comes to the pod all the same, but its answer takes another way: that node sees half of each
 * connection, and drops it.
 */
function returnPath({ network, nodeName, vxlanLink, strays = new Map() }: GatewayPlanFacts): RouteConfig[] {
  const others = network.nodes.filter(({ name }) => name !== nodeName);
  const by = (destination: string, to: RouteConfig['to']): RouteConfig => ({
    destination,
    table: RETURN_TABLE,
    metric: METRICS.gateway,
    to,
  });
  const through = ({ external }: NetworkNode): RouteConfig['to'] => ({ link: vxlanLink, gateway: external });
  const nodes = others.flatMap((node) =>
    [single(node.external), ...ofItsFamily(node)].map((destination) => by(destination, through(node))),
  );
  const byName = new Map(others.map((node) => [node.name, node]));
  const elsewhere = new PrefixSet(prefixesOf(others.flatMap(ofItsFamily)));
  const isElsewhere = (address: Address | undefined): boolean =>
    address !== undefined && elsewhere.contains(address);
  // They come first, so that no packet takes the way of the node's CIDR in between.
  const singles = [...strays].flatMap(([address, name]): RouteConfig[] => {
    const node = byName.get(name);
    if (node !== undefined && familyOf(address) === familyOf(node.external))
      return [by(single(address), through(node))];
    return name === nodeName && isElsewhere(parseAddress(address)) ? [by(single(address), 'throw')] : [];
  });
  return [...singles, ...nodes];
}

/** Its CIDRs that VXLAN carries. */
const ofItsFamily = ({ pods, external }: NetworkNode): string[] =>
  pods.filter((prefix) => familyOf(prefix) === familyOf(external));

/** A family without a route needs no rule, and a kernel without IPv6 refuses its rules. */
function returnRules(incoming: string, back: readonly RouteConfig[]): RuleConfig[] {
  const used = new Set(back.map(({ destination }) => familyOf(destination)));
  return FAMILIES.filter((family) => used.has(family)).map((family) => ({
    family,
    priority: RETURN_PRIORITY,
    incoming,
    table: RETURN_TABLE,
  }));
}

/** What this host sends from its address on VXLAN, such as probes of other nodes, leaves by VXLAN. */
function probeRules({ network, nodeName }: GatewayPlanFacts): RuleConfig[] {
  const self = network.nodes.find(({ name }) => name === nodeName);
  if (self === undefined) return [];
  const { external } = self;
  return [
    {
      family: familyOf(external),
      priority: RETURN_PRIORITY,
      from: single(external),
      table: RETURN_TABLE,
    },
  ];
}

/**
 * A public key is no secret. A peer that announces the key of another must not take its place: the older tunnel keeps the key, since
 * only a key that was there before can be copied.
 */
function wireguardPeers(peers: readonly PlannedPeer[]): WireGuardPeerConfig[] {
  const age = ({ tunnel: { metadata } }: PlannedPeer): string =>
    `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  const byKey = new Map<string, PlannedPeer>();
  for (const peer of peers.toSorted((a, b) => (age(a) < age(b) ? -1 : 1))) {
    const key = peer.tunnel.spec.peer?.publicKey;
    if (key !== undefined && KEY.test(key) && !byKey.has(key)) byKey.set(key, peer);
  }
  return [...byKey].map(([publicKey, { plan, presharedKey, endpoint }]) => ({
    publicKey,
    ...(presharedKey !== undefined && { presharedKey }),
    ...(endpoint !== undefined && { endpoint }),
    allowedIPs: plan.views.map(({ prefix }) => prefix),
    keepalive: KEEPALIVE_SECONDS,
  }));
}
