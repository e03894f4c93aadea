import { APP_NAME, LABEL_APP_NAME } from '../../api/manifest.ts';
import {
  GATEWAY_CONFIG_MAP,
  type GatewayFacts,
  NETWORK_CONFIG_MAP,
  type OwnNetwork,
  ownNetworkData,
  readGatewayFacts,
  readOwnNetwork,
} from '../../api/own-network.ts';
import { API_SERVERS, apiServersOf } from '../../api/api-servers.ts';
import { configMaps, endpointSlices, nodes } from '../../api/resources.ts';
import { slimNode } from '../../api/slim-node.ts';
import type { ConfigMap, EndpointSlice, Node } from '../../api/wire.ts';
import { applyManifests } from '../../kube/apply.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { Controller, type ControllerMetrics } from '../../kube/controller.ts';
import type { InformerOptions } from '../../kube/informer.ts';
import { Debounce } from '../../lib/debounce.ts';
import { deepEqual } from '../../lib/equality.ts';
import { TributaryError } from '../../lib/errors.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import { formatPrefix, mergePrefixes, parsePrefix } from '../../lib/prefix.ts';
import {
  composeOwn,
  externalConflict,
  type OwnOptions,
  realNode,
  type RealNode,
  reservedOf,
  shortcomings,
  soundNameServers,
  soundOwn,
  soundRoutes,
} from './own-network-data.ts';
import { ServiceRanges } from './service-cidrs.ts';

export interface OwnNetworkOptions
  extends OwnOptions, Pick<InformerOptions<Node>, 'client' | 'clock' | 'log' | 'random'> {
  caches: Caches;
  namespace: string;
  /** CIDRs of Services, where people name them. */
  serviceCidrs: readonly string[];
  metrics?: ControllerMetrics;
}

const KEY = 'own network';
/** Each look is at all nodes: hundreds that come one after the other are looked at together. */
const INTERVAL_MS = 1000;
/** base64 of 32 bytes. */
const PUBLIC_KEY = /^[A-Za-z0-9+/]{43}=$/;

/** Publishes this cluster's end of the network in a ConfigMap, and reads there what the gateway says. */
export class OwnNetworkPublisher {
  readonly #options: OwnNetworkOptions;
  readonly #nodes: Cache<Node>;
  readonly #published: Cache<ConfigMap>;
  readonly #gateway: Cache<ConfigMap>;
  readonly #services: ServiceRanges;
  readonly #apiServers: Cache<EndpointSlice>;
  readonly #controller: Controller;
  readonly #listeners = new Listeners();
  /** Calls back when what is told to peers may have changed. */
  readonly onChange: Listeners['add'] = this.#listeners.add;
  readonly #changes: Debounce;
  #real: RealNode[] | undefined;
  #composed: OwnNetwork | undefined;
  #reserved: readonly string[] | undefined;
  #localRoutes: readonly string[] | undefined;

  constructor(options: OwnNetworkOptions) {
    this.#options = options;
    const { client, caches, clock, log, random, metrics, serviceCidrs } = options;
    const common = { client, clock, log, ...(random && { random }) };
    this.#nodes = caches.of(nodes, { transform: slimNode });
    this.#published = this.#configMap(NETWORK_CONFIG_MAP);
    this.#gateway = this.#configMap(GATEWAY_CONFIG_MAP);
    this.#apiServers = caches.of(endpointSlices, {
      list: { namespace: API_SERVERS.namespace, fieldSelector: `metadata.name=${API_SERVERS.name}` },
      name: 'cache of API servers',
    });
    this.#services = new ServiceRanges({ ...common, given: serviceCidrs });
    this.#controller = new Controller({
      ...common,
      name: KEY,
      concurrency: 1,
      reconcile: async (_key, { signal }) => this.#reconcile(signal),
      ...(metrics && { metrics }),
    });
    this.#changes = new Debounce({ clock, intervalMs: INTERVAL_MS, callsAtOnce: true }, () =>
      this.#controller.add(KEY),
    );
  }

  caches(): Component[] {
    return [this.#nodes, this.#published, this.#gateway, this.#services, this.#apiServers];
  }

  actors(): Component[] {
    const forget = (): void => {
      this.#composed = undefined;
      this.#reserved = undefined;
      this.#localRoutes = undefined;
    };
    const look = (): void => {
      forget();
      this.#controller.add(KEY);
    };
    const wiring = subscribing('own network wiring', () => {
      const ends = [
        this.#nodes.onChange((_key, current, previous) => {
          if (deepEqual(current && realNode(current), previous && realNode(previous))) return;
          this.#real = undefined;
          forget();
          this.#changes.trigger();
        }),
        // Also of what we have written ourselves: while nodes come, that would be the next look at once.
        this.#published.onChange(() => {
          forget();
          this.#changes.trigger();
          this.#listeners.tell();
        }),
        this.#gateway.onChange(() => {
          look();
          this.#listeners.tell();
        }),
        this.#services.onChange(look),
        this.#apiServers.onChange(look),
        () => this.#changes.stop(),
      ];
      look();
      return ends;
    });
    return [wiring, this.#controller];
  }

  /** What is published. Undefined while nothing is, or while no gateway has told its key. */
  get current(): { network: OwnNetwork; facts: GatewayFacts } | undefined {
    const facts = this.#facts();
    const network = this.#stored();
    return facts && network && { network, facts };
  }

  /** Ranges as which no peer may be seen. */
  reserved(): readonly string[] {
    const nameServers = soundNameServers(this.#facts()?.nameServers);
    this.#reserved ??= reservedOf(this.#compose(), this.#services.cidrs, this.#options, nameServers);
    return this.#reserved;
  }

  /** Networks beside ours, as the gateway tells them. No peer gets a new view in them. */
  localRoutes(): readonly string[] {
    this.#localRoutes ??= soundRoutes(this.#facts()?.localRoutes);
    return this.#localRoutes;
  }

  #compose(): OwnNetwork {
    this.#real ??= [...this.#nodes.list()].flatMap((node) => realNode(node) ?? []);
    const apiServers = apiServersOf(this.#apiServers.get(`${API_SERVERS.namespace}/${API_SERVERS.name}`));
    this.#composed ??= composeOwn({ nodes: this.#real, apiServers }, this.#options, this.#stored());
    return this.#composed;
  }

  #stored(): OwnNetwork | undefined {
    return soundOwn(readOwnNetwork(this.#published.get(this.#key(NETWORK_CONFIG_MAP))?.data));
  }

  #facts(): GatewayFacts | undefined {
    const facts = readGatewayFacts(this.#gateway.get(this.#key(GATEWAY_CONFIG_MAP))?.data);
    const isSound = facts !== undefined && PUBLIC_KEY.test(facts.publicKey) && Array.isArray(facts.endpoints);
    return isSound ? facts : undefined;
  }

  async #reconcile(signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#options;
    const own = this.#compose();
    const conflict = externalConflict(own, this.#services.cidrs);
    if (conflict !== undefined) throw new TributaryError('Invalid', conflict);
    const reserved = mergePrefixes([...this.reserved(), ...this.localRoutes()].map(parsePrefix));
    const wanted = {
      ...own,
      reserved: reserved.map(formatPrefix),
      services: [...this.#services.cidrs].toSorted(),
    };
    const stored = this.#published.get(this.#key(NETWORK_CONFIG_MAP));
    if (stored !== undefined && deepEqual(readOwnNetwork(stored.data), wanted)) return;
    const metadata = { name: NETWORK_CONFIG_MAP, namespace, labels: { [LABEL_APP_NAME]: APP_NAME } };
    const data = ownNetworkData(wanted);
    const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data };
    await applyManifests(client, [manifest], { signal });
    if (own.pods.length === 0 && this.#facts() !== undefined) {
      this.#options.log.warn('no node tells the CIDRs of its pods; name them by --pod-cidr');
    }
    for (const problem of shortcomings(own, this.#real ?? [])) {
      this.#options.log.warn('peers do not reach all of this cluster', { problem });
    }
  }

  #key(name: string): string {
    return `${this.#options.namespace}/${name}`;
  }

  #configMap(name: string): Cache<ConfigMap> {
    const { caches, namespace } = this.#options;
    return caches.of(configMaps, {
      list: { namespace, fieldSelector: `metadata.name=${name}` },
      name: `cache of configmap ${name}`,
    });
  }
}
