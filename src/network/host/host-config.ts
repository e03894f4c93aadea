/**
 * What one role wants of the network of the host that it runs on, as one value. `Host.set` makes it so: what is missing
 * is added, what this owner has made and no longer wants is removed, and what belongs to others is never touched.
 *
 * What is ours is known by marks in the kernel and not from memory: links by their alias, routes and rules by their protocol
 * number, the nftables table by its name.
 */

import type { WireGuardChoice, WireGuardKind } from '../../api/tunnel.ts';

/** `gateway`: the WireGuard side. `node`: the VXLAN side. Both may run on one host. */
export type Owner = 'gateway' | 'node';
export const OWNERS: readonly Owner[] = ['gateway', 'node'];

/** Protocol numbers of routes and rules (`ip route show proto 116`), above those of `/etc/iproute2/rt_protos`. */
export const PROTOCOLS: Readonly<Record<Owner, number>> = { gateway: 116, node: 117 };
/** Names of the nftables tables, of family `inet`. */
export const TABLES: Readonly<Record<Owner, string>> = {
  gateway: 'tributary_gateway',
  node: 'tributary_node',
};
/** Aliases of links. They outlive this process. */
export const ALIASES: Readonly<Record<Owner, string>> = {
  gateway: 'tributary gateway',
  node: 'tributary node',
};

const NAMES = Object.values(TABLES).map((name) => Buffer.from(name));

/**
 * Whether a notification of nftables is about one of our tables: each message names its table. kube-proxy and CNIs change
 * theirs all the time, and a look at ours after each of those changes costs more than all else. It may answer yes too often: the
 * name may stand anywhere in the datagram, which holds many messages.
 */
export const isAboutUs = (datagram: Buffer): boolean => NAMES.some((name) => datagram.includes(name));

/** The network of the host that we run on. Made by `createHost`. */
export interface HostNetwork {
  /** Makes the host as the config says. Safe to repeat and to interrupt anywhere. Never throws for what it can report. */
  set(config: HostConfig, signal?: AbortSignal): Promise<HostReport>;
  /** Removes all that bears this owner's marks, without knowing what was set. */
  cleanUp(owner: Owner): Promise<void>;
  /** Calls back (at most every 100 ms) after links, addresses, routes, rules or nftables of the host changed, whoever changed them. */
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
  /** By path below /proc/sys, with `/` as separator. Only settings of our own links, so that they go with the links. */
  sysctls: Readonly<Record<string, string>>;
  nftables: TableConfig;
  /** Only for owner `gateway`. */
  wireguard?: WireGuardConfig;
}

export type LinkConfig = VxlanLink | WireGuardLink;

interface CommonLink {
  name: string;
  mtu: number;
  /** `address/length`. */
  addresses: readonly string[];
}

/** Point to multipoint, with static neighbours only: the kernel learns nothing and floods nothing. */
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

/** Made here where the kernel knows WireGuard. Otherwise wireguard-go makes it, and we wait for it. */
export interface WireGuardLink extends CommonLink {
  kind: 'wireguard';
  /** Default `auto`. */
  by?: WireGuardChoice;
}

export interface RouteConfig {
  /** `address/length`. */
  destination: string;
  /** Default main (254). */
  table?: number;
  metric: number;
  /** `throw`: this table has no answer, and the next rule decides. */
  to: { link: string; gateway?: string } | 'unreachable' | 'throw';
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
  /** Only of base chains. The priority is a number: dstnat is -100, srcnat 100, mangle -150, filter 0, raw -300. */
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
  /** Base64. It never stands in argv, logs or events. */
  privateKey: string;
  peers: readonly WireGuardPeerConfig[];
}

export interface WireGuardPeerConfig {
  /** Base64. */
  publicKey: string;
  /** Base64. */
  presharedKey?: string;
  /**
   * Literal `host:port` to begin with. It is set when the peer is added and when it changes here. An endpoint that WireGuard has
   * learnt from the peer's packets is left alone.
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
  /** Milliseconds since 1970. Absent: there was no handshake yet. */
  handshakeMs?: number;
  receivedBytes: number;
  sentBytes: number;
}

/** How `HostNetwork.set` has ended. */
export interface HostReport {
  /** How many things were added, changed or removed. */
  changes: number;
  /** What could not be done yet, in one line each for people. Empty when the host is as wanted. */
  problems: readonly HostProblem[];
  /** Whose WireGuard the link is; absent where there is none. */
  wireguard?: WireGuardKind;
  /** The packet filter and the translation could not be set: they are as they were. */
  isUnfiltered?: true;
}

export interface HostProblem {
  /** `NoWireGuard`: neither the kernel nor wireguard-go provides the link. `Refused`: the kernel or a tool refused it. */
  reason: 'NoWireGuard' | 'Refused';
  message: string;
  /** The destination (`address/length`), where the problem is about one route alone. */
  about?: string;
}
