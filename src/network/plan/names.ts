import { createHash } from 'node:crypto';

import { parseAddress } from '../../lib/prefix.ts';
import type { Owner } from '../host/host-config.ts';

/** Default name of the tunnels' link; that of VXLAN is made of it. */
export const WIREGUARD_LINK = 'tributary';

/** UDP, on the gateway's external address: probes through the tunnel. */
export const PROBE_PORT = 7481;

/** Routes from the tunnel to pods and nodes of other hosts. */
export const RETURN_TABLE = 7480;
/** Before `main` (32766), after what CNIs put before it. */
export const RETURN_PRIORITY = 7480;

/** Of routes to one destination the lowest counts. */
export const METRICS = {
  /** From the gateway into the tunnel. */
  tunnel: 50,
  /** From any other node to the gateway. */
  gateway: 100,
  /** What is left when both are gone. */
  unreachable: 4000,
} as const;

/**
 * Where our base chains stand. The kernel translates at -100 and 100 whatever the number of a nat chain says; the
 * number only orders nat chains among themselves, and the first to decide wins. So what must see packets as they are on
 * the wire stands below -100 or above 100.
 */
export const HOOKS = {
  /** Below the translation, above conntrack (-200). */
  arrival: { type: 'filter', hook: 'prerouting', priority: -150 },
  /** Before kube-proxy (-100). */
  destination: { type: 'nat', hook: 'prerouting', priority: -110 },
  input: { type: 'filter', hook: 'input', priority: 0 },
  forward: { type: 'filter', hook: 'forward', priority: 0 },
  /** Before kube-proxy and the CNI (100). */
  source: { type: 'nat', hook: 'postrouting', priority: 90 },
  departure: { type: 'filter', hook: 'postrouting', priority: 150 },
} as const;

/** What is done for each peer in a chain, a map or a set of its own. */
export type PeerPart =
  | 'from'
  | 'dnat'
  | 'access'
  | 'mss'
  | 'snat'
  | 'sent'
  | 'home'
  | 'keep'
  | 'abroad'
  | 'hosted'
  | `offered${Transport}`;

/** As nft writes them. */
export type Transport = 'tcp' | 'udp' | 'sctp';
export const TRANSPORTS: readonly Transport[] = ['tcp', 'udp', 'sctp'];

/** Of a chain or set; a ClusterID has few letters, so that the kernel's 255 bytes are far away. */
export const peerName = (part: PeerPart, clusterID: string, family?: 4 | 6): string =>
  `${part}${family ?? ''}_${clusterID.replaceAll(/[^A-Za-z0-9]/g, '_')}`;

/** Comment of the rules that count what was refused from this peer. */
export const refusedName = (clusterID: string): string =>
  `refused_${clusterID.replaceAll(/[^A-Za-z0-9]/g, '_')}`;
/** The same for sources that no peer has, ... */
export const REFUSED_SOURCE = 'refused_source';
/** ... for addresses of the gateway's host, ... */
export const REFUSED_INPUT = 'refused_input';
/** ... for what one peer sent to another, ... */
export const REFUSED_TRANSIT = 'refused_transit';
/** ... for what a peer's pod here sent to another peer, ... */
export const REFUSED_HOSTED = 'refused_tenant';
/** ... for what would have left under an address that the peer does not know, ... */
export const REFUSED_DEPARTURE = 'refused_departure';
/** ... for addresses of other nodes, and for VXLAN that no node has sent. */
export const REFUSED_NODE = 'refused_node';
export const REFUSED_VXLAN = 'refused_vxlan';
/** All of them by the table that counts, but for those of one peer. */
export const REFUSED: Readonly<Record<Owner, readonly string[]>> = {
  gateway: [REFUSED_SOURCE, REFUSED_INPUT, REFUSED_TRANSIT, REFUSED_HOSTED, REFUSED_DEPARTURE],
  node: [REFUSED_NODE, REFUSED_VXLAN],
};

/** Of a node's VXLAN interface: locally administered, the same at every node that computes it. */
export function vxlanMac(external: string): string {
  const address = parseAddress(external);
  const bytes =
    address?.family === 4
      ? Buffer.from(address.value.toString(16).padStart(8, '0'), 'hex')
      : createHash('sha256').update(external).digest().subarray(0, 4);
  return ['02', '74', ...[...bytes].map((byte) => byte.toString(16).padStart(2, '0'))].join(':');
}
