/**
 * What the parts of the network know of each other. The composition is in src/agent/network-*.ts:
 *
 *     exchange (role cluster): documents of peers ── Tunnel objects, IPAM, ConfigMap tributary-network
 *     gateway  (role gateway): Tunnel objects ── plan ── host; key, probes, status
 *     node     (role node):    Tunnel objects, Lease of the gateway ── plan ── host
 */
import type { HostConfig, HostReport, Owner, WireGuardPeerState } from './host/host-config.ts';

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
