import {
  GATEWAY_CONFIG_MAP,
  GATEWAY_LEASE,
  NETWORK_CONFIG_MAP,
  readGatewayFacts,
  readOwnNetwork,
} from '../../api/own-network.ts';
import { configMaps, leases } from '../../api/resources.ts';
import { type Tunnel, tunnels } from '../../api/tunnel.ts';
import type { ConfigMap, Lease } from '../../api/wire.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { Controller, type ControllerMetrics, type ReconcileResult } from '../../kube/controller.ts';
import type { Basics } from '../../lib/basics.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { Subscriptions } from '../../lib/listeners.ts';
import type { HostConfig, HostNetwork, HostProblem } from '../host/host-config.ts';
import { nodePlan } from '../plan/node.ts';
import { differInNumbersOnly } from '../tunnel-numbers.ts';

interface NodeOptions extends Basics {
  caches: Caches;
  host: HostNetwork;
  metrics?: ControllerMetrics;
  namespace: string;
  nodeName: string;
  link: string;
  vxlanLink: string;
  mtu: number;
}

const RESYNC_MS = 30_000;
const PROBLEM_MS = 1000;
/** How many problems of the host are logged at once. */
const MOST_LOGGED = 16;

type Key = 'host' | 'fence';

interface FollowedLease {
  readonly cache: Cache<Lease>;
  readonly end: () => Promise<void>;
}

/**
 * The network of one node: its way to the active gateway and back. Stopping leaves the host as it is.
 *
 *     host   Tunnels, addresses, where the gateway is ── plan ── host.set; again after any change, by us or by others
 *     fence  it is elsewhere ── what a gateway has left on this host is removed
 *
 * Where it is, the gateway tells in its ConfigMap. A watch of its Lease would tell each node of each renewal, twenty-four times a minute.
 */
export class NodeNetwork {
  readonly #options: NodeOptions;
  readonly #tunnels: Cache<Tunnel>;
  readonly #network: Cache<ConfigMap>;
  readonly #told: Cache<ConfigMap>;
  /** Followed only while the gateway tells nothing else: one of an earlier version, or none yet. */
  #lease: FollowedLease | undefined;
  readonly #controller: Controller;
  #gateway: string | undefined;
  #since = -Infinity;
  #cleanedFor: string | undefined;
  #problems: readonly HostProblem[] = [];
  readonly #subscriptions = new Subscriptions();

  constructor(options: NodeOptions) {
    const { caches, clock, log, namespace, metrics } = options;
    this.#options = options;
    this.#tunnels = caches.of(tunnels);
    this.#network = caches.of(configMaps, named(namespace, NETWORK_CONFIG_MAP));
    this.#told = caches.of(configMaps, named(namespace, GATEWAY_CONFIG_MAP));
    this.#controller = new Controller({
      name: 'node network',
      concurrency: 2,
      clock,
      log,
      ...(metrics && { metrics }),
      reconcile: async (key, { signal }) => (key === 'fence' ? this.#fence() : this.#setHost(signal)),
    });
  }

  /** In the order of their start. */
  components(): Component[] {
    const entry: Component = {
      name: 'node wiring',
      start: () => this.#wire(),
      stop: async () => {
        this.#subscriptions.end();
        await this.#lease?.end();
      },
    };
    return [this.#tunnels, this.#network, this.#told, this.#controller, entry];
  }

  #add(key: Key): void {
    this.#controller.add(key);
  }

  #wire(): void {
    const wake = (): void => this.#add('host');
    this.#subscriptions.add(
      this.#tunnels.onChange((_, current, previous) => {
        if (!differInNumbersOnly(current, previous)) wake();
      }),
      this.#network.onChange(wake),
      this.#told.onChange(() => this.#follow()),
      this.#options.host.onChange(wake),
    );
    this.#follow();
    wake();
  }

  #follow(): void {
    const { namespace } = this.#options;
    const told = readGatewayFacts(this.#told.get(`${namespace}/${GATEWAY_CONFIG_MAP}`)?.data)?.node;
    if (told === undefined) {
      const { cache } = (this.#lease ??= this.#followLease());
      this.#goBy(gatewayNodeOf(cache.get(`${namespace}/${GATEWAY_LEASE}`), this.#gateway));
      return;
    }
    void this.#lease?.end();
    this.#lease = undefined;
    this.#goBy(told);
  }

  #followLease(): FollowedLease {
    const { caches, namespace } = this.#options;
    const cache = caches.of(leases, named(namespace, GATEWAY_LEASE));
    const end = cache.onChange(() => this.#follow());
    // Rejects when it is stopped before its first list.
    cache.start(new AbortController().signal).catch(() => undefined);
    return {
      cache,
      end: async () => {
        end();
        await cache.stop();
      },
    };
  }

  #goBy(holder: string | undefined): void {
    if (holder === this.#gateway) return;
    this.#options.log.info('the gateway is active elsewhere', { node: holder, before: this.#gateway });
    this.#gateway = holder;
    this.#since = this.#options.clock.monotonic();
    this.#cleanedFor = undefined;
    this.#add('host');
    this.#add('fence');
  }

  async #fence(): Promise<ReconcileResult | void> {
    const { clock, host, nodeName, log } = this.#options;
    const holder = this.#gateway;
    const waitMs = fenceIn({
      now: clock.monotonic(),
      nodeName,
      holder,
      since: this.#since,
      cleanedFor: this.#cleanedFor,
    });
    if (waitMs === undefined) return;
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await host.cleanUp('gateway');
    this.#cleanedFor = holder;
    log.info('nothing of a gateway is left on this host', { holder });
  }

  /** What the host should be now. Undefined: not known yet. */
  desired(): HostConfig | undefined {
    const { namespace, nodeName, link, vxlanLink, mtu } = this.#options;
    const network = readOwnNetwork(this.#network.get(`${namespace}/${NETWORK_CONFIG_MAP}`)?.data);
    if (network === undefined) return undefined;
    const live = [...this.#tunnels.list()]
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .toSorted(({ metadata: one }, { metadata: other }) => (one.name < other.name ? -1 : 1));
    return nodePlan({
      network,
      nodeName,
      link,
      vxlanLink,
      mtu,
      ...(this.#gateway !== undefined && { gatewayNode: this.#gateway }),
      tunnels: live.map((tunnel) => {
        const probed = tunnel.status?.connection?.mtu;
        return { tunnel, ...(probed !== undefined && { mtu: Math.min(probed, mtu) }) };
      }),
    });
  }

  async #setHost(signal: AbortSignal): Promise<ReconcileResult> {
    const desired = this.desired();
    if (desired === undefined) return { requeueAfterMs: RESYNC_MS };
    const { host, log } = this.#options;
    const { changes, problems } = await host.set(desired, signal);
    if (changes > 0) log.info('host network changed', { changes });
    const told = new Set(this.#problems.map(({ message }) => message));
    const news = problems.filter(({ message }) => !told.has(message));
    for (const { reason, message } of news.slice(0, MOST_LOGGED)) {
      log.warn('host network not as wanted', { reason, problem: message });
    }
    this.#problems = problems;
    return { requeueAfterMs: problems.length > 0 ? PROBLEM_MS : RESYNC_MS };
  }
}

const named = (namespace: string, name: string): { list: { namespace: string; fieldSelector: string } } => ({
  list: { namespace, fieldSelector: `metadata.name=${name}` },
});

/** What a node goes by. Pure. */

/**
 * The node of the active gateway. An empty holder means that the Lease was given up: the former gateway goes on forwarding until
 * another one has taken the Lease.
 */
export function gatewayNodeOf(lease: Lease | undefined, before: string | undefined): string | undefined {
  const holder = lease?.spec?.holderIdentity;
  return holder === undefined || holder === '' ? before : holder;
}

interface FenceFacts {
  /** Monotonic. */
  now: number;
  nodeName: string;
  holder: string | undefined;
  /** Since when that node is known to hold the Lease. */
  since: number;
  /** The holder of the Lease when this host was last cleaned. */
  cleanedFor: string | undefined;
}

/** How long a gateway process that still lives has to clean up itself. It is short, since until then two hosts have one key. */
export const FENCE_MS = 300;

/** In how many milliseconds what a gateway has left on this host is to be removed. Undefined: not at all. */
export function fenceIn({ now, nodeName, holder, since, cleanedFor }: FenceFacts): number | undefined {
  if (holder === undefined || holder === nodeName || holder === cleanedFor) return undefined;
  return Math.max(0, since + FENCE_MS - now);
}
