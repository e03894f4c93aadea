import { TUNNEL_LIMITS } from '../../api/limits.ts';
import { LABEL_NODE_TYPE, NODE_TYPE_VIRTUAL } from '../../api/names.ts';
import {
  MOST_NAME_SERVERS,
  type NetworkNode,
  type OwnApiServer,
  type OwnNetwork,
} from '../../api/own-network.ts';
import type { HomeApiAddress } from '../../api/tunnel.ts';
import type { Node } from '../../api/wire.ts';
import {
  contains,
  formatPrefix,
  hostPrefix,
  overlaps,
  parseAddress,
  parsePrefix,
  tryPrefix,
} from '../../lib/prefix.ts';
import {
  apiServerAddressOf,
  assignNodeAddresses,
  gatewayAddressOf,
  mergePodCidrs,
  reservedRanges,
} from '../ipam/own-ranges.ts';

export interface OwnOptions {
  /** CIDRs of all pods, where people name them. Otherwise those of the nodes count. */
  podCidrs: readonly string[];
  externalCidr: string;
  viewPools: readonly string[];
  /** Further ranges as which no peer may be seen. */
  reservedCidrs: readonly string[];
  /** An address of a Service: all that is known of their ranges where nobody tells them. */
  serviceAddress?: string;
}

/**
 * VNI and port of the VXLAN between the nodes. The port is not 8472 or 4789 as with the usual CNIs, since ports cannot be shared.
 */
export const VXLAN = { vni: 7_443, port: 4_799 } as const;

/** What the cluster shows of itself. */
export interface OwnFacts {
  nodes: readonly RealNode[];
  /** Where its API servers listen, in order. */
  apiServers: readonly HomeApiAddress[];
}

/** What we need to know of a node that is not virtual. The pods of a virtual node are behind a tunnel. */
export interface RealNode {
  name: string;
  address: string;
  /** Further addresses, of either family. */
  others?: string[];
  pods: string[];
}

/** No node has more, and a Node can be written by whoever runs there. */
const MOST_ADDRESSES = 16;

export function realNode({ metadata, spec, status }: Node): RealNode | undefined {
  if (metadata.labels?.[LABEL_NODE_TYPE] === NODE_TYPE_VIRTUAL) return undefined;
  const known = (status?.addresses ?? []).filter((each) => parseAddress(each.address) !== undefined);
  const address = known.find(({ type }) => type === 'InternalIP')?.address;
  if (address === undefined) return undefined;
  const all = known.filter(({ type }) => type === 'InternalIP' || type === 'ExternalIP');
  const further = new Set(all.map((each) => each.address).filter((other) => other !== address));
  const others = [...further].toSorted().slice(0, MOST_ADDRESSES);
  const cidrs = spec?.podCIDRs ?? (spec?.podCIDR === undefined ? [] : [spec.podCIDR]);
  const pods = cidrs.flatMap((text) => {
    const prefix = tryPrefix(text);
    return prefix === undefined ? [] : [formatPrefix(prefix)];
  });
  return { name: metadata.name, address, ...(others.length > 0 && { others }), pods };
}

/** What was published before, as far as it makes sense: people can write there, too. */
export function soundOwn(own: OwnNetwork | undefined): OwnNetwork | undefined {
  const { nodes, pods, apiServers } = (own ?? {}) as Partial<OwnNetwork>;
  if (own === undefined || !Array.isArray(nodes) || !Array.isArray(pods)) return undefined;
  const servers = (Array.isArray(apiServers) ? apiServers : []).filter(
    (text) => parseAddress(text) !== undefined,
  );
  return { ...own, pods: pods.filter((text) => tryPrefix(text) !== undefined), apiServers: servers };
}

export const soundNameServers = (addresses: unknown): string[] =>
  (Array.isArray(addresses) ? addresses.slice(0, MOST_NAME_SERVERS) : []).filter(
    (text): text is string => typeof text === 'string' && parseAddress(text) !== undefined,
  );

/** As many as a gateway tells; see gateway/local-routes.ts. People can write there, too. */
const MOST_ROUTES = 256;

export function soundRoutes(routes: unknown): string[] {
  const list: unknown[] = Array.isArray(routes) ? routes.slice(0, MOST_ROUTES) : [];
  return list.flatMap((text) => {
    const prefix = typeof text === 'string' ? tryPrefix(text) : undefined;
    return prefix === undefined || prefix.length === 0 ? [] : [formatPrefix(prefix)];
  });
}

/** The own network. Nodes are in the order of their names; one for which the external range has no address left is missing. */
export function composeOwn(
  { nodes, apiServers }: OwnFacts,
  { podCidrs, externalCidr, viewPools }: OwnOptions,
  before: OwnNetwork | undefined,
): OwnNetwork {
  const earlier = new Map(before?.nodes.map(({ name, external }) => [name, external]));
  const names = nodes.map(({ name }) => name);
  const addresses = assignNodeAddresses(externalCidr, names, earlier);
  const pods = nodes.flatMap((node) => node.pods);
  const apiServer = apiServerOf(externalCidr, [...addresses.values()], apiServers, before);
  return {
    pods: podCidrs.length > 0 ? widest(podCidrs) : mergePodCidrs(pods, before?.pods ?? []),
    external: formatPrefix(parsePrefix(externalCidr)),
    gatewayAddress: gatewayAddressOf(externalCidr),
    pools: [...viewPools],
    nodes: nodes
      .flatMap(({ name, address, others = [], pods: own }): NetworkNode[] => {
        const external = addresses.get(name);
        if (external === undefined) return [];
        return [{ name, address, ...(others.length > 0 && { others }), external, pods: own }];
      })
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    vxlan: { ...VXLAN },
    ...(apiServer && { apiServer }),
    ...apiServersAt(apiServers, before),
  };
}

/** As with `apiServer`: one that restarts is still there. */
function apiServersAt(
  found: readonly HomeApiAddress[],
  before: OwnNetwork | undefined,
): Pick<OwnNetwork, 'apiServers'> {
  const now = [...new Set(found.map(({ address }) => address))].filter(
    (text) => parseAddress(text) !== undefined,
  );
  const last = now.length > 0 ? now : (before?.apiServers ?? []);
  return last.length === 0 ? {} : { apiServers: last };
}

/** As the Service default/kubernetes has it, which in-cluster clients know. */
const API_SERVER_PORT = 443;

/** An API server that restarts takes its address away for a while: the one told before is still the best one. */
function apiServerOf(
  external: string,
  nodes: readonly string[],
  found: readonly HomeApiAddress[],
  before: OwnNetwork | undefined,
): OwnApiServer | undefined {
  const address = apiServerAddressOf(external, nodes);
  if (address === undefined) return undefined;
  const endpoints = fitting(found, address);
  const last = endpoints.length > 0 ? endpoints : fitting(before?.apiServer?.endpoints ?? [], address);
  return last.length === 0 ? undefined : { address, port: API_SERVER_PORT, endpoints: last };
}

/** Addresses of another family cannot be translated to. */
function fitting(endpoints: readonly HomeApiAddress[], address: string): HomeApiAddress[] {
  const family = parseAddress(address)?.family;
  return endpoints.filter((endpoint) => parseAddress(endpoint.address)?.family === family);
}

/** Leaves out CIDRs that lie within others: neither the kernel's sets nor peers take overlaps. The others stay as people wrote them. */
function widest(cidrs: readonly string[]): string[] {
  const all = [...new Set(cidrs.map(parsePrefix).map(formatPrefix))].map(parsePrefix);
  return all.filter((one) => !all.some((other) => other !== one && contains(other, one))).map(formatPrefix);
}

/** Which parts of our own network peers will not reach, in one line each. */
export function shortcomings({ pods, nodes, external }: OwnNetwork, real: readonly RealNode[]): string[] {
  const told = TUNNEL_LIMITS.pods;
  const named = new Set(nodes.map(({ name }) => name));
  const left = real.filter(({ name }) => !named.has(name));
  return [
    ...(pods.length > told
      ? [`of ${pods.length} CIDRs of pods peers are told ${told}: name fewer and wider ones by --pod-cidr`]
      : []),
    ...(left.length > 0
      ? [
          `the external range ${external} has no address left for ${left.length} nodes (${left[0]?.name}, ...): their pods reach no peer; name a wider one by --external-cidr`,
        ]
      : []),
  ];
}

/** Why the external range cannot be ours. Undefined where it can. */
export function externalConflict(own: OwnNetwork, services: readonly string[]): string | undefined {
  const external = parsePrefix(own.external);
  const other = [...own.pods, ...services].find((text) => overlaps(parsePrefix(text), external));
  if (other === undefined) return undefined;
  return `the external range ${own.external} overlaps ${other}, where pods or Services are: name another by --external-cidr`;
}

export function reservedOf(
  own: OwnNetwork,
  services: readonly string[],
  { reservedCidrs, serviceAddress }: Pick<OwnOptions, 'reservedCidrs' | 'serviceAddress'>,
  nameServers: readonly string[] = [],
): string[] {
  const known = hostPrefix(serviceAddress ?? '');
  // One address is enough to keep a peer from being seen as the whole range.
  const hint = services.length > 0 || known === undefined ? [] : [known];
  return reservedRanges({
    pods: own.pods,
    services: [...services, ...hint.map(formatPrefix)],
    external: own.external,
    nodeAddresses: own.nodes.map(({ address }) => address),
    single: [...own.nodes.flatMap(({ others = [] }) => others), ...(own.apiServers ?? []), ...nameServers],
    extra: reservedCidrs,
  });
}
