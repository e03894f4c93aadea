import { TUNNEL_LIMITS } from '../../api/limits.ts';
import { TributaryError } from '../../lib/errors.ts';
import {
  compare,
  contains,
  formatPrefix,
  type IpFamily,
  mergePrefixes,
  nthAddress,
  parseAddress,
  parsePrefix,
  type Prefix,
  prefixOf,
  sizeOf,
  WIDTHS,
} from '../../lib/prefix.ts';
import { NEVER_SEEN } from './special-ranges.ts';

export interface OwnRanges {
  /** CIDRs of our pods. */
  pods: readonly string[];
  /** CIDRs of our Services. */
  services: readonly string[];
  /** Our external range. */
  external: string;
  /** Addresses of our nodes, without length, in the network that the nodes share. */
  nodeAddresses: readonly string[];
  /** Single addresses that this cluster uses and that are no pod's: further ones of nodes, API servers, name servers. */
  single: readonly string[];
  /** CIDRs that an administrator keeps from us. */
  extra: readonly string[];
}

/**
 * A view that covers the underlay would swallow the tunnel's own packets, and those to the router and the name servers beside the
 * nodes. Kubernetes does not tell the prefix length of that network, so a usual one is taken. A range that is reserved needlessly
 * only means that a peer's prefix is translated. A wider underlay belongs into `extra`.
 */
const UNDERLAY: Readonly<Record<IpFamily, number>> = { 4: 24, 6: 64 };

/**
 * Ranges as which no peer may be seen, for `new Ipam({ reserved })`, in order and without overlaps. Throws Invalid for a text that is
 * no CIDR. A node's address that is none is passed over, since one odd Node must not stop the rest.
 */
export function reservedRanges({
  pods,
  services,
  external,
  nodeAddresses,
  single,
  extra,
}: OwnRanges): string[] {
  const underlay = around(nodeAddresses, UNDERLAY);
  const given = [...pods, ...services, external, ...extra].map(parsePrefix);
  return mergePrefixes([...given, ...underlay, ...around(single, WIDTHS), ...NEVER_SEEN]).map(formatPrefix);
}

const around = (addresses: readonly string[], lengths: Readonly<Record<IpFamily, number>>): Prefix[] =>
  addresses.flatMap((text) => {
    const address = parseAddress(text);
    return address === undefined ? [] : [prefixOf(address, lengths[address.family])];
  });

/** The address of the active gateway: the first one after that of the network. Throws Invalid where the range is too small. */
export const gatewayAddressOf = (external: string): string => nthAddress(externalRange(external), 1);

function externalRange(external: string): Prefix {
  const range = parsePrefix(external);
  if (range.length <= WIDTHS[range.family] - 2) return range;
  throw new TributaryError(
    'Invalid',
    `the external range ${external} has no room for a gateway and a node: take at most /${WIDTHS[range.family] - 2}`,
  );
}

/**
 * The address that stands for our API servers: the last one before the broadcast address, as far from the nodes' as can be. Undefined
 * where the range is too small, or where a node has that address since before it was kept free.
 */
export function apiServerAddressOf(external: string, taken: Iterable<string>): string | undefined {
  const range = externalRange(external);
  const offset = apiServerOffset(range);
  if (offset === undefined) return undefined;
  const address = nthAddress(range, offset);
  return [...taken].includes(address) ? undefined : address;
}

/** A range with fewer addresses has none to spare. */
const LEAST_WITH_API_SERVER = 16n;

const apiServerOffset = (range: Prefix): bigint | undefined =>
  sizeOf(range) < LEAST_WITH_API_SERVER ? undefined : sizeOf(range) - 2n;

/**
 * One address of the external range for each node. A node that has one keeps it; the others get the lowest free one, in the order of
 * their names. Never used: the network's address (of IPv6 that of all routers, RFC 4291 section 2.6.1), the
 * gateway's, the broadcast address. New nodes do not get that of the API servers. Nodes for which no address is left are missing in
 * the result.
 */
export function assignNodeAddresses(
  external: string,
  nodes: readonly string[],
  before: ReadonlyMap<string, string>,
): Map<string, string> {
  const range = externalRange(external);
  const end = sizeOf(range) - 1n;
  const names = [...new Set(nodes)].toSorted();
  const taken = new Set<bigint>();
  const kept = new Map<string, bigint>();
  for (const name of names) {
    const address = parseAddress(before.get(name) ?? '');
    const offset = address && contains(range, address) ? address.value - range.base : 0n;
    if (offset < 2n || offset >= end || taken.has(offset)) continue;
    taken.add(offset);
    kept.set(name, offset);
  }
  const given = new Map<string, string>();
  const spared = apiServerOffset(range);
  let next = 2n;
  for (const name of names) {
    while (taken.has(next) || next === spared) next += 1n;
    const offset = kept.get(name) ?? next;
    if (offset >= end) continue;
    taken.add(offset);
    given.set(name, nthAddress(range, offset));
  }
  return given;
}

/**
 * The CIDRs of the pods of single nodes as few prefixes, in order. What is in `before` stays as it is while any of its
 * pods are left, and new nodes come beside it: if a node that joins changed a prefix, every peer would choose a new
 * view of it and all connections through it would end. That happens once they are more than a peer may be told: then all
 * are merged, since the next node would be out of reach for good.
 */
export function mergePodCidrs(podCidrs: readonly string[], before: readonly string[] = []): string[] {
  const current = podCidrs.map(parsePrefix);
  const wider = finder(current);
  const old = before.map(parsePrefix).filter((prefix) => (wider(prefix) ?? prefix).length >= prefix.length);
  const whole = finder(old);
  const kept = new Set(current.flatMap((prefix) => whole(prefix) ?? []));
  const added = current.filter((prefix) => whole(prefix) === undefined);
  const all = [...kept, ...mergePrefixes(added)];
  return (all.length > TUNNEL_LIMITS.pods ? mergePrefixes(all) : all).toSorted(compare).map(formatPrefix);
}

/** Finds the widest of them that contains a prefix, in one step for each length that occurs. */
function finder(prefixes: readonly Prefix[]): (prefix: Prefix) => Prefix | undefined {
  const byText = new Map(prefixes.map((prefix) => [formatPrefix(prefix), prefix]));
  const lengths = [...new Set(prefixes.map(({ length }) => length))].toSorted((one, other) => one - other);
  return (prefix) => {
    for (const length of lengths) {
      if (length > prefix.length) continue;
      const found = byText.get(formatPrefix(prefixOf({ family: prefix.family, value: prefix.base }, length)));
      if (found !== undefined) return found;
    }
    return undefined;
  };
}
