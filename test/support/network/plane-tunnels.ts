/** What IPAM, the exchange of documents and the role `gateway` would know about the clusters in tests of the data plane. */
import type { OwnNetwork } from '../../../src/api/own-network.ts';
import type {
  AddressPort,
  HomeApiAddress,
  NetworkAccess,
  NetworkTransit,
  PeerView,
  PrefixUse,
  Tunnel,
} from '../../../src/api/tunnel.ts';
import { overlaps, parsePrefix } from '../../../src/lib/prefix.ts';
import type { GatewayPeer } from '../../../src/network/plan/peer.ts';
import { translate } from '../../../src/network/views.ts';

/** One side of a peering. */
export interface Relation {
  views: PeerView[];
  abroad: Set<string>;
  hosted: Set<string>;
  access: NetworkAccess;
  transit: NetworkTransit;
  /** Services of one cluster that the other one uses. */
  offered?: AddressPort[];
  used?: AddressPort[];
  mtu?: number;
  /** Of the pods abroad, those that have a token for the API server. */
  clients?: Set<string>;
  /** Whether pods over there reach the API server of this cluster. */
  apiServer?: boolean;
  /** The peer's pods here may not reach its API server. */
  forbidsHomeApiServer?: boolean;
}

/** The network of one cluster, and how it sees others. */
export class PlaneSide {
  /** A ClusterID. */
  readonly id: string;
  readonly network: OwnNetwork;
  readonly publicKey: string;
  /** `host:port`. */
  readonly endpoint: string;
  readonly relations: Map<PlaneSide, Relation> = new Map();
  /** The next view, in blocks of /18. All clusters begin with the same block, so that one address has several meanings. */
  #next = 0;

  constructor(id: string, network: OwnNetwork, publicKey: string, endpoint: string) {
    this.id = id;
    this.network = network;
    this.publicKey = publicKey;
    this.endpoint = endpoint;
  }

  /** The second byte of the next view, of 64 to 127. */
  viewsFrom(byte: number): void {
    this.#next = (byte - 64) * 4;
  }

  relation(peer: PlaneSide): Relation {
    const relation = this.relations.get(peer);
    if (relation === undefined) throw new Error(`${this.id} and ${peer.id} are not peered`);
    return relation;
  }

  /** The address at which we see an address of the peer. */
  sees(peer: PlaneSide, address: string): string {
    const seen = translate(this.relation(peer).views, address);
    if (seen === undefined) throw new Error(`${this.id} has no view of ${address} of ${peer.id}`);
    return seen;
  }

  /** `as`: instead of what an allocator would choose. */
  see(peer: PlaneSide, use: PrefixUse, prefix: string, as: string = this.#choose(prefix)): void {
    this.relation(peer).views.push({ use, prefix, as });
  }

  #choose(prefix: string): string {
    const taken = [
      ...this.network.pods,
      this.network.external,
      ...(this.network.reserved ?? []),
      ...[...this.relations.values()].flatMap(({ views }) => views.map(({ as }) => as)),
    ].map(parsePrefix);
    const wanted = parsePrefix(prefix);
    if (!taken.some((range) => overlaps(range, wanted))) return prefix;
    const blocks = wanted.length <= 16 ? 4 : 1;
    const block = Math.ceil(this.#next / blocks) * blocks;
    this.#next = block + blocks;
    return `100.${64 + (block >> 2)}.${(block & 3) << 6}.0/${wanted.length}`;
  }

  peers(): GatewayPeer[] {
    return [...this.relations].map(([peer, relation]) => ({
      tunnel: tunnelOf(this, peer),
      endpoint: peer.endpoint,
      ...(relation.mtu !== undefined && { mtu: relation.mtu }),
      abroad: [...relation.abroad],
      clients: [...(relation.clients ?? [])],
      hosted: [...relation.hosted],
    }));
  }
}

function tunnelOf(side: PlaneSide, peer: PlaneSide): Tunnel {
  const { views, access, transit, offered, used, forbidsHomeApiServer } = side.relation(peer);
  return {
    apiVersion: 'tributary.dev/v1alpha1',
    kind: 'Tunnel',
    metadata: {
      name: peer.id,
      uid: peer.id,
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: {
      clusterID: peer.id,
      peer: {
        publicKey: peer.publicKey,
        endpoints: [peer.endpoint],
        pods: peer.network.pods,
        external: [peer.network.external],
        ...placeOf(peer, peer.relation(side)),
      },
      seenAs: peer.relation(side).views.map(({ prefix, as }) => ({ prefix, as })),
      access,
      transit,
      ...(offered && { offered }),
      ...(used && { used }),
      ...placeOf(side, side.relation(peer)),
      ...(forbidsHomeApiServer === true && { homeApiServer: 'Forbidden' }),
    },
    status: { views },
  };
}

function placeOf({ network }: PlaneSide, { apiServer }: Relation): { apiServer?: HomeApiAddress } {
  if (apiServer !== true || network.apiServer === undefined) return {};
  const { address, port } = network.apiServer;
  return { apiServer: { address, port } };
}

/** Peers two clusters; each sees the other's pods and external range. */
export function join(one: PlaneSide, other: PlaneSide): void {
  const relation = (): Relation => ({
    views: [],
    abroad: new Set(),
    hosted: new Set(),
    access: 'OffloadedPods',
    transit: 'OffloadedPods',
  });
  one.relations.set(other, relation());
  other.relations.set(one, relation());
  for (const [viewer, owner] of [
    [one, other],
    [other, one],
  ] as const) {
    for (const prefix of owner.network.pods) viewer.see(owner, 'Pods', prefix);
    viewer.see(owner, 'External', owner.network.external);
  }
}

/** `home` exports to each of the two its view of the other one's pods. */
export function joinThrough(home: PlaneSide, one: PlaneSide, other: PlaneSide): void {
  for (const [viewer, owner] of [
    [one, other],
    [other, one],
  ] as const) {
    const pods = home.relation(owner).views.filter(({ use }) => use === 'Pods');
    for (const { as } of pods) viewer.see(home, 'Transit', as);
  }
}

/** A pod of the home's runs at the provider under this address of the provider's. */
export function offload(home: PlaneSide, provider: PlaneSide, address: string): void {
  home.relation(provider).abroad.add(home.sees(provider, address));
  provider.relation(home).hosted.add(address);
}
