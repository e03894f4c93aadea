import { NETWORK_CONFIG_MAP, readOwnNetwork } from '../../api/own-network.ts';
import { pods } from '../../api/resources.ts';
import type { Pod } from '../../api/wire.ts';
import { Informer, type InformerOptions } from '../../kube/informer.ts';
import { Debounce } from '../../lib/debounce.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Subscriptions } from '../../lib/listeners.ts';
import { formatAddress, parseAddress } from '../../lib/prefix.ts';
import { differInNumbersOnly } from '../tunnel-numbers.ts';
import type { GatewayCaches } from './caches.ts';
import { addressesOf, isOnNetwork, viewsOf } from './peers.ts';
import { type Places, placesOf, wayOf } from './stray-address.ts';

/** Routes to single addresses. Each look at the host reads all of them. */
export const MOST_STRAYS = 10_000;
/** For so long the host stays as it is until all pods are known. It must not stay so for ever where they cannot be read. */
const PATIENCE_MS = 30_000;
/** Least time between two looks at the host: with thousands of routes each takes a tenth of a second. */
const CHANGE_MS = 1000;
const LIST = { fieldSelector: 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed' };

export interface StrayPodsOptions extends Pick<InformerOptions<Pod>, 'client' | 'clock' | 'log'> {
  caches: Pick<GatewayCaches, 'network' | 'tunnels' | 'one' | 'liveTunnels'>;
  isVirtual: (nodeName: string) => boolean;
  onChange: () => void;
}

/**
 * Pods whose addresses do not lie in the CIDRs of their nodes: some CNIs do not look at these. Of all pods that are bound to nodes it
 * keeps where each address is, since another pod that has the same address is a reason to trust neither. It watches pods only while
 * there are both a tunnel and another node.
 */
export class StrayPods implements Component {
  readonly name = 'pods of all nodes';
  readonly #options: StrayPodsOptions;
  readonly #subscriptions = new Subscriptions();
  readonly #changed: Debounce;
  readonly #abort = new AbortController();
  /** Caches that are being stopped. */
  readonly #ending = new Set<Promise<void>>();
  #cache: Informer<Pod> | undefined;
  /** Monotonic. */
  #begunAt = 0;
  #places: Places | undefined;
  #ways = new Map<string, string>();
  /** What is told of them; undefined: not made yet. */
  #told: ReadonlyMap<string, string> | undefined;
  #isWarned = false;

  constructor(options: StrayPodsOptions) {
    this.#options = options;
    const { clock, onChange } = options;
    this.#changed = new Debounce({ clock, intervalMs: CHANGE_MS, callsAtOnce: true }, onChange);
  }

  /** Does not wait for the pods: a gateway leads meanwhile, and leaves its host as it is. See `isKnown`. */
  start(signal: AbortSignal): void {
    signal.addEventListener('abort', () => this.#abort.abort(signal.reason), { once: true });
    const { network, tunnels } = this.#options.caches;
    this.#subscriptions.add(
      network.onChange(() => this.#follow()),
      tunnels.onChange((_, current, previous) => {
        if (!differInNumbersOnly(current, previous)) this.#follow();
      }),
    );
    this.#follow();
  }

  async stop(): Promise<void> {
    this.#subscriptions.end();
    this.#changed.stop();
    this.#abort.abort(new Error('stopped'));
    this.#end();
    await Promise.all(this.#ending);
  }

  /** Whether a plan can be made: without these routes it would cut pods off. */
  get isKnown(): boolean {
    const cache = this.#cache;
    if (cache === undefined || cache.synced) return true;
    return this.#options.clock.monotonic() - this.#begunAt >= PATIENCE_MS;
  }

  /** By address: the name of the node to which its packets go. Of too many, the first in the order of their texts. */
  get ways(): ReadonlyMap<string, string> {
    if (this.#cache?.synced !== true) return new Map();
    this.#told ??= this.#bounded();
    return this.#told;
  }

  #bounded(): ReadonlyMap<string, string> {
    const { size } = this.#ways;
    if (size <= MOST_STRAYS) return this.#ways;
    if (!this.#isWarned) {
      const message = 'too many pods have addresses out of the CIDRs of their nodes: peers do not reach some';
      this.#options.log.warn(message, { addresses: size, most: MOST_STRAYS });
      this.#isWarned = true;
    }
    return new Map([...this.#ways].toSorted(([a], [b]) => (a < b ? -1 : 1)).slice(0, MOST_STRAYS));
  }

  #follow(): void {
    const { caches } = this.#options;
    const network = readOwnNetwork(caches.one(caches.network, NETWORK_CONFIG_MAP)?.data);
    const tunnels = caches.liveTunnels();
    if (network === undefined || network.nodes.length < 2 || tunnels.length === 0) {
      this.#places = undefined;
      this.#end();
      return;
    }
    this.#places = placesOf(network, viewsOf(tunnels));
    if (this.#cache === undefined) this.#begin();
    else if (this.#cache.synced) this.#judge(this.#cache.valuesOf('address'));
  }

  #begin(): void {
    const { client, clock, log, onChange } = this.#options;
    const cache = new Informer<Pod>({
      client,
      type: pods,
      list: LIST,
      clock,
      log,
      transform: (pod) => this.#slim(pod),
      indexes: { address: addressesOf },
      name: 'informer pods of all nodes',
    });
    cache.onChange((_, current, previous) => {
      if (cache !== this.#cache) return;
      this.#judge([current, previous].flatMap((pod) => (pod === undefined ? [] : addressesOf(pod))));
    });
    this.#cache = cache;
    this.#begunAt = clock.monotonic();
    cache.start(this.#abort.signal).then(onChange, (error: unknown) => {
      // It was stopped before it was filled.
      log.debug('cache not filled', { cache: cache.name, error: errorMessage(error) });
    });
  }

  #end(): void {
    const cache = this.#cache;
    if (cache === undefined) return;
    this.#cache = undefined;
    this.#ways = new Map();
    this.#told = undefined;
    const ending = cache.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }

  /** Decides about these addresses anew. Told is only what changes a route: of thousands of changes of pods few do. */
  #judge(addresses: Iterable<string>): void {
    const [cache, places] = [this.#cache, this.#places];
    if (cache === undefined || places === undefined) return;
    let isChanged = false;
    for (const address of addresses) {
      const claimed = cache.byIndex('address', address).map(({ spec }) => spec?.nodeName ?? '');
      const way = wayOf(address, claimed, places);
      if (way === this.#ways.get(address)) continue;
      if (way === undefined) this.#ways.delete(address);
      else this.#ways.set(address, way);
      isChanged = true;
    }
    if (!isChanged) return;
    this.#told = undefined;
    if (cache.synced) this.#changed.trigger();
  }

  /** Keeps only what tells where each address is. */
  #slim(pod: Pod): Pod | undefined {
    const { metadata, spec } = pod;
    const addresses = isOnNetwork(pod) ? addressesOf(pod).flatMap((text) => parseAddress(text) ?? []) : [];
    if (addresses.length === 0 || this.#options.isVirtual(spec?.nodeName ?? '')) return undefined;
    const { name, namespace, uid, resourceVersion } = metadata;
    const slim = {
      metadata: { name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) },
      spec: { nodeName: spec?.nodeName },
      status: { podIPs: addresses.map((address) => ({ ip: formatAddress(address) })) },
    };
    return slim as Pod;
  }
}
