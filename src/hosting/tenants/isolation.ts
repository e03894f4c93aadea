/**
 * The NetworkPolicies of a tenant namespace. Guests, the pods of a peer, talk to each other, to their home, to DNS and to the
 * outside, but not to pods, Services, nodes or API servers of this cluster, nor to networks beside it, nor to guests of other peers. In
 * force only where the network plug-in enforces NetworkPolicies.
 */
import { METADATA_SERVICES } from '../../lib/metadata-services.ts';
import { PRIVATE_RANGES } from '../../lib/private-ranges.ts';
import { DNS_NAMESPACES } from '../../api/cluster-namespaces.ts';
import type { LabelSelector } from '../../api/label-selector.ts';
import type { ManifestOf } from '../../api/manifest.ts';
import { LABEL_NAMESPACE_NAME, LABEL_PEER } from '../../api/names.ts';
import {
  LABEL_GUEST_POLICY,
  type NetworkPolicy,
  type NetworkPolicySpec,
  POLICY_TYPES,
  type PolicyPeer,
  type PolicyType,
} from '../../api/network-policy.ts';
import { NETWORK_CONFIG_MAP, type OwnNetwork, readOwnNetwork } from '../../api/own-network.ts';
import { configMaps } from '../../api/resources.ts';
import type { ConfigMap } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { deepEqual } from '../../lib/equality.ts';
import {
  formatPrefix,
  hostPrefix,
  type IpFamily,
  mergePrefixes,
  overlaps,
  type Prefix,
  prefixOf,
  tryPrefix,
  WIDTHS,
} from '../../lib/prefix.ts';

export type Isolation = 'Tenant' | 'None';

export type NetworkPolicyManifest = ManifestOf<NetworkPolicy>;

/** Name of the NetworkPolicy in each tenant namespace that closes all pods. Names of the others begin with it and a dash. */
export const ISOLATION_NAME = 'tributary';

/** Addresses of this cluster, CIDRs. */
interface OwnRanges {
  /** Those of pods and Services. Undefined where they are not known: then every private range may be ours. */
  inside?: readonly string[];
  /** Single addresses of nodes, all that each has. Ingress controllers that use the network of a node come from there. */
  nodes: readonly string[];
  /**
   * What else this cluster uses: API servers, networks beside it, the networks of its nodes, and what people have reserved. A peer may
   * be seen within these since before they were, so they do not keep guests from their home.
   */
  beside: readonly string[];
}

export interface IsolationFacts {
  /** The value of LABEL_PEER on all its namespaces here. */
  peer: string;
  /** The peer's own addresses, as seen here. What is no CIDR is ignored. */
  prefixes: readonly string[];
  /** Undefined where nothing is known of them. */
  own: OwnRanges | undefined;
}

const EVERYWHERE: Readonly<Record<IpFamily, string>> = { 4: '0.0.0.0/0', 6: '::/0' };

/** Pods of OpenShift's cluster DNS listen on 5353. */
export const DNS_PORTS: readonly number[] = [53, 5353];
/** NodeLocal DNSCache answers on this address of each node. */
const NODE_LOCAL_DNS = '169.254.20.10/32';

/** How many prefixes of a peer are let through: a peer chooses how many it has. */
const MAX_PREFIXES = 256;
/** How many of our nodes are let in. */
const MAX_NODES = 1024;
/** How many ranges of one family are excluded. More are widened, which excludes more addresses and never fewer. */
const MAX_EXCEPT = 256;

/** Whom guests of one peer may reach, and who may reach them. */
export interface GuestBounds {
  /** All its pods here. */
  guests: PolicyPeer;
  /** Pods and nodes of this cluster, which may reach guests. */
  cluster: readonly PolicyPeer[];
  /** The home, as seen here. */
  home: readonly PolicyPeer[];
  dns: { to: readonly PolicyPeer[]; ports: readonly number[] };
  /** Everywhere outside this cluster. */
  outside: readonly PolicyPeer[];
}

export function guestBounds({ peer, prefixes, own }: IsolationFacts): GuestBounds {
  const noPeer = {
    namespaceSelector: { matchExpressions: [{ key: LABEL_PEER, operator: 'DoesNotExist' as const }] },
  };
  const nodes = formatted(merged(own?.nodes ?? []).slice(0, MAX_NODES)).map(block);
  const dns = [{ key: LABEL_NAMESPACE_NAME, operator: 'In' as const, values: [...DNS_NAMESPACES] }];
  return {
    guests: { namespaceSelector: { matchLabels: { [LABEL_PEER]: peer } } },
    cluster: [noPeer, ...nodes],
    home: formatted(homes(prefixes, own).slice(0, MAX_PREFIXES)).map(block),
    dns: { to: [{ namespaceSelector: { matchExpressions: dns } }, block(NODE_LOCAL_DNS)], ports: DNS_PORTS },
    outside: outside(own),
  };
}

/** All that is allowed, as rules. */
export const openIngress = ({
  guests,
  cluster,
  home,
}: GuestBounds): NonNullable<NetworkPolicySpec['ingress']> => [{ from: [guests, ...cluster, ...home] }];
export const openEgress = ({
  guests,
  home,
  dns,
  outside,
}: GuestBounds): NonNullable<NetworkPolicySpec['egress']> => [
  { to: [guests, ...home] },
  {
    to: [...dns.to],
    ports: dns.ports.flatMap((port) => (['UDP', 'TCP'] as const).map((protocol) => ({ protocol, port }))),
  },
  { to: [...outside] },
];

/**
 * Three policies, since what policies allow adds up: one opens nothing and so closes every pod, and one for each direction opens what
 * is allowed, to pods about which no policy of their home speaks. For the others see guest-policy.ts. The one that closes comes last.
 */
export function forgeIsolation(
  namespace: string,
  labels: Record<string, string>,
  facts: IsolationFacts,
): NetworkPolicyManifest[] {
  const bounds = guestBounds(facts);
  const policy = (name: string, spec: NetworkPolicySpec): NetworkPolicyManifest => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace, labels },
    spec,
  });
  const without = (type: PolicyType): LabelSelector => ({
    matchExpressions: [{ key: LABEL_GUEST_POLICY[type], operator: 'DoesNotExist' }],
  });
  return [
    policy(`${ISOLATION_NAME}-ingress`, {
      podSelector: without('Ingress'),
      policyTypes: ['Ingress'],
      ingress: openIngress(bounds),
    }),
    policy(`${ISOLATION_NAME}-egress`, {
      podSelector: without('Egress'),
      policyTypes: ['Egress'],
      egress: openEgress(bounds),
    }),
    // Named although they are empty, so that what somebody else has put there goes.
    policy(ISOLATION_NAME, { podSelector: {}, policyTypes: [...POLICY_TYPES], ingress: [], egress: [] }),
  ];
}

/** The peer's prefixes without those that overlap ours. The network never allows such ones; this does not rely on it. */
function homes(prefixes: readonly string[], own: OwnRanges | undefined): Prefix[] {
  const ours = merged([...(own?.inside ?? []), ...(own?.nodes ?? [])]);
  return merged(prefixes).filter((prefix) => !ours.some((other) => overlaps(prefix, other)));
}

const block = (cidr: string): PolicyPeer => ({ ipBlock: { cidr } });

/** Everywhere outside this cluster. */
const outside = (own: OwnRanges | undefined): PolicyPeer[] => {
  const { inside = PRIVATE_RANGES, nodes = [], beside = [] } = own ?? {};
  const closed = bounded([...METADATA_SERVICES, ...inside, ...nodes, ...beside]);
  return ([4, 6] as const).map((family) => ({
    ipBlock: {
      cidr: EVERYWHERE[family],
      except: formatted(closed.filter((prefix) => prefix.family === family)),
    },
  }));
};

const merged = (texts: readonly string[]): Prefix[] =>
  // Not /0: as an exception the API server refuses it, and as a peer's prefix it would allow everything.
  mergePrefixes(texts.flatMap((text) => tryPrefix(text) ?? []).filter(({ length }) => length > 0));

const formatted = (prefixes: readonly Prefix[]): string[] => prefixes.map(formatPrefix);

/** At most MAX_EXCEPT prefixes of each family; where there are more, wider ones. */
function bounded(texts: readonly string[]): Prefix[] {
  const all = merged(texts);
  return ([4, 6] as const).flatMap((family) => {
    let own = all.filter((prefix) => prefix.family === family);
    for (let length = WIDTHS[family]; own.length > MAX_EXCEPT && length > 1; length--) {
      own = mergePrefixes(own.map((prefix) => widened(prefix, length - 1)));
    }
    return own;
  });
}

const widened = ({ family, base, length }: Prefix, most: number): Prefix =>
  prefixOf({ family, value: base }, Math.min(length, most));

export function ownRangesOf(network: Partial<OwnNetwork> | undefined): OwnRanges | undefined {
  if (network === undefined) return undefined;
  const { pods = [], services = [], external, nodes = [], reserved = [], apiServers = [] } = network;
  return {
    ...(pods.length > 0 && { inside: [...pods, ...services, ...(external === undefined ? [] : [external])] }),
    nodes: nodes.flatMap(({ address, others = [] }) => hostPrefixes([address, ...others])),
    beside: [...reserved, ...hostPrefixes(apiServers)],
  };
}

const hostPrefixes = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => hostPrefix(text) ?? []).map(formatPrefix);

/** Addresses of this cluster as the network publishes them. Guests may not reach them. */
export class OwnRangesCache {
  readonly cache: Cache<ConfigMap>;
  readonly #key: string;

  constructor(caches: Caches, namespace: string) {
    this.#key = `${namespace}/${NETWORK_CONFIG_MAP}`;
    this.cache = caches.of(configMaps, {
      list: { namespace, fieldSelector: `metadata.name=${NETWORK_CONFIG_MAP}` },
      name: 'cache of our own addresses',
    });
  }

  /** Undefined while they are not known. */
  get current(): OwnRanges | undefined {
    return read(this.cache.get(this.#key));
  }

  /** Calls back when they change; the returned function ends that. */
  onChange(listener: () => void): () => void {
    return this.cache.onChange((_key, current, previous) => {
      if (!deepEqual(read(current), read(previous))) listener();
    });
  }
}

const read = (map: ConfigMap | undefined): OwnRanges | undefined => ownRangesOf(readOwnNetwork(map?.data));
