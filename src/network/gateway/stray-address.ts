import type { OwnNetwork } from '../../api/own-network.ts';
import { hostPrefix, parseAddress, PrefixSet, prefixesOf } from '../../lib/prefix.ts';
import { familyOf } from '../plan/peer.ts';

/** Which addresses there are, and whose. */
export interface Places {
  family: 4 | 6;
  pods: PrefixSet;
  /** What no pod may have, though it lies in a range of pods: nodes of a flat network, for example. */
  taken: PrefixSet;
  /** By the name of a node: the CIDRs of its pods. */
  nodes: ReadonlyMap<string, PrefixSet>;
}

/** `views`: as what peers are seen. */
export function placesOf(network: OwnNetwork, views: readonly string[]): Places {
  const { pods, external, services = [], nodes, apiServers = [] } = network;
  const hosts = [...nodes.flatMap(({ address, others = [] }) => [address, ...others]), ...apiServers];
  const taken = [
    ...prefixesOf([external, ...services, ...views]),
    ...hosts.flatMap((address) => hostPrefix(address) ?? []),
  ];
  return {
    family: familyOf(external),
    pods: new PrefixSet(prefixesOf(pods)),
    taken: new PrefixSet(taken),
    nodes: new Map(nodes.map(({ name, pods: own }) => [name, new PrefixSet(prefixesOf(own))])),
  };
}

/**
 * The node to which packets for a pod's address go, where the CIDRs of the nodes lead elsewhere or nowhere. `claimed`: names of the
 * nodes on which a pod has that address. A kubelet writes it, so it counts only within what is announced as pods; whoever claims what
 * lies in the CIDR of another node, where a pod has it, too, does not get it; and of two others neither does.
 */
export function wayOf(address: string, claimed: Iterable<string>, places: Places): string | undefined {
  const parsed = parseAddress(address);
  if (parsed?.family !== places.family || !places.pods.contains(parsed) || places.taken.contains(parsed))
    return undefined;
  const nodes = [...new Set(claimed)].filter((name) => places.nodes.has(name));
  const [node] = nodes;
  if (nodes.some((name) => places.nodes.get(name)?.contains(parsed) === true)) return undefined;
  return nodes.length === 1 ? node : undefined;
}
