/** Clusters as far as the exchange goes: an API server each, their nodes, a pretended gateway, and links between them. */
import {
  type ForeignClusterNetwork,
  foreignClusters,
  type PeeringPhase,
} from '../../../../../src/api/foreign-cluster.ts';
import {
  GATEWAY_CONFIG_MAP,
  gatewayFactsData,
  type OwnNetwork,
  readOwnNetwork,
} from '../../../../../src/api/own-network.ts';
import { configMaps, nodes, serviceCidrs } from '../../../../../src/api/resources.ts';
import { type Tunnel, tunnels } from '../../../../../src/api/tunnel.ts';
import { Caches } from '../../../../../src/kube/caches.ts';
import type { KubeClient } from '../../../../../src/kube/client.ts';
import { Lifecycle } from '../../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../../src/lib/log.ts';
import type { NetworkDocument } from '../../../../../src/api/peer-documents.ts';
import { Exchange, type ExchangeOptions } from '../../../../../src/network/exchange/exchange.ts';
import { FakeApi } from '../../../../support/fake-api/fake-api.ts';
import type { AnyObject } from '../../../../support/fake-api/storage.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';

/** Of all clusters of a test file. */
export const clock: FakeClock = new FakeClock();

export const NAMESPACE = 'tributary-system';
const SERVICES = '10.96.0.0/16';

/** base64 of 32 bytes, another one for each letter. */
export const keyOf = (letter: string): string => Buffer.alloc(32, letter).toString('base64');

export interface Peering {
  outgoing?: PeeringPhase;
  incoming?: PeeringPhase;
  network?: ForeignClusterNetwork;
}

export class World {
  readonly id: string;
  readonly letter: string;
  readonly api: FakeApi;
  /** A person's. */
  readonly client: KubeClient;
  readonly links: Set<World> = new Set();
  /** All that was ever said. */
  readonly told: { to: string; network: NetworkDocument | null }[] = [];
  #options: Partial<ExchangeOptions>;
  #exchange: Exchange | undefined;
  #lifecycle: Lifecycle | undefined;

  private constructor(letter: string, api: FakeApi, options: Partial<ExchangeOptions>) {
    this.letter = letter;
    this.id = letter.repeat(26);
    this.api = api;
    this.client = api.client();
    this.#options = options;
  }

  static async up(
    letter: string,
    pods: string,
    options: Partial<ExchangeOptions> & { gateway?: boolean } = {},
  ): Promise<World> {
    const api = new FakeApi({ clock, types: [tunnels, foreignClusters] });
    const { gateway = true, ...rest } = options;
    const world = new World(letter, api, rest);
    api.seed(serviceCidrs, { metadata: { name: 'kubernetes' }, spec: { cidrs: [SERVICES] } });
    world.node('node-1', pods, '172.30.0.11');
    if (gateway) world.gateway();
    await world.start();
    return world;
  }

  get exchange(): Exchange {
    if (this.#exchange === undefined) throw new Error('not running');
    return this.#exchange;
  }

  node(name: string, podCIDR: string, address: string): void {
    this.api.seed(nodes, {
      metadata: { name },
      spec: { podCIDR, podCIDRs: [podCIDR] },
      status: { addresses: [{ type: 'InternalIP', address }] },
    });
  }

  /** As if a gateway had run. */
  gateway(publicKey: string = keyOf(this.letter)): void {
    this.api.seed(configMaps, {
      metadata: { name: GATEWAY_CONFIG_MAP, namespace: NAMESPACE },
      data: gatewayFactsData({ publicKey, endpoints: ['172.30.0.11:51820'] }),
    });
  }

  /** The gateway has made itself another key. */
  rekey(publicKey: string, endpoints: string[] = ['172.30.0.11:51820'], localRoutes: string[] = []): void {
    const found = this.configMap(GATEWAY_CONFIG_MAP);
    if (found === undefined) throw new Error('no gateway has run');
    const data = gatewayFactsData({ publicKey, endpoints, localRoutes });
    this.api.storage.update('configmaps', { ...found, data });
  }

  async start(client: KubeClient = this.client): Promise<void> {
    const exchange = new Exchange({
      client,
      caches: new Caches({ client, clock, log: silentLogger }),
      clock,
      log: silentLogger,
      namespace: NAMESPACE,
      own: this.id,
      isLinked: (clusterID) => [...this.links].some(({ id }) => id === clusterID),
      podCidrs: [],
      serviceCidrs: [],
      externalCidr: '10.70.0.0/20',
      viewPools: ['100.64.0.0/10'],
      reservedCidrs: [],
      identityViews: true,
      presharedKeys: false,
      ...this.#options,
    });
    this.#lifecycle = new Lifecycle(exchange.components(), {
      clock,
      log: silentLogger,
      stopDeadlineMs: 5_000,
    });
    await clock.during('the exchange starts', this.#lifecycle.start(new AbortController().signal));
    this.#exchange = exchange;
    exchange.onChange(() => this.speak());
    // New links on both sides.
    for (const other of this.links) {
      this.#said.delete(other.id);
      other.#said.delete(this.id);
      other.speak();
    }
    this.speak();
  }

  /** Ends it; what is stored stays. */
  async halt(): Promise<void> {
    if (this.#lifecycle) await clock.during('the exchange stops', this.#lifecycle.stop());
    this.#exchange = undefined;
  }

  /** Another version, or other options: what is stored stays. */
  async restart(options: Partial<ExchangeOptions>): Promise<void> {
    await this.halt();
    this.#options = { ...this.#options, ...options };
    await this.start();
  }

  async down(): Promise<void> {
    await this.halt();
    await this.client.close();
    await this.api.stop();
  }

  readonly #said = new Map<string, string>();

  /** What each side has to say is handed to the other, as the links do. */
  speak(): void {
    if (this.#exchange === undefined) return;
    for (const other of this.links) {
      if (other.#exchange === undefined) continue;
      const { network = null } = this.#exchange.documents(other.id);
      const text = JSON.stringify(network);
      if (this.#said.get(other.id) === text) continue;
      this.#said.set(other.id, text);
      this.told.push({ to: other.id, network: JSON.parse(text) as NetworkDocument | null });
      other.exchange
        .received({ clusterID: this.id }, { network: JSON.parse(text) as NetworkDocument | null })
        // Of trouble of the receiver's the link tries again.
        .catch(() => this.#said.delete(other.id));
    }
  }

  /** As peering would have it. */
  peer(other: World, { outgoing = 'None', incoming = 'None', network }: Peering): void {
    const found = this.api.storage.get('foreignclusters.tributary.dev', other.id);
    const status = { clusterID: other.id, outgoing: { phase: outgoing }, incoming: { phase: incoming } };
    const spec = { ...(network && { network }) };
    if (found === undefined) {
      this.api.seed(foreignClusters, { metadata: { name: other.id }, spec, status });
    } else {
      this.api.storage.update('foreignclusters.tributary.dev', { ...found, spec, status });
    }
  }

  tunnel(other: World): Tunnel | undefined {
    return this.api.storage.get('tunnels.tributary.dev', other.id) as unknown as Tunnel | undefined;
  }

  get tunnels(): AnyObject[] {
    return this.api.storage.list('tunnels.tributary.dev');
  }

  configMap(name: string): AnyObject | undefined {
    return this.api.storage.get('configmaps', `${NAMESPACE}/${name}`);
  }

  get own(): OwnNetwork | undefined {
    return readOwnNetwork(this.configMap('tributary-network')?.['data'] as Record<string, string>);
  }

  secret(name: string): Record<string, string> {
    const data = (this.api.storage.get('secrets', `${NAMESPACE}/${name}`)?.['data'] ?? {}) as Record<
      string,
      string
    >;
    return Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]),
    );
  }

  /** As what this cluster sees a prefix of the other. */
  sees(other: World, prefix: string): string | undefined {
    return this.tunnel(other)?.status?.views?.find((view) => view.prefix === prefix)?.as;
  }

  /** As what the other has said that it sees a prefix of ours. */
  seenBy(other: World, prefix: string): string | undefined {
    return this.tunnel(other)?.spec.seenAs?.find((view) => view.prefix === prefix)?.as;
  }
}

export function link(one: World, other: World): void {
  one.links.add(other);
  other.links.add(one);
  one.speak();
  other.speak();
}

/** `consumer` uses `provider`, and there is a link. */
export function peered(consumer: World, provider: World, network: ForeignClusterNetwork = {}): void {
  consumer.peer(provider, { outgoing: 'Established', network });
  provider.peer(consumer, { incoming: 'Established' });
  link(consumer, provider);
}

export function unpeered(one: World, other: World): void {
  one.peer(other, {});
  other.peer(one, {});
}

/** Each sees all prefixes of the other, and knows how it is seen. */
export const areJoined = (one: World, other: World): boolean => isSeen(one, other) && isSeen(other, one);

function isSeen(one: World, other: World): boolean {
  if (other.own === undefined) return false;
  return [...other.own.pods, other.own.external].every((prefix) => {
    const as = one.sees(other, prefix);
    return as !== undefined && as === other.seenBy(one, prefix);
  });
}

export async function joined(one: World, other: World): Promise<void> {
  await clock.until(`${one.letter} and ${other.letter} are joined`, () => areJoined(one, other));
}
