/**
 * What one role wants of the network of the host that it runs on, as one value. `Host.set` makes it so: what is missing
 * is added, what is of this owner and not in it is removed, and what belongs to others is never touched.
 *
 * What is ours is known by marks in the kernel, not by memory: links by their alias, routes and rules by their protocol
 * number, the nftables table by its name.
 */

/** `gateway`: the WireGuard side. `node`: the VXLAN side. Both may run on one host. */
export type Owner = 'gateway' | 'node';
export const OWNERS: readonly Owner[] = ['gateway', 'node'];

/** Of routes and rules (`ip route show proto 116`); above those of `/etc/iproute2/rt_protos`. */
export const PROTOCOLS: Readonly<Record<Owner, number>> = { gateway: 116, node: 117 };
/** Family `inet`. */
export const TABLES: Readonly<Record<Owner, string>> = {
  gateway: 'tributary_gateway',
  node: 'tributary_node',
};
/** Alias of links, which survives us. */
export const ALIASES: Readonly<Record<Owner, string>> = {
  gateway: 'tributary gateway',
  node: 'tributary node',
};

const NAMES = Object.values(TABLES).map((name) => Buffer.from(name));

/**
 * Whether a notification of nftables is about one of our tables: each message names its table. kube-proxy and CNIs change
 * theirs all the time, and to look at ours after each of those changes costs more than all the rest. Rather once too
 * often: the name may stand anywhere, and one datagram holds many messages.
 */
export const isAboutUs = (datagram: Buffer): boolean => NAMES.some((name) => datagram.includes(name));

/**
 * What the parts of the network know of each other. The composition is in src/agent/network-*.ts:
 *
 *     exchange (role cluster): documents of peers ── Tunnel objects, IPAM, ConfigMap tributary-network
 *     gateway  (role gateway): Tunnel objects ── plan ── host; key, probes, status
 *     node     (role node):    Tunnel objects, Lease of the gateway ── plan ── host
 */

/** The network of the host that we run on; src/network/host/host.ts. */
export interface HostNetwork {
  /** Makes it so; safe to repeat and to interrupt anywhere. Never throws for what it can report. */
  set(config: HostConfig, signal?: AbortSignal): Promise<HostReport>;
  /** Removes all that is marked as this owner's, without knowing what was set. */
  cleanUp(owner: Owner): Promise<void>;
  /** Calls back (at most every 100 ms) after links, addresses, routes, rules or nftables of the host changed, by whomever. */
  onChange(listener: () => void): () => void;
  /** Empty where the link is not there. */
  wireguardPeers(link: string): Promise<WireGuardPeerState[]>;
  /** Path MTU to that address as the kernel knows it now, in bytes. */
  pathMtu(address: string): Promise<number | undefined>;
  /** Destinations of routes of the main table that are neither ours nor default routes, `address/length`; any order. */
  localRoutes(): Promise<string[]>;
  close(): void;
}

export interface HostConfig {
  owner: Owner;
  links: readonly LinkConfig[];
  routes: readonly RouteConfig[];
  rules: readonly RuleConfig[];
  /** Paths below /proc/sys with `/` as separator: only of our own links, so that they go with them. */
  sysctls: Readonly<Record<string, string>>;
  nftables: TableConfig;
  /** Owner `gateway`. */
  wireguard?: WireGuardConfig;
}

export type LinkConfig = VxlanLink | WireGuardLink;

interface CommonLink {
  name: string;
  mtu: number;
  /** `address/length`. */
  addresses: readonly string[];
}

/** Point to multipoint, with static neighbours only: nothing is learnt, nothing is flooded. */
export interface VxlanLink extends CommonLink {
  kind: 'vxlan';
  vni: number;
  port: number;
  /** Source address of the underlay. */
  local: string;
  macAddress: string;
  neighbours: readonly VxlanNeighbour[];
}

export interface VxlanNeighbour {
  /** On the VXLAN. */
  address: string;
  macAddress: string;
  /** On the underlay. */
  via: string;
}

/** Made here where the kernel knows WireGuard; else it appears when wireguard-go runs, and is awaited. */
interface WireGuardLink extends CommonLink {
  kind: 'wireguard';
}

export interface RouteConfig {
  /** `address/length`. */
  destination: string;
  /** Default main (254). */
  table?: number;
  metric: number;
  to: { link: string; gateway?: string } | 'unreachable';
  /** Preferred source address. */
  source?: string;
  /** Bytes; larger packets are answered with "fragmentation needed". */
  mtu?: number;
}

/** Policy routing. */
export interface RuleConfig {
  family: 4 | 6;
  priority: number;
  /** Incoming interface. */
  incoming?: string;
  from?: string;
  to?: string;
  table: number;
}

/** A table of family `inet`. Rules are written as for `nft`, one statement list each, without line breaks. */
export interface TableConfig {
  chains: readonly ChainConfig[];
  sets: readonly SetConfig[];
}

export interface ChainConfig {
  name: string;
  /** Base chains. The priority is a number: dstnat is -100, srcnat 100, mangle -150, filter 0, raw -300. */
  hook?: {
    type: 'filter' | 'nat' | 'route';
    hook: 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';
    priority: number;
  };
  rules: readonly string[];
}

/** A set, or with `value` a map. An element is one key, or key and value; see ElementConfig. */
export interface SetConfig {
  name: string;
  /** As in nft: `ipv4_addr`, `ipv6_addr . inet_service`, ... */
  type: string;
  /** `verdict`, or a type as above. */
  value?: string;
  /** Whether elements are prefixes. */
  interval: boolean;
  elements: readonly ElementConfig[];
}

export interface ElementConfig {
  /** As nft prints it: `10.1.0.0/16`, `10.1.2.3` for single addresses, `a . b` for concatenations. */
  key: string;
  /** As nft prints it: `jump from_x`, `accept`, an address or a prefix. */
  value?: string;
}

export interface WireGuardConfig {
  link: string;
  /** UDP. */
  port: number;
  /** Base64. Never in argv, logs or events. */
  privateKey: string;
  peers: readonly WireGuardPeerConfig[];
}

export interface WireGuardPeerConfig {
  /** Base64. */
  publicKey: string;
  /** Base64. */
  presharedKey?: string;
  /**
   * `host:port` to begin with, a literal address. Set when the peer is added and when it changes; one that was learnt
   * from the peer's packets is left alone.
   */
  endpoint?: string;
  allowedIPs: readonly string[];
  /** Seconds; 0 is off. */
  keepalive: number;
}

/** What WireGuard knows of a peer. */
export interface WireGuardPeerState {
  publicKey: string;
  endpoint?: string;
  /** Milliseconds since 1970; absent: never. */
  handshakeMs?: number;
  receivedBytes: number;
  sentBytes: number;
}

/** How `Host.set` has ended. */
export interface HostReport {
  /** How many things were added, changed or removed. */
  changes: number;
  /** What could not be done yet, for people: one line each; empty when the host is as wanted. */
  problems: readonly HostProblem[];
}

export interface HostProblem {
  /** `NoWireGuard`: neither the kernel nor wireguard-go provides the link. `Refused`: the kernel or a tool said no. */
  reason: 'NoWireGuard' | 'Refused';
  message: string;
  /** The destination, `address/length`, where it is about one route alone. */
  about?: string;
}
