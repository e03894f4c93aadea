import { LABEL_PROVIDER } from '../../api/names.ts';
import { pods } from '../../api/resources.ts';
import type { VirtualNode } from '../../api/virtual-node.ts';
import type { Pod } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import { Informer, type InformerOptions } from '../../kube/informer.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { slimPodWithTokens } from './caches.ts';
import { type AddressesByPeer, addressesOf, isOnNetwork } from './peers.ts';

interface Watched {
  clusterID: string;
  cache: Informer<Pod>;
}

export interface AbroadPodsOptions extends Pick<InformerOptions<Pod>, 'client' | 'clock' | 'log'> {
  virtualNodes: Pick<Cache<VirtualNode>, 'list' | 'onChange'>;
  onChange: () => void;
}

/**
 * Our pods that run at peers, in one cache for each virtual node. The API server indexes pods by their node, and in a large cluster
 * all pods would be many times as many.
 */
export class AbroadPods implements Component {
  readonly name = 'offloaded pods';
  readonly #options: AbroadPodsOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #abort = new AbortController();
  #unsubscribe: () => void = () => undefined;
  /** Caches that are being stopped. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: AbroadPodsOptions) {
    this.#options = options;
  }

  /** Resolves when all pods are known: a plan without them would cut them off. */
  async start(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#abort.abort(signal.reason), { once: true });
    this.#unsubscribe = this.#options.virtualNodes.onChange(() => this.#follow());
    await Promise.all(this.#follow());
  }

  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#abort.abort(new Error('stopped'));
    for (const { cache } of this.#watched.values()) this.#end(cache);
    this.#watched.clear();
    await Promise.all(this.#ending);
  }

  /** Addresses of those pods that are selected; default: of all. */
  addresses(isSelected: (pod: Pod) => boolean = () => true): AddressesByPeer {
    const byPeer = new Map<string, string[]>();
    for (const { clusterID, cache } of this.#watched.values()) {
      const addresses = byPeer.get(clusterID) ?? [];
      for (const pod of cache.list()) {
        if (isOnNetwork(pod) && isSelected(pod)) addresses.push(...addressesOf(pod));
      }
      byPeer.set(clusterID, addresses);
    }
    return byPeer;
  }

  isVirtual(nodeName: string): boolean {
    return this.#watched.has(nodeName);
  }

  /** A cache for each virtual node that there is now; resolves when the new ones are filled. */
  #follow(): Promise<void>[] {
    const wanted = new Map([...this.#options.virtualNodes.list()].flatMap(nodeOf));
    for (const [nodeName, { clusterID, cache }] of this.#watched) {
      if (wanted.get(nodeName) === clusterID) continue;
      this.#watched.delete(nodeName);
      this.#end(cache);
    }
    const begun: Promise<void>[] = [];
    for (const [nodeName, clusterID] of wanted) {
      if (this.#watched.has(nodeName)) continue;
      const cache = this.#cacheOf(nodeName);
      this.#watched.set(nodeName, { clusterID, cache });
      begun.push(this.#begin(cache));
    }
    this.#options.onChange();
    return begun;
  }

  #cacheOf(nodeName: string): Informer<Pod> {
    const { client, clock, log, onChange } = this.#options;
    const list = { fieldSelector: `spec.nodeName=${nodeName}` };
    const name = `informer pods on ${nodeName}`;
    const transform = slimPodWithTokens;
    const cache = new Informer<Pod>({ client, type: pods, list, clock, log, transform, name });
    cache.onChange(onChange);
    return cache;
  }

  async #begin(cache: Informer<Pod>): Promise<void> {
    try {
      await cache.start(this.#abort.signal);
    } catch (error) {
      // It was stopped before it was filled.
      this.#options.log.debug('cache not filled', { cache: cache.name, error: errorMessage(error) });
    }
  }

  #end(cache: Informer<Pod>): void {
    const ending = cache.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

function nodeOf({ metadata, spec }: VirtualNode): [string, string][] {
  const clusterID = metadata.labels?.[LABEL_PROVIDER];
  return clusterID === undefined ? [] : [[spec.nodeName ?? metadata.name, clusterID]];
}
