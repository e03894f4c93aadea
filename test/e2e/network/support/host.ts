/** Reads the network of a host, to wait for our objects, and to compare those of others. */
import type { Node } from '../../../../lab/node.ts';

/** Sorted lines, without counters and without lines that come and go with pods. */
export type Snapshot = readonly string[];

const SYSCTLS = ['forwarding', 'rp_filter', 'send_redirects', 'accept_redirects', 'arp_ignore'] as const;
const OF_PODS = /\b(?:veth\w+|cni0)\b/;
/**
 * kube-proxy keeps the empty chain of a Service that has gone until another Service changes; and it drops what goes to unallocated
 * addresses only when it has heard of the ServiceCIDR, which may be after the first look.
 */
const OF_KUBE_PROXY = /^\s*chain service-\w+-tributary-system\/|"Drop traffic to unallocated ClusterIPs"/;

/**
 * Only this node: `wg show` also lists interfaces of other network namespaces, because their sockets are in the same
 * folder.
 */
const TUNNELS =
  'for link in $(ip -o link | sed "s/^[0-9]*: \\([^:@]*\\).*/\\1/"); do wg show "$link" 2>/dev/null; done; true';

export async function snapshot(node: Node): Promise<Snapshot> {
  const sysctls = SYSCTLS.flatMap((name) =>
    ['all', 'default', 'eth0'].map((link) => `net.ipv4.conf.${link}.${name}`),
  ).join(' ');
  const parts: Record<string, string> = {
    link: 'ip -o -d link',
    address: 'ip -o address',
    rule: 'ip rule; ip -6 rule',
    route: 'ip route show table all; ip -6 route show table all',
    neighbour: 'bridge fdb show',
    tables: 'nft list ruleset',
    wireguard: TUNNELS,
    sysctl: `sysctl ${sysctls}`,
  };
  const lines = await Promise.all(
    Object.entries(parts).map(async ([part, command]) => {
      const text = await node.exec(['sh', '-c', command]);
      return linesOf(text)
        .map((line) => masked(line))
        .filter((line) => line !== '' && !OF_PODS.test(line) && !OF_KUBE_PROXY.test(line))
        .map((line) => `${part}: ${line}`);
    }),
  );
  return lines.flat().toSorted();
}

/** Each element of a set in a line of its own: nft lists prefixes in the order in which they were added. */
const linesOf = (text: string): string[] =>
  text
    .replaceAll(/elements = \{([^}]*)\}/g, (_, elements: string) =>
      elements
        .split(',')
        .map((element) => `element ${element.trim()}`)
        .join('\n'),
    )
    .split('\n');

/** Without counters, times, and numbers that the kernel assigns. */
const masked = (line: string): string =>
  line
    .replaceAll(/packets \d+ bytes \d+/g, 'packets N bytes N')
    .replaceAll(/\bexpires \S+/g, 'expires T')
    .replaceAll(/\b(?:valid|preferred)_lft \S+/g, '')
    .replace(/^\d+: /, '')
    .trim();

/** Matches everything that is ours: by name, alias, table or protocol number. The lab has a table of its own. */
const OURS = /tributary(?!-lab)|proto 11[67]\b|\b7480\b/;

/** Lines of `ip`, `nft` and `wg` on that host that are ours. */
export async function ours(node: Node): Promise<string[]> {
  const look = 'ip -o -d link; ip rule; ip -6 rule; ip route show table all; nft list ruleset';
  const text = await node.exec(['sh', '-c', `${look}; ${TUNNELS}`]);
  return text.split('\n').filter((line) => OURS.test(line) && !OF_KUBE_PROXY.test(line));
}

/** All of it, without counters. */
export async function state(node: Node): Promise<Snapshot> {
  const look =
    'ip -o -d link; ip rule; ip -6 rule; ip route show table all; bridge fdb show; ip neigh show nud permanent';
  const tables = ['nft list table inet tributary_gateway', 'nft list table inet tributary_node'];
  const [network, ...listed] = await Promise.all([
    node.exec(['sh', '-c', look]),
    ...tables.map(async (list) => node.exec(['sh', '-c', `${list} 2>&1 || true`])),
  ]);
  return [...network.split('\n').filter((line) => OURS.test(line)), ...linesOf(listed.join('\n'))].map(
    masked,
  );
}

/**
 * The lines that belong to a peer: by its name in nftables, by its views in routes. Rules are not searched for views: another
 * peer may see our own pods under the very addresses that this one has here.
 */
export async function ofPeer(node: Node, clusterID: string, views: readonly string[]): Promise<string[]> {
  const name = clusterID.replaceAll(/[^A-Za-z0-9]/g, '_');
  const [routes, rules] = await Promise.all(
    ['ip route show table all', 'nft list ruleset'].map(async (command) =>
      (await node.exec(['sh', '-c', command])).split('\n'),
    ),
  );
  return [
    ...(routes ?? []).filter((line) => views.some((view) => line.includes(view))),
    ...(rules ?? []).filter((line) => line.includes(name)),
  ];
}

/** How two snapshots differ. */
export const difference = (before: Snapshot, after: Snapshot): string[] => [
  ...before.filter((line) => !after.includes(line)).map((line) => `- ${line}`),
  ...after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`),
];
