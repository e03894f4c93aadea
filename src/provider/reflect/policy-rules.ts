/**
 * The rules of a NetworkPolicy at home, for pods over there. What cannot be said exactly becomes stricter, never laxer: a rule of
 * which nothing is left goes, and does not become one that opens to everybody. Pure.
 */
import {
  GUEST_POLICY_LIMITS as LIMITS,
  type GuestNetworkPolicySpec,
  type GuestPolicyPeer,
} from '../../api/guest-network-policy.ts';
import { DNS_NAMESPACES } from '../../api/cluster-namespaces.ts';
import { type LabelSelector, matchesSelector } from '../../api/label-selector.ts';
import {
  type NetworkPolicySpec,
  type PolicyPeer,
  type PolicyPort,
  policyTypesOf,
} from '../../api/network-policy.ts';
import { ownAddresses } from '../../api/pod.ts';
import type { Pod } from '../../api/wire.ts';
import { formatPrefix, hostPrefix, mergePrefixes } from '../../lib/prefix.ts';
import type { HomeDnsWay, OwnDns } from '../home-dns.ts';
import type { NetworkView } from '../network-view.ts';
import { blocksReach, isInBlock } from './policy-blocks.ts';
import type { PolicyWorld } from './policy-world.ts';

export interface PolicyContext {
  homeNamespace: string;
  world: PolicyWorld;
  network: Pick<NetworkView, 'prefixes' | 'foreignViewOf' | 'isTheirs'>;
  dns: { own: OwnDns; way: HomeDnsWay };
  /** Whether pods over there may bear that label otherwise than at home. */
  isOther: (labelKey: string) => boolean;
}

export interface ForgedPolicy {
  spec: GuestNetworkPolicySpec;
  /** What is closed over there although it is open at home, and why. */
  notes: string[];
}

type Egress = NonNullable<GuestNetworkPolicySpec['egress']>;

/** Whether the pods and namespaces of home have to be known for it. */
export const selectsPeers = ({ ingress = [], egress = [] }: NetworkPolicySpec): boolean =>
  [...ingress.flatMap(({ from = [] }) => from), ...egress.flatMap(({ to = [] }) => to)].some(
    ({ ipBlock }) => ipBlock === undefined,
  );

export function forgePolicySpec(spec: NetworkPolicySpec, context: PolicyContext): ForgedPolicy {
  const { podSelector = {}, ingress = [], egress = [] } = spec;
  const notes: string[] = [];
  const types = policyTypesOf(spec);
  const about = (what: string, at: number) => (why: string) =>
    void notes.push(`${what} rule ${at + 1}: ${why}`);
  const other = otherKey(podSelector, context);
  if (other !== undefined)
    notes.push(`it selects pods by the label ${other}, ${OTHER_LABEL}: it only closes`);
  const rules = other === undefined ? { ingress, egress } : { ingress: [], egress: [] };
  const rulesIn = rules.ingress.flatMap((rule, at) => ingressRules(rule, context, about('ingress', at)));
  const rulesOut = rules.egress.flatMap((rule, at) => egressRules(rule, context, about('egress', at)));
  const bounded = <Rule>(what: string, rules: Rule[]): Rule[] => {
    if (rules.length > LIMITS.rules) notes.push(`${what}: rules beyond the first ${LIMITS.rules} are closed`);
    return rules.slice(0, LIMITS.rules);
  };
  return {
    spec: {
      podSelector,
      policyTypes: [...types].toSorted(),
      ...(types.includes('Ingress') && rulesIn.length > 0 && { ingress: bounded('ingress', rulesIn) }),
      ...(types.includes('Egress') && rulesOut.length > 0 && { egress: bounded('egress', rulesOut) }),
    },
    notes,
  };
}

type Tell = (why: string) => void;

const OTHER_LABEL = 'which pods over there do not bear as at home';

/** A label in the selector that would select other pods over there; what is absent selects, too (NotIn, DoesNotExist). */
const otherKey = (
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  { isOther }: PolicyContext,
): string | undefined =>
  [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)].find(isOther);

function ingressRules(
  { from = [], ports = [] }: NonNullable<NetworkPolicySpec['ingress']>[number],
  context: PolicyContext,
  tell: Tell,
): NonNullable<GuestNetworkPolicySpec['ingress']> {
  const own = withPorts(ports);
  if (from.length === 0) return [own];
  const reach = reachOf(from, context, tell);
  const cluster: GuestPolicyPeer[] = reach.isEverything ? [{ cluster: true }] : [];
  const peers = [...reach.guests, ...cluster, ...reach.blocks, ...blocksOf(reach.pods, context)];
  return peers.length === 0 ? [] : [{ from: bounded(peers, tell), ...own }];
}

function egressRules(
  { to = [], ports = [] }: NonNullable<NetworkPolicySpec['egress']>[number],
  context: PolicyContext,
  tell: Tell,
): Egress {
  const own = withPorts(ports);
  if (to.length === 0) return [own];
  const reach = reachOf(to, context, tell);
  const numbered = ports.filter(({ port }) => typeof port !== 'string');
  const rules: Egress = [];
  const add = (peers: GuestPolicyPeer[], rule: { ports?: PolicyPort[] }): void => {
    if (peers.length > 0) rules.push({ to: bounded(peers, tell), ...rule });
  };
  const names = reach.asksDns || reach.dns.length > 0 ? dnsOf(context) : [];
  if (numbered.length === ports.length) {
    add([...reach.guests, ...names, ...reach.blocks, ...blocksOf(reach.pods, context)], own);
    return rules;
  }
  // Who listens at an address is not known over there, and so not what the name of a port means.
  add(reach.guests, own);
  if (reach.blocks.length > 0) tell('a port by its name opens no range of addresses');
  if (numbered.length > 0) add(reach.blocks, withPorts(numbered));
  const dnsPorts = [...numbered, ...reach.dns.flatMap((pod) => resolved(ports, pod))];
  if (dnsPorts.length > 0) add(names, withPorts(dnsPorts));
  for (const [key, pods] of Map.groupBy(reach.pods, (pod) => JSON.stringify(resolved(ports, pod)))) {
    const own = JSON.parse(key) as PolicyPort[];
    if (own.length > 0) add(blocksOf(pods, context), withPorts(own));
  }
  return rules;
}

/** The API server over there fills the protocol in. */
const withPorts = (ports: readonly PolicyPort[]): { ports?: PolicyPort[] } =>
  ports.length === 0 ? {} : { ports: ports.map((port) => ({ ...port, protocol: port.protocol ?? 'TCP' })) };

function bounded(peers: GuestPolicyPeer[], tell: Tell): GuestPolicyPeer[] {
  if (peers.length > LIMITS.peers) {
    tell(`ranges and selectors beyond the first ${LIMITS.peers} are closed`);
  }
  return peers.slice(0, LIMITS.peers);
}

/** The ports with numbers instead of names, as that pod has them. */
const resolved = (ports: readonly PolicyPort[], { spec }: Pod): PolicyPort[] =>
  ports.flatMap((wanted) => {
    if (typeof wanted.port !== 'string') return [wanted];
    const protocol = wanted.protocol ?? 'TCP';
    return (spec?.containers ?? [])
      .flatMap((container) => container.ports ?? [])
      .filter((port) => port.name === wanted.port && (port.protocol ?? 'TCP') === protocol)
      .map(({ containerPort }) => ({ protocol, port: containerPort }));
  });

interface Reach {
  /** Pods over there. */
  guests: GuestPolicyPeer[];
  /** Pods elsewhere, which are named by their addresses. */
  pods: Pod[];
  blocks: GuestPolicyPeer[];
  /** The DNS of home is in one of the ranges. */
  asksDns: boolean;
  /** Those of the pods that are the DNS of home. */
  dns: Pod[];
  isEverything: boolean;
}

function reachOf(peers: readonly PolicyPeer[], context: PolicyContext, tell: Tell): Reach {
  const { network, dns, world } = context;
  const { nameservers } = dns.own;
  const ranges = peers.flatMap(({ ipBlock }) => ipBlock ?? []);
  const { blocks, allGuests, isEverything, notes } = blocksReach(ranges, {
    prefixes: network.prefixes,
    nameservers,
    hasNodeAt: (address) => world.hasNodeAt(address),
  });
  const reach: Reach = {
    guests: allGuests ? [{ pods: { podSelector: {}, everywhere: true } }] : [],
    pods: [],
    blocks: blocks.map((block) => ({ ipBlock: block })),
    // Wherever an unknown DNS is, it is somewhere.
    asksDns:
      (isEverything && nameservers.length === 0) ||
      ranges.some((range) => nameservers.some((address) => isInBlock(range, address))),
    dns: [],
    isEverything,
  };
  for (const note of notes) tell(note);
  for (const peer of peers) if (peer.ipBlock === undefined) addSelected(reach, peer, context, tell);
  return reach;
}

function addSelected(
  reach: Reach,
  { podSelector = {}, namespaceSelector }: PolicyPeer,
  context: PolicyContext,
  tell: Tell,
): void {
  const { homeNamespace, world } = context;
  const names =
    namespaceSelector === undefined
      ? [homeNamespace]
      : [...world.namespaces()]
          .filter(({ metadata }) => matchesSelector(namespaceSelector, metadata.labels ?? {}))
          .map(({ metadata }) => metadata.name)
          .toSorted();
  const isAll = namespaceSelector !== undefined && isEmpty(namespaceSelector);
  if (!isAll && names.length > LIMITS.namespaces) {
    tell(`namespaces beyond the first ${LIMITS.namespaces} are closed`);
  }
  const other = otherKey(podSelector, context);
  if (other !== undefined)
    tell(`it selects pods by the label ${other}, ${OTHER_LABEL}: those over there are closed`);
  else if (isAll) reach.guests.push({ pods: { podSelector, everywhere: true } });
  else if (namespaceSelector === undefined) reach.guests.push({ pods: { podSelector } });
  else if (names.length > 0) {
    reach.guests.push({ pods: { podSelector, homeNamespaces: names.slice(0, LIMITS.namespaces) } });
  }
  const found = names
    .flatMap((name) => world.podsIn(name))
    .filter(({ metadata }) => matchesSelector(podSelector, metadata.labels ?? {}));
  reach.pods.push(...found);
  reach.dns.push(...found.filter(isDns));
}

const isEmpty = ({
  matchLabels = {},
  matchExpressions = [],
}: NonNullable<PolicyPeer['podSelector']>): boolean =>
  Object.keys(matchLabels).length + matchExpressions.length === 0;

/** How pods of cluster DNS are marked: by kubeadm and most distributions, and by OpenShift. */
const DNS_APPS: ReadonlySet<string | undefined> = new Set(['kube-dns', 'coredns']);
const OPENSHIFT_DNS = 'dns.operator.openshift.io/daemonset-dns';

const isDns = ({ metadata: { namespace, labels = {} } }: Pod): boolean =>
  DNS_NAMESPACES.includes(namespace ?? '') && (DNS_APPS.has(labels['k8s-app']) || OPENSHIFT_DNS in labels);

/** Whoever may ask the DNS at home may ask, over there, the one that pods over there ask. */
const dnsOf = ({ dns: { way } }: PolicyContext): GuestPolicyPeer[] =>
  way.kind === 'At'
    ? way.nameservers.flatMap((address) => {
        const prefix = hostPrefix(address);
        return prefix === undefined ? [] : [{ ipBlock: { cidr: formatPrefix(prefix) } }];
      })
    : [{ clusterDNS: true }];

/** Where pods are that do not run over there, as it is seen there. */
const blocksOf = (pods: readonly Pod[], { network }: PolicyContext): GuestPolicyPeer[] =>
  mergePrefixes(
    pods.flatMap(ownAddresses).flatMap((address) => {
      const seen = network.isTheirs(address) ? undefined : network.foreignViewOf(address);
      return (seen === undefined ? undefined : hostPrefix(seen)) ?? [];
    }),
  ).map((prefix) => ({ ipBlock: { cidr: formatPrefix(prefix) } }));
