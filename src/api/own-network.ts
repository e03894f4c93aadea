import type { HomeApiAddress } from './tunnel.ts';

/**
 * Two ConfigMaps beside our pods by which the network's roles know of each other. Public, but trusted: only these roles
 * may write them.
 *
 *     tributary-network   written by `cluster`: addresses of this cluster, and of each of its nodes
 *     tributary-gateway   written by `gateway`: where it is active, the public half of its key and where it can be dialled
 */

export const NETWORK_CONFIG_MAP = 'tributary-network';
export const GATEWAY_CONFIG_MAP = 'tributary-gateway';
/** Lease of the active gateway; its holder is the name of the node that it runs on. */
export const GATEWAY_LEASE = 'tributary-gateway';
/** Secret of the gateway: key `privateKey`, base64 as `wg genkey` prints it. */
export const WIREGUARD_SECRET = 'tributary-wireguard';
/** Secret written by `cluster`: for each peer's ClusterID a preshared key, base64 of 32 bytes. */
export const PRESHARED_SECRET = 'tributary-preshared';
/** Secret of `cluster`: our halves of those keys. */
export const PRESHARED_HALVES_SECRET = 'tributary-preshared-halves';

export interface NetworkNode {
  name: string;
  /** InternalIP; the underlay of VXLAN. */
  address: string;
  /** Its other addresses of the kinds InternalIP and ExternalIP, of either family, in order. Absent: it has none. */
  others?: string[];
  /** Its address in the external range, on its VXLAN interface. */
  external: string;
  /** CIDRs of the pods that run there. */
  pods: string[];
}

/** The API servers of this cluster, as our pods at peers reach them. */
export interface OwnApiServer extends HomeApiAddress {
  /** Where the API servers listen, in order. */
  endpoints: HomeApiAddress[];
}

export interface OwnNetwork {
  /** CIDRs of all pods; what peers are told. */
  pods: string[];
  /** The external range. Its first address is the active gateway's, on the WireGuard interface. */
  external: string;
  gatewayAddress: string;
  /** Ranges from which views are taken. */
  pools: string[];
  /** Ranges in use here, in which no view is taken and of which no route speaks, though a pool may cover them. */
  reserved?: string[];
  /** CIDRs of Services. */
  services?: string[];
  nodes: NetworkNode[];
  vxlan: { vni: number; port: number };
  /** Absent where no API server has an address of the external range's family, or no address of the range is left. */
  apiServer?: OwnApiServer;
  /** Addresses of all API servers, of either family, on nodes or elsewhere, in order. */
  apiServers?: string[];
}

export interface GatewayFacts {
  publicKey: string;
  /** Name of the node on which the gateway is active. Absent from one that tells it by its Lease only. */
  node?: string;
  /** `host:port`, UDP; empty where it cannot be dialled. */
  endpoints: string[];
  /**
   * Prefixes that the gateway's host reaches by routes that are neither ours nor its default ones: networks beside this
   * cluster. In order; absent from a gateway that does not tell them.
   */
  localRoutes?: string[];
  /** Addresses of the DNS servers that the gateway asks, in order; not of its own host. Absent from a gateway that does not tell them. */
  nameServers?: string[];
  /** Names of nodes from which no answer comes through VXLAN, in order; not more than MOST_SILENT. Absent: not measured. */
  silentNodes?: string[];
}

/** A resolver asks three of them at most. */
export const MOST_NAME_SERVERS = 8;

/** All nodes of a cluster may be silent at once, and one name is enough to look for the cause. */
export const MOST_SILENT = 64;

/**
 * Port for probes: UDP through the tunnel, on the gateway's external address, and TCP also through VXLAN, on that of each node. Nobody
 * listens on TCP: the kernel's refusal is an answer.
 */
export const PROBE_PORT = 7481;

/** Under this key of either ConfigMap is its JSON. */
const KEY = 'network.json';

export const ownNetworkData = (network: OwnNetwork): Record<string, string> => ({
  [KEY]: JSON.stringify(network),
});
export const gatewayFactsData = (facts: GatewayFacts): Record<string, string> => ({
  [KEY]: JSON.stringify(facts),
});

/** Undefined where it is not there yet or is not JSON. */
export const readOwnNetwork = (data?: Readonly<Record<string, string>>): OwnNetwork | undefined =>
  read(data) as OwnNetwork | undefined;
export const readGatewayFacts = (data?: Readonly<Record<string, string>>): GatewayFacts | undefined =>
  read(data) as GatewayFacts | undefined;

function read(data?: Readonly<Record<string, string>>): unknown {
  try {
    return JSON.parse(data?.[KEY] ?? '');
  } catch {
    return undefined;
  }
}
