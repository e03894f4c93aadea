/**
 * NetworkPolicies as rules of nftables for the pods of one node. Traffic is judged twice, where it leaves its pod and
 * where it enters one, each time on the node of that pod; what the node itself sends (probes) is not judged.
 */
import { isIPv4 } from 'node:net';

import {
  selects,
  type NetworkPolicy,
  type Pod,
  type PolicyPeer,
  type PolicyPort,
  type World,
} from './model.ts';

const TABLE = 'ip lab-network-policy';

type Direction = 'Ingress' | 'Egress';

/** One `from` or `to` with its ports, whatever the direction. */
interface Opening {
  readonly peers: readonly PolicyPeer[];
  readonly ports: readonly PolicyPort[];
}

/** A script for `nft -f` that replaces the rules as a whole; equal for equal worlds. */
export function compile(world: World, node: string): string {
  const local = world.pods.filter((pod) => pod.spec.nodeName === node && addressOf(pod) !== undefined);
  const jumps: string[] = [];
  const chains: string[] = [];
  for (const pod of local) {
    for (const direction of ['Egress', 'Ingress'] as const) {
      const policies = policiesFor(world, pod, direction);
      if (policies.length === 0) continue;
      const name = `pod-${chains.length}`;
      jumps.push(`ip ${direction === 'Egress' ? 'saddr' : 'daddr'} ${addressOf(pod)} jump ${name}`);
      const openings = policies.flatMap((policy) =>
        openingsOf(policy, direction).flatMap((opening) =>
          allowances(world, { policy, pod, direction, opening }),
        ),
      );
      chains.push(
        chain(
          name,
          [...new Set(openings)].map((match) => `${match} return`.trim()),
          'drop',
        ),
      );
    }
  }
  const forward = chain(
    'forward',
    ['type filter hook forward priority filter', 'ct state established,related accept', ...jumps],
    'accept',
  );
  return `table ${TABLE}\ndelete table ${TABLE}\ntable ${TABLE} {\n${[...chains, forward].join('')}}\n`;
}

const chain = (name: string, rules: readonly string[], end: string): string =>
  `  chain ${name} {\n${[...rules, end].map((rule) => `    ${rule};\n`).join('')}  }\n`;

/** Undefined for pods that use the network of their node, and for pods that have ended. */
function addressOf({ spec, status }: Pod): string | undefined {
  const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed';
  if (spec.hostNetwork || isOver) return undefined;
  return isIPv4(status?.podIP ?? '') ? status?.podIP : undefined;
}

function policiesFor({ policies }: World, pod: Pod, direction: Direction): NetworkPolicy[] {
  return policies.filter(({ metadata, spec }) => {
    const types = spec.policyTypes ?? ['Ingress', ...(spec.egress === undefined ? [] : ['Egress'])];
    return (
      metadata.namespace === pod.metadata.namespace &&
      types.includes(direction) &&
      selects(spec.podSelector ?? {}, pod.metadata.labels)
    );
  });
}

function openingsOf({ spec }: NetworkPolicy, direction: Direction): Opening[] {
  return direction === 'Ingress'
    ? (spec.ingress ?? []).map(({ from = [], ports = [] }) => ({ peers: from, ports }))
    : (spec.egress ?? []).map(({ to = [], ports = [] }) => ({ peers: to, ports }));
}

/** The matches for the traffic that an opening lets through; there may be several. */
function allowances(
  world: World,
  at: { policy: NetworkPolicy; pod: Pod; direction: Direction; opening: Opening },
): string[] {
  const { peers, ports } = at.opening;
  const side = at.direction === 'Ingress' ? 'saddr' : 'daddr';
  // A rule without peers means everybody. The listening pod decides which number the name of a port means.
  const reached = peers.length === 0 ? [{ match: '', pods: world.pods }] : [];
  const blocks = peers.flatMap(({ ipBlock }) =>
    ipBlock === undefined ? [] : [{ match: blockMatch(side, ipBlock), pods: [] }],
  );
  const chosen = peers
    .filter(({ ipBlock }) => ipBlock === undefined)
    .flatMap((peer) => podsOf(world, peer, at.policy.metadata.namespace))
    .flatMap((pod) => {
      const address = addressOf(pod);
      return address === undefined ? [] : [{ match: `ip ${side} ${address}`, pods: [pod] }];
    });
  return [...reached, ...blocks, ...chosen].flatMap(({ match, pods }) => {
    if (match === undefined) return [];
    const listeners = at.direction === 'Ingress' ? [at.pod] : pods;
    return portMatches(ports, listeners).map((port) => `${match} ${port}`.trim());
  });
}

function podsOf(world: World, { podSelector, namespaceSelector }: PolicyPeer, own: string): Pod[] {
  const names = new Set(
    namespaceSelector === undefined
      ? [own]
      : world.namespaces
          .filter(({ metadata }) => selects(namespaceSelector, metadata.labels))
          .map(({ metadata }) => metadata.name),
  );
  return world.pods.filter(
    ({ metadata }) => names.has(metadata.namespace) && selects(podSelector ?? {}, metadata.labels),
  );
}

function blockMatch(
  side: string,
  { cidr, except = [] }: NonNullable<PolicyPeer['ipBlock']>,
): string | undefined {
  if (!isCidr(cidr)) return undefined;
  const holes = except.filter(isCidr);
  // nft does not accept the match `ip saddr 0.0.0.0/0`.
  const within = cidr.endsWith('/0') ? '' : `ip ${side} ${cidr}`;
  return `${within}${holes.length === 0 ? '' : ` ip ${side} != { ${holes.join(', ')} }`}`.trim();
}

const isCidr = (text: string): boolean => {
  const [address = '', bits = '', ...more] = text.split('/');
  return isIPv4(address) && /^\d{1,2}$/.test(bits) && Number(bits) <= 32 && more.length === 0;
};

/** No port means every port. */
function portMatches(ports: readonly PolicyPort[], listeners: readonly Pod[]): string[] {
  if (ports.length === 0) return [''];
  return ports.flatMap(({ protocol = 'TCP', port, endPort }) => {
    if (port === undefined) return [`ip protocol ${protocol.toLowerCase()}`];
    const numbers = typeof port === 'number' ? [port] : namedPorts(port, protocol, listeners);
    return numbers.map(
      (number) => `${protocol.toLowerCase()} dport ${number}${endPort === undefined ? '' : `-${endPort}`}`,
    );
  });
}

const namedPorts = (name: string, protocol: string, pods: readonly Pod[]): number[] => [
  ...new Set(
    pods
      .flatMap(({ spec }) => spec.containers.flatMap(({ ports = [] }) => ports))
      .filter((port) => port.name === name && (port.protocol ?? 'TCP') === protocol)
      .map(({ containerPort }) => containerPort),
  ),
];
