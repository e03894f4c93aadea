/**
 * Names and addresses of a lab. They are computed by pure functions, so that a test can prove that parallel labs do
 * not collide.
 */

/** Longest lab name: `tl-NAME` is an interface in the root namespace, and Linux allows 15 bytes. */
const LAB_NAME = /^[a-z]([a-z0-9-]{0,10}[a-z0-9])?$/;
const CLUSTER_NAME = /^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$/;
const FIRST_SUBNET = 0;
const LAST_SUBNET = 255;
/** Cluster n has its nodes at .11, .12, ... of its own block of 30 or fewer. */
const NODES_PER_CLUSTER = 30;
const MAX_CLUSTERS = 8;

/** Throws unless names can be made from it. */
export function checkLabName(name: string): void {
  if (!LAB_NAME.test(name)) {
    throw new Error(`lab name ${JSON.stringify(name)}: 1 to 12 of a-z, 0-9 and -, beginning with a letter`);
  }
}

/** Throws unless they are usable and distinct. */
export function checkClusterNames(names: readonly string[]): void {
  for (const name of names) {
    if (!CLUSTER_NAME.test(name)) {
      throw new Error(
        `cluster name ${JSON.stringify(name)}: 1 to 20 of a-z, 0-9 and -, beginning with a letter`,
      );
    }
  }
  const clash = names.find((name) =>
    names.some((other) => /^-\d+$/.test(name.slice(other.length)) && name.startsWith(other)),
  );
  if (clash !== undefined) throw new Error(`cluster name ${clash} is the name of a node of another cluster`);
  if (new Set(names).size !== names.length) throw new Error(`cluster names must differ: ${names.join(',')}`);
  if (names.length === 0 || names.length > MAX_CLUSTERS) {
    throw new Error(`a lab has 1 to ${MAX_CLUSTERS} clusters, not ${names.length}`);
  }
}

/** The lab's interface in the root network namespace. */
export const rootLink = (lab: string): string => `tl-${lab}`;

/** The network namespace that joins all nodes of a lab. */
export const underlayNetns = (lab: string): string => `tl-${lab}-ul`;

/** The network namespace of a node, and its cgroup. */
export const nodeNetns = (lab: string, node: string): string => `tl-${lab}-${node}`;

/** Kubernetes' name of a node; `index` counts from 0. */
export const nodeName = (cluster: string, index: number): string => `${cluster}-${index + 1}`;

/** A lab's /24: which one of 172.30.0.0/16 is written in its journal. */
export interface Underlay {
  readonly subnet: number;
}

/** First third octet that is not taken: by other labs, or by routes of the host into 172.30.0.0/16. */
export function chooseSubnet(taken: ReadonlySet<number>): number {
  for (let subnet = FIRST_SUBNET; subnet <= LAST_SUBNET; subnet++) if (!taken.has(subnet)) return subnet;
  throw new Error('no free 172.30.x.0/24 is left: take other labs down');
}

/** Third octets of 172.30.0.0/16 that occur in the output of `ip -4 route show table all`. */
export function subnetsInRoutes(routes: string): Set<number> {
  const found = new Set<number>();
  for (const match of routes.matchAll(/\b172\.30\.(\d{1,3})\.\d{1,3}/g)) found.add(Number(match[1]));
  return found;
}

/** Second octet of each segment's /24. */
const SEGMENTS = [30, 31, 29, 28] as const;

/** One of the networks of a lab: a bridge of its own, behind the lab's router. */
export interface Segment extends Underlay {
  /** Default 0: the one that the root network namespace is in. */
  readonly segment?: number;
}

/** Throws unless a lab has such a segment. */
export function checkSegment(segment: number): void {
  if (SEGMENTS[segment] !== undefined) return;
  throw new Error(`a lab has segments 0 to ${SEGMENTS.length - 1}, not ${segment}`);
}

const prefix = ({ subnet, segment = 0 }: Segment): string => `172.${SEGMENTS[segment] ?? 0}.${subnet}`;

export const segmentCidr = (segment: Segment): string => `${prefix(segment)}.0/24`;
/** The router, as a segment sees it. */
export const bridgeAddress = (segment: Segment): string => `${prefix(segment)}.1`;
export const rootAddress = (underlay: Underlay): string => `${prefix(underlay)}.254`;
/** The bridge of a segment in the router's namespace. */
export const bridgeName = (segment: number): string => `br${segment}`;

/** Address of a node; both indices count from 0. */
export function nodeAddress(segment: Segment, cluster: number, node: number): string {
  if (cluster < 0 || cluster >= MAX_CLUSTERS || node < 0 || node >= NODES_PER_CLUSTER) {
    throw new Error(`a lab has at most ${MAX_CLUSTERS} clusters of ${NODES_PER_CLUSTER} nodes`);
  }
  return `${prefix(segment)}.${10 + cluster * NODES_PER_CLUSTER + node + 1}`;
}

/** Distinct by default, so that clusters can be routed to each other. */
export const defaultPodCidr = (cluster: number): string => `10.${244 + cluster}.0.0/16`;
export const defaultServiceCidr = (cluster: number): string => `10.${96 + cluster}.0.0/16`;

/** The /24 of a node inside its cluster's pod range. */
export function nodePodCidr(podCidr: string, node: number): string {
  const { base, bits } = parseCidr(podCidr);
  if (bits > 24 || node >= 2 ** (24 - bits)) throw new Error(`${podCidr} has no /24 for node ${node + 1}`);
  return `${formatAddress(base + node * 256)}/24`;
}

/** The address of the `kubernetes` Service. */
export const firstAddress = (cidr: string): string => formatAddress(parseCidr(cidr).base + 1);

/** The address of the cluster's DNS Service: the tenth, as everywhere. */
export const dnsAddress = (serviceCidr: string): string => formatAddress(parseCidr(serviceCidr).base + 10);

/** An IPv4 range as numbers; throws unless it is one. */
export function parseCidr(cidr: string): { base: number; bits: number } {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(cidr);
  const [a, b, c, d, bits] = (match ?? []).slice(1).map(Number);
  if (a === undefined || b === undefined || c === undefined || d === undefined || bits === undefined) {
    throw new Error(`not an IPv4 range: ${cidr}`);
  }
  if (Math.max(a, b, c, d) > 255 || bits > 32) throw new Error(`not an IPv4 range: ${cidr}`);
  const address = ((a * 256 + b) * 256 + c) * 256 + d;
  if (address % 2 ** (32 - bits) !== 0) throw new Error(`${cidr} has bits set behind its prefix`);
  return { base: address, bits };
}

function formatAddress(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}
