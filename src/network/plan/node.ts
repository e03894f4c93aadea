import { type NetworkNode, type OwnNetwork, PROBE_PORT } from '../../api/own-network.ts';
import type { Tunnel } from '../../api/tunnel.ts';
import { formatPrefix, mergePrefixes, prefixesOf, without } from '../../lib/prefix.ts';
import type { ChainConfig, HostConfig, RouteConfig, TableConfig, VxlanLink } from '../host/host-config.ts';
import { HOOKS, METRICS, peerName, REFUSED_NODE, REFUSED_VXLAN, vxlanMac } from './names.ts';
import { FAMILIES, familyOf, single, viewsOf, WORDS } from './peer.ts';
import { addressKey, addressSets, directory, prefixSet, refuse, toPeer } from './sets.ts';

export interface NodePlanFacts {
  network: OwnNetwork;
  nodeName: string;
  /** WireGuard. */
  link: string;
  vxlanLink: string;
  /** Largest packet on WireGuard, in bytes. VXLAN takes packets of the same size, and adds 50 bytes (70 over IPv6). */
  mtu: number;
  /** Holder of the Lease. */
  gatewayNode?: string;
  /** `mtu`: largest packet that goes through that tunnel. */
  tunnels: { tunnel: Tunnel; mtu?: number }[];
}

/** What every node wants of its host, also the node of the gateway. */
export function nodePlan(facts: NodePlanFacts): HostConfig {
  const { network, nodeName, vxlanLink, gatewayNode } = facts;
  const self = network.nodes.find(({ name }) => name === nodeName);
  const others = network.nodes.filter(({ name }) => name !== nodeName);
  const vxlan = self !== undefined && others.length > 0 ? vxlanOf(facts, self, others) : undefined;
  const gateway = others.find(({ name }) => name === gatewayNode);
  const views = facts.tunnels.flatMap(({ tunnel }) => viewsOf(tunnel)).map(({ prefix }) => prefix);
  return {
    owner: 'node',
    links: vxlan === undefined ? [] : [vxlan],
    routes: [
      ...(vxlan === undefined || self === undefined || gateway === undefined
        ? []
        : [...viewRoutes(facts, self, gateway), toGateway(facts, self, gateway)]),
      ...fallbacks(network, views),
    ],
    rules: [],
    sysctls:
      vxlan === undefined
        ? {}
        : {
            // Packets of pods on other nodes come by VXLAN, while packets to them leave by the CNI's way.
            [`net/ipv4/conf/${vxlanLink}/rp_filter`]: '2',
            [`net/ipv4/conf/${vxlanLink}/send_redirects`]: '0',
          },
    nftables: nodeTable(facts, vxlan && self),
  };
}

function vxlanOf(
  { network, vxlanLink, mtu }: NodePlanFacts,
  self: NetworkNode,
  others: readonly NetworkNode[],
): VxlanLink {
  return {
    kind: 'vxlan',
    name: vxlanLink,
    mtu,
    addresses: [single(self.external)],
    vni: network.vxlan.vni,
    port: network.vxlan.port,
    local: self.address,
    macAddress: vxlanMac(self.external),
    neighbours: others.map(({ external, address }) => ({
      address: external,
      macAddress: vxlanMac(external),
      via: address,
    })),
  };
}

/** Only views of the external range's family: an IPv6 view cannot be sent to an IPv4 neighbour, and is unreachable so far. */
function viewRoutes(facts: NodePlanFacts, self: NetworkNode, gateway: NetworkNode): RouteConfig[] {
  return facts.tunnels.flatMap(({ tunnel, mtu }) =>
    viewsOf(tunnel)
      .filter(({ family }) => family === familyOf(gateway.external))
      .map(({ prefix }) => ({
        destination: prefix,
        metric: METRICS.gateway,
        to: { link: facts.vxlanLink, gateway: gateway.external },
        source: self.external,
        ...(mtu !== undefined && mtu < facts.mtu && { mtu }),
      })),
  );
}

/** For answers to the gateway's probes. */
const toGateway = (
  { vxlanLink }: NodePlanFacts,
  self: NetworkNode,
  { external }: NetworkNode,
): RouteConfig => ({
  destination: single(external),
  metric: METRICS.gateway,
  to: { link: vxlanLink, gateway: external },
  source: self.external,
});

/** `self`: this node, where there is VXLAN. */
function nodeTable(facts: NodePlanFacts, self: NetworkNode | undefined): TableConfig {
  const peers = facts.tunnels.map(({ tunnel }) => ({ id: tunnel.metadata.name, views: viewsOf(tunnel) }));
  return {
    chains: [
      ...(self === undefined ? [] : guards(facts, self)),
      { name: 'source', hook: HOOKS.source, rules: sourceRules(facts, self) },
      ...peers.map(({ id, views }) => ({
        name: peerName('keep', id),
        rules: views.map(({ family, prefix }) => keep(family, prefix)),
      })),
    ],
    sets: [
      ...directory('keep', peers),
      ...(self === undefined
        ? []
        : [
            ...addressSets(
              (family) => `nodes${family}`,
              facts.network.nodes.map(({ address }) => address),
            ),
            ...FAMILIES.map((family) =>
              prefixSet(
                `views${family}`,
                family,
                peers.flatMap(({ views }) => views.map(({ prefix }) => prefix)),
              ),
            ),
          ]),
    ],
  };
}

/**
 * The source stays as it is, and no later chain changes it. A decision of nat is final, while after an `accept` the next chain may
 * still masquerade.
 */
const keep = (family: 4 | 6, prefix: string): string =>
  `${WORDS[family]} saddr ${prefix} snat ${WORDS[family]} prefix to ${prefix}`;

function sourceRules({ network, link, vxlanLink }: NodePlanFacts, self: NetworkNode | undefined): string[] {
  const views = toPeer('keep', 'saddr');
  // The gateway translates what leaves by WireGuard.
  const rules = [`oifname "${link}" return`, ...views];
  if (self === undefined) return rules;
  const pods = prefixesOf(network.pods);
  const family = familyOf(self.external);
  return [
    ...rules,
    `oifname != "${vxlanLink}" return`,
    ...pods.map((prefix) => keep(prefix.family, formatPrefix(prefix))),
    `meta nfproto ipv${family} snat ${WORDS[family]} to ${self.external}`,
  ];
}

/**
 * VXLAN believes everybody who knows its port, and packets that come out of it may be a peer's. To addresses of pods that no node has
 * as its own they come by the CNI's links: such an address may be one that the CNI has given to the node itself. WireGuard's are judged
 * by the gateway.
 */
function guards({ network, link, vxlanLink }: NodePlanFacts, self: NetworkNode): ChainConfig[] {
  const word = WORDS[familyOf(self.external)];
  // Only nodes have sources in the external range: a peer's have been checked by the gateway, and views never lie in it.
  const probe = `${word} saddr ${network.external} ${word} daddr ${self.external} tcp dport ${PROBE_PORT}`;
  const vxlan = `udp dport ${network.vxlan.port}`;
  const sides = (side: 'saddr' | 'daddr', is: '' | '!= '): string[] =>
    FAMILIES.map(
      (family) => `${vxlan} ${WORDS[family]} ${side} ${is}@nodes${family} ${refuse(REFUSED_VXLAN)}`,
    );
  return [
    {
      name: 'arrival',
      hook: HOOKS.arrival,
      // This stands before kube-proxy, for which an address of the node with the port of a Service is that Service.
      rules: [
        `iifname "${vxlanLink}" ${probe} accept`,
        `iifname "${vxlanLink}" ct state new fib daddr type local ${refuse(REFUSED_NODE)}`,
        ...FAMILIES.map(
          (family) =>
            `iifname != "${link}" ct state new ${addressKey(family, 'saddr')} @views${family} fib daddr type local ${refuse(REFUSED_NODE)}`,
        ),
      ],
    },
    { name: 'input', hook: HOOKS.input, rules: sides('saddr', '!= ') },
    // Only nodes send VXLAN. The address of a pod that sends it may be masqueraded to its node's on the way, so it ends here.
    { name: 'forward', hook: HOOKS.forward, rules: sides('daddr', '') },
  ];
}

/**
 * The routes that are left for views and for their pools when there is no other route: senders get an answer at once, and nothing
 * goes in clear to some router. What is in use here is left out, even where a pool covers it: Services and the underlay may have no
 * route of their own, and are reached by the default route.
 */
function fallbacks(network: OwnNetwork, views: readonly string[]): RouteConfig[] {
  const own = prefixesOf([
    ...network.pods,
    network.external,
    ...(network.reserved ?? []),
    ...network.nodes.map(({ address }) => single(address)),
  ]);
  const pools = prefixesOf(network.pools);
  const free = without(mergePrefixes(pools), mergePrefixes(own)).map(formatPrefix);
  return [...new Set([...views, ...free])].map((destination) => ({
    destination,
    metric: METRICS.unreachable,
    to: 'unreachable',
  }));
}
