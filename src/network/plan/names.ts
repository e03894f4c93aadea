import { createHash } from 'node:crypto';

import { parseAddress } from '../../lib/prefix.ts';
import type { Owner } from '../host/host-config.ts';

/** Default name of the WireGuard link. The name of the VXLAN link is made of it. */
export const WIREGUARD_LINK = 'tributary';

/** Routes from the tunnel to pods and nodes of other hosts. */
export const RETURN_TABLE = 7480;
/** Before the rule of table `main` (32766), and after the rules of CNIs. */
export const RETURN_PRIORITY = 7480;

/** Of routes to one destination, the kernel takes the one with the lowest metric. */
export const METRICS = {
  /** From the gateway into the tunnel. */
  tunnel: 50,
  /** From any other node to the gateway. */
  gateway: 100,
  /** The route that is left when both others are gone. */
  unreachable: 4000,
} as const;

/**
 * Where our base chains stand. The kernel translates at -100 and 100, whatever priority a nat chain has: the priority only orders
 * nat chains among themselves, and the first that decides wins. So a chain that must see packets as they are on the wire stands
 * below -100 or above 100.
 */
export const HOOKS = {
  /** Below the translation, above conntrack (-200). */
  arrival: { type: 'filter', hook: 'prerouting', priority: -150 },
  /** Before kube-proxy (-100). */
  destination: { type: 'nat', hook: 'prerouting', priority: -110 },
  input: { type: 'filter', hook: 'input', priority: 0 },
  forward: { type: 'filter', hook: 'forward', priority: 0 },
  output: { type: 'filter', hook: 'output', priority: 0 },
  /** Before `source` of the gateway and of the node, which would keep the view of a peer's pod as the source. */
  toServers: { type: 'nat', hook: 'postrouting', priority: 80 },
  /** Before kube-proxy and the CNI (100). */
  source: { type: 'nat', hook: 'postrouting', priority: 90 },
  departure: { type: 'filter', hook: 'postrouting', priority: 150 },
} as const;

/** Each peer has a chain, a map or a set of its own for each of these. */
export type PeerPart =
  | 'from'
  | 'dnat'
  | 'access'
  | 'mss'
  | 'snat'
  | 'sent'
  | 'home'
  | 'api'
  | 'keep'
  | 'abroad'
  | 'clients'
  | 'hosted'
  | `offered${Transport}`;

/** Transports as nft writes them. */
export type Transport = 'tcp' | 'udp' | 'sctp';
export const TRANSPORTS: readonly Transport[] = ['tcp', 'udp', 'sctp'];

/** The name of a peer's chain or set. A ClusterID is short, so the name stays far below the kernel's 255 bytes. */
export const peerName = (part: PeerPart, clusterID: string, family?: 4 | 6): string =>
  `${part}${family ?? ''}_${clusterID.replaceAll(/[^A-Za-z0-9]/g, '_')}`;

/** Comment of the rules that count packets which were refused from this peer. */
export const refusedName = (clusterID: string): string =>
  `refused_${clusterID.replaceAll(/[^A-Za-z0-9]/g, '_')}`;
/** Comments of the other counters. For packets with a source that no peer has: */
export const REFUSED_SOURCE = 'refused_source';
/** For packets to addresses of the gateway's host: */
export const REFUSED_INPUT = 'refused_input';
/** For packets of one peer to another: */
export const REFUSED_TRANSIT = 'refused_transit';
/** For packets of a peer's pod here to another peer. The value is a label of a metric, and stays: */
export const REFUSED_HOSTED = 'refused_tenant';
/** For packets that would have left under an address that the peer does not know: */
export const REFUSED_DEPARTURE = 'refused_departure';
/** For packets of WireGuard itself that would have gone into the tunnel: */
export const REFUSED_LOOP = 'refused_loop';
/** For packets to addresses of other nodes, and for VXLAN packets that no node has sent: */
export const REFUSED_NODE = 'refused_node';
export const REFUSED_VXLAN = 'refused_vxlan';
/** The counters that belong to no one peer, by the owner of the table that counts. */
export const REFUSED: Readonly<Record<Owner, readonly string[]>> = {
  gateway: [REFUSED_SOURCE, REFUSED_INPUT, REFUSED_TRANSIT, REFUSED_HOSTED, REFUSED_DEPARTURE, REFUSED_LOOP],
  node: [REFUSED_NODE, REFUSED_VXLAN],
};

/** The MAC address of a node's VXLAN interface: locally administered, and the same on whichever node it is computed. */
export function vxlanMac(external: string): string {
  const address = parseAddress(external);
  const bytes =
    address?.family === 4
      ? Buffer.from(address.value.toString(16).padStart(8, '0'), 'hex')
      : createHash('sha256').update(external).digest().subarray(0, 4);
  return ['02', '74', ...[...bytes].map((byte) => byte.toString(16).padStart(2, '0'))].join(':');
}
