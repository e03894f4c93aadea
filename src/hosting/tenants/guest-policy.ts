/**
 * From what a home says of its pods here to the NetworkPolicy that holds: what it says, within what this cluster lets pods of peers do.
 * What is not allowed stays closed, and is told. Pure.
 */
import { createHash } from 'node:crypto';

import {
  GUEST_POLICY_LIMITS,
  type GuestNetworkPolicy,
  type GuestNetworkPolicyStatus,
  type GuestPods,
  type GuestPolicyPeer,
  LABEL_GUEST_NETWORK_POLICY,
} from '../../api/guest-network-policy.ts';
import { APP_NAME, LABEL_APP_NAME, MAX_LABEL_LENGTH } from '../../api/manifest.ts';
import { LABEL_NAMESPACE_NAME, LABEL_PEER } from '../../api/names.ts';
import type {
  IpBlock,
  NetworkPolicy,
  NetworkPolicySpec,
  PolicyPeer,
  PolicyPort,
} from '../../api/network-policy.ts';
import { API_VERSION } from '../../api/virtual-node.ts';
import { deepEqual, jsonContains } from '../../lib/equality.ts';
import { contains, formatPrefix, overlaps, type Prefix, prefixesOf, tryPrefix } from '../../lib/prefix.ts';
import {
  DNS_PORTS,
  type GuestBounds,
  ISOLATION_NAME,
  type NetworkPolicyManifest,
  openEgress,
  openIngress,
} from './isolation.ts';

export interface GuestPolicyFacts {
  /** ClusterID. */
  peer: string;
  /** Undefined: this cluster does not keep guests apart, and all that the home says holds. */
  bounds: GuestBounds | undefined;
  /** The tenant namespace of a namespace at home. */
  tenantOf: (homeNamespace: string) => string | undefined;
}

export interface ForgedGuestPolicy {
  policy: NetworkPolicyManifest;
  closed: NonNullable<GuestNetworkPolicyStatus['closed']>;
}

const MAX_NAME_LENGTH = 253;
export const GUEST_POLICY_PREFIX: string = `${ISOLATION_NAME}-guest`;

type Egress = NonNullable<NetworkPolicySpec['egress']>;

/** Names of objects may be longer than ours can be, and than a label can. */
export const guestPolicyName = (name: string): string => {
  const whole = `${GUEST_POLICY_PREFIX}-${name}`;
  // With a dot, which no other one has there.
  return whole.length <= MAX_NAME_LENGTH ? whole : `${GUEST_POLICY_PREFIX}.${digestOf(name)}`;
};
const labelOf = (name: string): string => (name.length <= MAX_LABEL_LENGTH ? name : digestOf(name));
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32);

/**
 * Of one policy: a peer may write few words that become many addresses, and what is compared with each other must have an end. Counts
 * down.
 */
interface Room {
  /** Ranges that are compared with ranges. */
  comparisons: number;
  /** Bytes of rules that are written. */
  bytes: number;
}
const ROOM: Readonly<Room> = { comparisons: 300_000, bytes: 256 * 1024 };

interface Work extends GuestPolicyFacts {
  room: Room;
  /** Undefined: everywhere. */
  from: readonly Range[] | undefined;
  to: readonly Range[] | undefined;
}

/** A block that has been read. */
interface Range {
  prefix: Prefix;
  excepts: readonly Prefix[];
}

export function forgeGuestPolicy(asked: GuestNetworkPolicy, facts: GuestPolicyFacts): ForgedGuestPolicy {
  const { name, namespace = '', uid } = asked.metadata;
  const { podSelector, policyTypes, ingress = [], egress = [] } = asked.spec;
  const { bounds } = facts;
  const closed: string[] = [];
  const tell = (what: string): unknown => closed.length < GUEST_POLICY_LIMITS.closed && closed.push(what);
  const work: Work = {
    ...facts,
    room: { ...ROOM },
    from: bounds && bounds.home.flatMap(rangesOf),
    to: bounds && [...bounds.home, ...bounds.outside].flatMap(rangesOf),
  };
  const policy: NetworkPolicyManifest = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: guestPolicyName(name),
      namespace,
      labels: {
        [LABEL_APP_NAME]: APP_NAME,
        [LABEL_PEER]: facts.peer,
        [LABEL_GUEST_NETWORK_POLICY]: labelOf(name),
      },
      // It goes with the one that it was made from.
      ownerReferences: [{ apiVersion: API_VERSION, kind: 'GuestNetworkPolicy', name, uid, controller: true }],
    },
    spec: {
      podSelector,
      policyTypes: [...policyTypes].toSorted(),
      // Named even if empty, so that what somebody else has put there goes.
      ingress: policyTypes.includes('Ingress')
        ? ingress.flatMap((rule, at) =>
            ingressRules(rule, work, (why) => tell(`ingress rule ${at + 1}: ${why}`)),
          )
        : [],
      egress: policyTypes.includes('Egress')
        ? egress.flatMap((rule, at) =>
            egressRules(rule, work, (why) => tell(`egress rule ${at + 1}: ${why}`)),
          )
        : [],
    },
  };
  return { policy, closed };
}

/** Whether a policy as it is there has a rule, or selects pods, that it is not to have. */
export function opensMore({ spec }: NetworkPolicy, { spec: next = {} }: NetworkPolicyManifest): boolean {
  const isOpenIn = (rules: readonly object[] | undefined, those: readonly object[] | undefined): boolean =>
    (rules ?? []).some((rule) => !(those ?? []).some((other) => jsonContains(rule, other)));
  if (!deepEqual(spec?.podSelector, next.podSelector)) return true;
  return isOpenIn(spec?.ingress, next.ingress) || isOpenIn(spec?.egress, next.egress);
}

type Tell = (why: string) => unknown;

function ingressRules(
  { from, ports }: NonNullable<GuestNetworkPolicy['spec']['ingress']>[number],
  work: Work,
  tell: Tell,
): NonNullable<NetworkPolicySpec['ingress']> {
  const { bounds } = work;
  if (from === undefined || from.length === 0) {
    const open = bounds === undefined ? [{}] : openIngress(bounds);
    return fitting(open, work, tell).map((rule) => withPorts(rule, ports));
  }
  const allowed = from.flatMap((peer) =>
    peer.cluster === true
      ? (bounds?.cluster ?? [{ namespaceSelector: {} }])
      : peersOf(peer, { work, within: work.from, tell }),
  );
  return allowed.length === 0 ? [] : fitting([withPorts({ from: unique(allowed) }, ports)], work, tell);
}

function egressRules(
  { to, ports }: NonNullable<GuestNetworkPolicy['spec']['egress']>[number],
  work: Work,
  tell: Tell,
): Egress {
  const { bounds } = work;
  if (to === undefined || to.length === 0) {
    return bounds === undefined ? [withPorts({}, ports)] : fitting(openedTo(bounds, ports), work, tell);
  }
  const allowed = to.flatMap((peer) => peersOf(peer, { work, within: work.to, tell }));
  const names = to.some(({ clusterDNS }) => clusterDNS === true) ? dnsRules(bounds, ports) : [];
  return fitting(
    [...(allowed.length === 0 ? [] : [withPorts({ to: unique(allowed) }, ports)]), ...names],
    work,
    tell,
  );
}

/** Everywhere, by some ports: to the DNS by those of them that are for names. */
const openedTo = (bounds: GuestBounds, ports: PolicyPort[] | undefined): Egress => [
  ...openEgress(bounds).flatMap((rule) => (rule.ports === undefined ? [withPorts(rule, ports)] : [])),
  ...dnsRules(bounds, ports),
];

/** Here the DNS may listen on another port than at home: where one of its ports is open, all of ours are, by the same protocols. */
function dnsRules(bounds: GuestBounds | undefined, ports: PolicyPort[] | undefined): Egress {
  const protocols = (['UDP', 'TCP'] as const).filter(
    (protocol) =>
      ports === undefined ||
      ports.length === 0 ||
      ports.some(
        (port) => (port.protocol ?? 'TCP') === protocol && DNS_PORTS.some((number) => includes(port, number)),
      ),
  );
  if (protocols.length === 0) return [];
  const { to, ports: numbers } = bounds?.dns ?? { to: [{ namespaceSelector: {} }], ports: DNS_PORTS };
  return [
    { to: [...to], ports: protocols.flatMap((protocol) => numbers.map((port) => ({ protocol, port }))) },
  ];
}

const includes = ({ port, endPort }: PolicyPort, number: number): boolean =>
  port === undefined || (typeof port === 'number' && port <= number && number <= (endPort ?? port));

const withPorts = <Rule extends object>(
  rule: Rule,
  ports: PolicyPort[] | undefined,
): Rule & { ports?: PolicyPort[] } => (ports === undefined || ports.length === 0 ? rule : { ...rule, ports });

/** Those of the rules for which there is room. */
function fitting<Rule extends { from?: PolicyPeer[]; to?: PolicyPeer[] }>(
  rules: Rule[],
  { room }: Work,
  tell: Tell,
): Rule[] {
  return rules.filter((rule) => {
    const size = JSON.stringify(rule).length;
    const fits = size <= room.bytes;
    if (fits) room.bytes -= size;
    else tell(`with it the policy has more than ${ROOM.bytes} bytes`);
    return fits;
  });
}

function peersOf(
  { pods, ipBlock }: GuestPolicyPeer,
  { work, within, tell }: { work: Work; within: readonly Range[] | undefined; tell: Tell },
): PolicyPeer[] {
  if (pods !== undefined) return podsOf(pods, work);
  if (ipBlock === undefined) return [];
  if (within === undefined) return [{ ipBlock }];
  const { room } = work;
  room.comparisons -= within.length * (1 + (ipBlock.except ?? []).length);
  const ranges = room.comparisons < 0 ? [] : rangesOf({ ipBlock });
  const found = ranges.flatMap((range) => within.flatMap((bound) => overlapOf(range, bound)));
  for (const { bound } of found) room.comparisons -= bound.excepts.length;
  if (room.comparisons < 0) {
    tell('the policy names too many ranges');
    return [];
  }
  const blocks = found.flatMap(both);
  if (blocks.length === 0) tell(`${ipBlock.cidr} is closed to pods of peers`);
  return blocks.map((block) => ({ ipBlock: block }));
}

/** What is of the home may be outside, too, and a peer may say things twice. */
const unique = (peers: readonly PolicyPeer[]): PolicyPeer[] => [
  ...new Map(peers.map((peer) => [JSON.stringify(peer), peer])).values(),
];

function podsOf(
  { podSelector, homeNamespaces, everywhere }: GuestPods,
  { peer, tenantOf }: GuestPolicyFacts,
): PolicyPeer[] {
  const isOfPeer = { [LABEL_PEER]: peer };
  if (everywhere === true) return [{ namespaceSelector: { matchLabels: isOfPeer }, podSelector }];
  if (homeNamespaces === undefined) return [{ podSelector }];
  const values = homeNamespaces.flatMap((name) => tenantOf(name) ?? []).toSorted();
  if (values.length === 0) return [];
  return [
    {
      namespaceSelector: {
        matchLabels: isOfPeer,
        matchExpressions: [{ key: LABEL_NAMESPACE_NAME, operator: 'In', values }],
      },
      podSelector,
    },
  ];
}

/** None for what cannot be read. */
function rangesOf({ ipBlock }: Pick<PolicyPeer, 'ipBlock'>): Range[] {
  const prefix = tryPrefix(ipBlock?.cidr ?? '');
  return prefix === undefined ? [] : [{ prefix, excepts: prefixesOf(ipBlock?.except ?? []) }];
}

interface Overlap {
  range: Range;
  bound: Range;
}

const overlapOf = (range: Range, bound: Range): Overlap[] =>
  overlaps(range.prefix, bound.prefix) ? [{ range, bound }] : [];

/** What is in both. */
function both({ range: one, bound: other }: Overlap): IpBlock[] {
  const inner = one.prefix.length >= other.prefix.length ? one.prefix : other.prefix;
  const excepts = [...one.excepts, ...other.excepts];
  if (excepts.some((it) => contains(it, inner))) return [];
  const except = excepts.filter((it) => contains(inner, it)).map(formatPrefix);
  return [
    { cidr: formatPrefix(inner), ...(except.length > 0 && { except: [...new Set(except)].toSorted() }) },
  ];
}
