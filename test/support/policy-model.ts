import { matchesSelector } from '../../src/api/label-selector.ts';
import {
  type NetworkPolicySpec,
  type PolicyPeer,
  type PolicyPort,
  type PolicyType,
  policyTypesOf,
} from '../../src/api/network-policy.ts';
import { contains, parseAddress, prefixesOf, tryPrefix } from '../../src/lib/prefix.ts';

/** Somebody who sends or listens, as one cluster sees it. */
export interface Party {
  address: string;
  /** Undefined: an address and no pod of that cluster. */
  pod?: {
    namespace: string;
    labels: Readonly<Record<string, string>>;
    ports?: Readonly<Record<string, number>>;
  };
}

export interface PolicyWorldModel {
  /** Labels by namespace. */
  namespaces: Readonly<Record<string, Readonly<Record<string, string>>>>;
  policies: readonly { namespace: string; spec: NetworkPolicySpec }[];
}

type Connection = Record<'subject' | 'other', Party> & { port: number; protocol: 'TCP' | 'UDP' };

/** What the documentation of NetworkPolicies says: whether the policies of `subject` let the connection through in that direction. */
export function allows(
  { namespaces, policies }: PolicyWorldModel,
  type: PolicyType,
  { subject, other, port, protocol }: Connection,
): boolean {
  const { pod } = subject;
  if (pod === undefined) return true;
  const own = policies.filter(
    ({ namespace, spec }) =>
      namespace === pod.namespace &&
      policyTypesOf(spec).includes(type) &&
      matchesSelector(spec.podSelector ?? {}, pod.labels),
  );
  if (own.length === 0) return true;
  const listener = type === 'Ingress' ? subject : other;
  const isPort = (wanted: PolicyPort): boolean => {
    if ((wanted.protocol ?? 'TCP') !== protocol) return false;
    if (wanted.port === undefined) return true;
    const first = typeof wanted.port === 'number' ? wanted.port : listener.pod?.ports?.[wanted.port];
    return first !== undefined && first <= port && port <= (wanted.endPort ?? first);
  };
  return own.some(({ namespace, spec }) => {
    const rules =
      type === 'Ingress'
        ? (spec.ingress ?? []).map(({ from = [], ports = [] }) => ({ peers: from, ports }))
        : (spec.egress ?? []).map(({ to = [], ports = [] }) => ({ peers: to, ports }));
    return rules.some(
      ({ peers, ports }) =>
        (ports.length === 0 || ports.some(isPort)) &&
        (peers.length === 0 || peers.some((peer) => isPeer(namespaces, namespace, { peer, other }))),
    );
  });
}

function isPeer(
  namespaces: PolicyWorldModel['namespaces'],
  own: string,
  { peer, other }: { peer: PolicyPeer; other: Party },
): boolean {
  const { ipBlock, namespaceSelector, podSelector = {} } = peer;
  if (ipBlock !== undefined) {
    const address = parseAddress(other.address);
    const range = tryPrefix(ipBlock.cidr);
    if (address === undefined || range === undefined || !contains(range, address)) return false;
    return !prefixesOf(ipBlock.except ?? []).some((except) => contains(except, address));
  }
  if (other.pod === undefined || !matchesSelector(podSelector, other.pod.labels)) return false;
  return namespaceSelector === undefined
    ? other.pod.namespace === own
    : matchesSelector(namespaceSelector, namespaces[other.pod.namespace] ?? {});
}
