import type { NetworkNode, OwnNetwork } from '../../api/own-network.ts';
import type { Tunnel } from '../../api/tunnel.ts';
import type { HostConfig, RouteConfig, VxlanLink } from '../host/host-config.ts';
import { METRICS, vxlanMac } from './names.ts';
import { nodeTable } from './node-table.ts';
import { familyOf, single, viewsOf } from './peer.ts';
import { fallbacks } from './routes.ts';

export interface NodePlanFacts {
  network: OwnNetwork;
  nodeName: string;
  /** WireGuard. */
  link: string;
  vxlanLink: string;
  /** Largest packet on WireGuard, in bytes; VXLAN takes the same, and adds 50 of its own (70 over IPv6). */
  mtu: number;
  /** Holder of the Lease. */
  gatewayNode?: string;
  /** `mtu`: largest packet that goes through that tunnel. */
  tunnels: { tunnel: Tunnel; mtu?: number }[];
}

/** What every node wants of its host; that of the gateway, too. */
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
        : viewRoutes(facts, self, gateway)),
      ...fallbacks(network, views),
    ],
    rules: [],
    sysctls:
      vxlan === undefined
        ? {}
        : {
            // What pods of other nodes send comes by VXLAN, while the way to them is the CNI's.
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

/** Only of the external range's family: an IPv6 view cannot be sent to an IPv4 neighbour, and is unreachable so far. */
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
