/** What the role knows of its cluster, gathered for the page; from its caches, so that no viewer costs a watch of these. */
import { advertisements } from '../api/advertisement.ts';
import { clusterModes } from '../api/cluster-mode.ts';
import { foreignClusters } from '../api/foreign-cluster.ts';
import { namespaceOffloadings } from '../api/namespace-offloading.ts';
import { peeringRequests } from '../api/peering-request.ts';
import { namespaces, type ResourceType } from '../api/resources.ts';
import { tunnels } from '../api/tunnel.ts';
import { virtualNodes } from '../api/virtual-node.ts';
import type { KubeObject } from '../api/wire.ts';
import type { Cache } from '../kube/cache.ts';
import type { Caches } from '../kube/caches.ts';
import type { Clock } from '../lib/clock.ts';
import { Debounce } from '../lib/debounce.ts';
import type { Component } from '../lib/lifecycle.ts';
import { Listeners } from '../lib/listeners.ts';
import { countPods, type Facts } from './facts.ts';

/** A pod, of which only its place counts. */
export interface PlacedPod extends KubeObject {
  readonly node: string;
}

export interface BoardOptions {
  caches: Caches;
  clock: Clock;
  own: Facts['own'];
  /** Of all live pods; somebody else starts it. */
  pods: Pick<Cache<PlacedPod>, 'list' | 'onChange'>;
}

/** Changes are told at most four times a second, however many there are. */
const TELL_MS = 250;

export class Board implements Component {
  readonly name = 'dashboard facts';
  readonly #options: BoardOptions;
  readonly #caches: Component[] = [];
  readonly #read: () => Facts;
  readonly #listeners = new Listeners();
  readonly onChange: Listeners['add'] = this.#listeners.add;
  readonly #changes: Debounce;
  #facts: Facts | undefined;
  #forget: () => void = () => undefined;

  constructor(options: BoardOptions) {
    this.#options = options;
    this.#changes = new Debounce({ clock: options.clock, intervalMs: TELL_MS, callsAtOnce: true }, () => {
      this.#facts = undefined;
      this.#listeners.tell();
    });
    const clusters = this.#cache(foreignClusters);
    const requests = this.#cache(peeringRequests);
    const offers = this.#cache(advertisements);
    const paths = this.#cache(tunnels);
    const nodes = this.#cache(virtualNodes);
    const offloadings = this.#cache(namespaceOffloadings);
    const modes = this.#cache(clusterModes);
    const names = this.#cache(namespaces);
    this.#read = () => ({
      own: options.own,
      clusters: [...clusters.list()],
      requests: [...requests.list()],
      offers: [...offers.list()],
      tunnels: [...paths.list()],
      virtualNodes: [...nodes.list()],
      offloadings: [...offloadings.list()],
      modes: [...modes.list()],
      namespaces: Array.from(names.list(), ({ metadata }) => metadata.name),
      pods: countPods(options.pods.list()),
    });
  }

  /** The same object until something changes. */
  facts(): Facts {
    this.#facts ??= this.#read();
    return this.#facts;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#forget = this.#options.pods.onChange(() => this.#changes.trigger());
    await Promise.all(this.#caches.map(async (cache) => cache.start?.(signal)));
  }

  async stop(): Promise<void> {
    this.#forget();
    this.#changes.stop();
    await Promise.all(this.#caches.map(async (cache) => cache.stop?.()));
  }

  #cache<T extends KubeObject>(type: ResourceType<T>): Cache<T> {
    const cache = this.#options.caches.of(type, { name: `dashboard cache of ${type.plural}` });
    cache.onChange(() => this.#changes.trigger());
    this.#caches.push(cache);
    return cache;
  }
}
