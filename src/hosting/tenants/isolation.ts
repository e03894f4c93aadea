/**
 * The NetworkPolicy of a tenant namespace. Guests, the pods of a peer, talk to each other, to their home, to DNS and to the
 * outside, but not to pods, Services, nodes or API servers of this cluster, nor to networks beside it, nor to guests of other peers. In
 * force only where the network plug-in enforces NetworkPolicies.
 */
import { METADATA_SERVICES } from '../../lib/metadata-services.ts';
import type { Manifest } from '../../api/manifest.ts';
import { LABEL_PEER } from '../../api/names.ts';
import { NETWORK_CONFIG_MAP, type OwnNetwork, readOwnNetwork } from '../../api/own-network.ts';
import { configMaps } from '../../api/resources.ts';
import type { ConfigMap } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { deepEqual } from '../../lib/equality.ts';
import {
  formatPrefix,
  type IpFamily,
  mergePrefixes,
  overlaps,
  parseAddress,
  type Prefix,
  prefixOf,
  tryPrefix,
  WIDTHS,
} from '../../lib/prefix.ts';

export type Isolation = 'Tenant' | 'None';

interface Side {
  namespaceSelector?: object;
  ipBlock?: { cidr: string; except?: string[] };
}

/** Not client-node's type: that one renames `from`, which on the wire is `from`. */
export interface NetworkPolicyManifest extends Manifest {
  spec: {
    podSelector: Record<string, never>;
    policyTypes: ('Ingress' | 'Egress')[];
    ingress: { from: Side[] }[];
    egress: { to: Side[]; ports?: { protocol: string; port: number }[] }[];
  };
}

/** Name of the NetworkPolicy in each tenant namespace. */
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

/** RFC 1918, RFC 6598, RFC 4193. */
const PRIVATE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'];
const EVERYWHERE: Readonly<Record<IpFamily, string>> = { 4: '0.0.0.0/0', 6: '::/0' };

/** Where cluster DNS runs. OpenShift has a namespace for it, and its pods listen on 5353. */
const DNS_NAMESPACES = ['kube-system', 'openshift-dns'];
const DNS_PORTS = [53, 5353];
/** NodeLocal DNSCache answers on this address of each node. */
const NODE_LOCAL_DNS = '169.254.20.10/32';

/** How many prefixes of a peer are let through: a peer chooses how many it has. */
const MAX_PREFIXES = 256;
/** How many of our nodes are let in. */
const MAX_NODES = 1024;
/** How many ranges of one family are excluded. More are widened, which excludes more addresses and never fewer. */
const MAX_EXCEPT = 256;

export function forgeIsolation(
  namespace: string,
  labels: Record<string, string>,
  { peer, prefixes, own }: IsolationFacts,
): NetworkPolicyManifest {
  const samePeer = { namespaceSelector: { matchLabels: { [LABEL_PEER]: peer } } };
  const noPeer = { namespaceSelector: { matchExpressions: [{ key: LABEL_PEER, operator: 'DoesNotExist' }] } };
  const home = formatted(homes(prefixes, own).slice(0, MAX_PREFIXES)).map(block);
  const nodes = formatted(merged(own?.nodes ?? []).slice(0, MAX_NODES)).map(block);
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: ISOLATION_NAME, namespace, labels },
    spec: {
      podSelector: {},
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [samePeer, noPeer, ...home, ...nodes] }],
      egress: [
        { to: [samePeer, ...home] },
        {
          to: [
            {
              namespaceSelector: {
                matchExpressions: [
                  { key: 'kubernetes.io/metadata.name', operator: 'In', values: DNS_NAMESPACES },
                ],
              },
            },
            block(NODE_LOCAL_DNS),
          ],
          ports: DNS_PORTS.flatMap((port) => ['UDP', 'TCP'].map((protocol) => ({ protocol, port }))),
        },
        { to: outside(own) },
      ],
    },
  };
}

/** The peer's prefixes without those that overlap ours. The network never allows such ones; this does not rely on it. */
function homes(prefixes: readonly string[], own: OwnRanges | undefined): Prefix[] {
  const ours = merged([...(own?.inside ?? []), ...(own?.nodes ?? [])]);
  return merged(prefixes).filter((prefix) => !ours.some((other) => overlaps(prefix, other)));
}

const block = (cidr: string): Side => ({ ipBlock: { cidr } });

/** Everywhere outside this cluster. */
const outside = (own: OwnRanges | undefined): Side[] => {
  const { inside = PRIVATE, nodes = [], beside = [] } = own ?? {};
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
    nodes: nodes.flatMap(({ address, others = [] }) => [address, ...others].flatMap(hostPrefix)),
    beside: [...reserved, ...apiServers.flatMap(hostPrefix)],
  };
}

function hostPrefix(text: string): string[] {
  const address = parseAddress(text);
  return address === undefined ? [] : [formatPrefix(prefixOf(address, WIDTHS[address.family]))];
}

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
