/**
 * The network of a lab: one namespace holds a bridge for each segment, without an uplink, and routes between them;
 * every node is a namespace on one bridge, and the root namespace has one interface to it. No packet leaves it, and
 * no traffic of the host is routed through it.
 */
import { run } from './run.ts';
import type { Journal } from './journal.ts';
import { bridgeAddress, bridgeName, rootAddress, rootLink, segmentCidr, underlayNetns } from './network.ts';
import type { ClusterSpec, LabSpec, NodeSpec } from './spec.ts';

/** Name of every node's interface on the underlay. */
export const NODE_LINK = 'eth0';

/** What a Kubernetes node expects of its kernel, in the node's namespace. */
const NODE_SYSCTLS: Readonly<Record<string, string>> = {
  'net/ipv4/ip_forward': '1',
  'net/ipv4/conf/all/rp_filter': '0',
  'net/ipv4/conf/default/rp_filter': '0',
  // Services between pods of one node: their packets cross a bridge and must still meet the node's rules.
  'net/bridge/bridge-nf-call-iptables': '1',
};

/** Makes the bridge, the interface of the root namespace, and all nodes with their routes and rules. */
export async function createUnderlay(spec: LabSpec, journal: Journal): Promise<void> {
  const underlay = underlayNetns(spec.name);
  const link = rootLink(spec.name);
  await addNetns(underlay, journal);
  const segments = [...new Set([0, ...spec.clusters.map(({ segment }) => segment)])];
  await ipBatch(underlay, ['link set lo up', ...segments.flatMap((segment) => addBridge(spec, segment))]);
  // Between segments this namespace is the router, and what a firewall drops is dropped here.
  await run(['sh', '-c', 'echo 1 >/proc/sys/net/ipv4/ip_forward'], { netns: underlay });
  journal.append({ kind: 'link', name: link });
  await ipBatch(undefined, [
    `link add ${link} type veth peer name root netns ${underlay}`,
    `addr add ${rootAddress(spec.underlay)}/24 dev ${link}`,
    `link set ${link} up`,
    ...segments
      .filter((segment) => segment !== 0)
      .map(
        (segment) =>
          `route add ${segmentCidr({ ...spec.underlay, segment })} via ${bridgeAddress(spec.underlay)} dev ${link}`,
      ),
  ]);
  await ipBatch(underlay, [`link set root master ${bridgeName(0)} up`]);
  for (const cluster of spec.clusters) {
    for (const node of cluster.nodes) await addNode(spec, cluster, node, journal);
  }
}

/** The end of a node's veth pair at the bridge. */
export function portOf({ clusters }: Pick<LabSpec, 'clusters'>, node: Pick<NodeSpec, 'name'>): string {
  const index = clusters.flatMap(({ nodes }) => nodes).findIndex(({ name }) => name === node.name);
  if (index === -1) throw new Error(`there is no node ${node.name}`);
  return `node${index}`;
}

/** Pulls a node's cable, or plugs it in again. The node keeps its addresses and routes. */
export async function setCable(spec: LabSpec, node: NodeSpec, state: 'in' | 'out'): Promise<void> {
  const change = state === 'in' ? 'up' : 'down';
  await ipBatch(underlayNetns(spec.name), [`link set ${portOf(spec, node)} ${change}`]);
}

/** Gives a node the network again that it had when it was new: removes what its programs and pods have made. */
export async function resetNetwork(cluster: ClusterSpec, { netns }: NodeSpec): Promise<void> {
  const links = linkNames(await run(['ip', '-o', 'link', 'show'], { netns }));
  for (const link of links.filter((name) => name !== 'lo' && name !== NODE_LINK)) {
    // Those that the kernel gives every namespace cannot go; another may have gone with its other end.
    await run(['ip', 'link', 'del', link], { netns }).catch(() => undefined);
  }
  await run(['nft', '-f', '-'], { netns, stdin: `flush ruleset\n${masquerade(cluster)}` });
  await ipBatch(netns, [
    'rule flush',
    'rule add pref 32766 lookup main',
    'rule add pref 32767 lookup default',
  ]);
}

/** Names from `ip -o link`; a veth is listed with its peer behind an @. */
export function linkNames(links: string): string[] {
  return links
    .split('\n')
    .map((line) => line.split(': ')[1]?.split('@')[0] ?? '')
    .filter((name) => name !== '');
}

const addBridge = (spec: LabSpec, segment: number): string[] => [
  `link add ${bridgeName(segment)} type bridge`,
  `addr add ${bridgeAddress({ ...spec.underlay, segment })}/24 dev ${bridgeName(segment)}`,
  `link set ${bridgeName(segment)} up`,
];

async function addNode(spec: LabSpec, cluster: ClusterSpec, node: NodeSpec, journal: Journal): Promise<void> {
  const underlay = underlayNetns(spec.name);
  const port = portOf(spec, node);
  await addNetns(node.netns, journal);
  await ipBatch(underlay, [
    `link add ${port} type veth peer name ${NODE_LINK} netns ${node.netns}`,
    `link set ${port} master ${bridgeName(cluster.segment)} up`,
  ]);
  await ipBatch(node.netns, [
    'link set lo up',
    `addr add ${node.address}/24 dev ${NODE_LINK}`,
    `link set ${NODE_LINK} up`,
    `route add default via ${bridgeAddress({ ...spec.underlay, segment: cluster.segment })}`,
    ...podRoutes(cluster, node),
  ]);
  // A kernel without br_netfilter lacks the last file; nftables then sees bridged packets by other means.
  const writes = Object.entries(NODE_SYSCTLS).map(([name, value]) => `echo ${value} >/proc/sys/${name}`);
  await run(['sh', '-c', writes.join('; ')], { netns: node.netns });
  await run(['nft', '-f', '-'], { netns: node.netns, stdin: masquerade(cluster) });
}

/** Routes to the pods of the cluster's other nodes. */
export function podRoutes(cluster: ClusterSpec, node: NodeSpec): string[] {
  return cluster.nodes
    .filter((other) => other.name !== node.name)
    .map((other) => `route add ${other.podCidr} via ${other.address}`);
}

/**
 * Packets of pods to anything outside their own cluster get the address of the node, since no other cluster has a
 * route back to a pod. This is only so on the underlay's interface, so that tunnels keep the addresses of pods.
 */
export function masquerade({ podCidr, serviceCidr }: ClusterSpec): string {
  return `table ip tributary-lab {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    oifname "${NODE_LINK}" ip saddr ${podCidr} ip daddr != { ${podCidr}, ${serviceCidr} } masquerade
  }
}
`;
}

async function addNetns(name: string, journal: Journal): Promise<void> {
  journal.append({ kind: 'netns', name });
  await run(['ip', 'netns', 'add', name]);
}

async function ipBatch(netns: string | undefined, lines: readonly string[]): Promise<void> {
  await run(['ip', '-batch', '-'], {
    ...(netns === undefined ? {} : { netns }),
    stdin: `${lines.join('\n')}\n`,
  });
}
