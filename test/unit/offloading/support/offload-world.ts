import { LABEL_PROVIDER } from '../../../../src/api/names.ts';
import {
  type NamespaceMappingState,
  type NamespaceOffloading,
  namespaceOffloadings,
  type NamespaceOffloadingSpec,
  type OffloadedCluster,
} from '../../../../src/api/namespace-offloading.ts';
import { namespaces, pods, secrets } from '../../../../src/api/resources.ts';
import { type VirtualNode, virtualNodes, type VirtualNodeSpec } from '../../../../src/api/virtual-node.ts';
import type { DraftMeta, Namespace, Pod } from '../../../../src/api/wire.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import type { HttpClient } from '../../../../src/kube/http-client.ts';
import { deepEqual } from '../../../../src/lib/equality.ts';
import { ignoring } from '../../../../src/lib/errors.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Offloading } from '../../../../src/offloading/offloading.ts';
import { Remake } from '../../../../src/offloading/release/remake.ts';
import type { SelectedNamespaces } from '../../../../src/offloading/short-form.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

/** In which the controller has come to an end with whatever it was given to do. */
const PATIENCE_MS = 250_000;
/** Of the test's own part, between two looks. */
const PLAY_MS = 125;
const SYSTEM = 'tributary-system';
const TEST = 'test-token';
const CONTROLLER = 'controller-token';

/**
 * One simulated cluster with the offloading controller; the test plays peering (mappings follow `of`) and the agents
 * (pods that are deleted end).
 */
export class OffloadWorld {
  readonly clock: FakeClock = new FakeClock();
  readonly api: FakeApi;
  readonly #tokens = new Set([TEST, CONTROLLER]);
  /** `Kind/name reason: message`. */
  readonly events: string[] = [];
  /** By `cluster/namespace`; else each provider gives `<namespace>-there`. */
  readonly standings: Map<string, NamespaceMappingState | undefined> = new Map();
  /** `cluster/namespace` of what a policy names, too. */
  readonly named: Set<string> = new Set();
  /** ClusterIDs whose provider answers no more: no mapping changes, no pod ends. */
  readonly dead: Set<string> = new Set();
  #client: HttpClient | undefined;
  #controllers: HttpClient | undefined;
  #offloading: Offloading | undefined;
  #lifecycle: Lifecycle | undefined;
  readonly #listeners = new Set<() => void>();
  #playing: Promise<void> = Promise.resolve();
  #over = false;

  constructor() {
    const types = [virtualNodes, namespaceOffloadings];
    this.api = new FakeApi({ clock: this.clock, types, tokens: this.#tokens });
  }

  get client(): HttpClient {
    if (this.#client === undefined) throw new Error('the world is not up');
    return this.#client;
  }

  get offloading(): Offloading {
    if (this.#offloading === undefined) throw new Error('the controller is not running');
    return this.#offloading;
  }

  async up(): Promise<this> {
    this.#client = this.#connect(TEST);
    await this.namespace('shop');
    this.#playing = this.#play();
    return this;
  }

  async down(): Promise<void> {
    this.#over = true;
    await this.clock.during('the test has played', this.#playing);
    await this.stop();
    await this.client.close();
  }

  #connect(token: string): HttpClient {
    return this.api.client({ token: async () => token });
  }

  async start(selected?: SelectedNamespaces): Promise<Offloading> {
    const { clock } = this;
    const client = (this.#controllers = this.#connect(CONTROLLER));
    const events = {
      event: (
        subject: { kind?: string; metadata: { name: string } },
        _type: string,
        reason: string,
        text: string,
      ) => void this.events.push(`${subject.kind}/${subject.metadata.name} ${reason}: ${text}`),
    };
    const common = { client, clock, log: silentLogger, events };
    const namespaceUid = (name: string): string | undefined => offloading.namespaceUid(name);
    const remake = new Remake({ ...common, systemNamespace: SYSTEM, namespaceUid });
    const offloading: Offloading = new Offloading({
      ...common,
      caches: new Caches(common),
      ownSystemNamespace: SYSTEM,
      ...(selected && { selected }),
      peerNamespaces: {
        stateOf: (cluster, namespace) => this.#standing(cluster, namespace),
        isNamed: (cluster, namespace) => this.named.has(`${cluster}/${namespace}`),
        onChange: (listener) => {
          this.#listeners.add(listener);
          return () => this.#listeners.delete(listener);
        },
      },
      remake,
    });
    this.#lifecycle = new Lifecycle(
      [...offloading.caches(), ...remake.components(), ...offloading.actors()],
      {
        clock,
        log: silentLogger,
        stopDeadlineMs: PATIENCE_MS,
      },
    );
    const started = this.#lifecycle.start(new AbortController().signal);
    const offered = started.then(() => (this.#offloading = offloading));
    await this.clock.during('the controller starts', offered);
    return offloading;
  }

  async stop(): Promise<void> {
    this.#offloading = undefined;
    if (this.#lifecycle) await this.clock.during('the controller stops', this.#lifecycle.stop());
    this.#lifecycle = undefined;
    await this.#controllers?.close();
    this.#controllers = undefined;
  }

  /** As kill -9 at the controller's `k`-th write from now on: lost on the way, or stored with its answer lost. */
  crashAt(k: number, when: 'before' | 'after'): { crashed: () => boolean } {
    let seen = 0;
    const silence = (): void => void this.#tokens.delete(CONTROLLER);
    const match = ({ method, path }: { method: string; path: string }): boolean => {
      if (!this.#isOfController(method, path) || ++seen !== k) return false;
      if (when === 'before') silence();
      // The request is served before the next microtask.
      else queueMicrotask(silence);
      return false;
    };
    this.api.fault({ match, times: Infinity });
    return { crashed: () => seen >= k };
  }

  /** What the test itself writes, it writes to pods, Namespaces and VirtualNodes. */
  #isOfController(method: string, path: string): boolean {
    return (
      (method === 'PATCH' && path.includes('/namespaceoffloadings/')) ||
      (path.includes('/secrets') && method !== 'GET') ||
      (method === 'POST' && path.endsWith('/pods'))
    );
  }

  async replace(): Promise<void> {
    await this.stop();
    this.#tokens.add(CONTROLLER);
    await this.start();
  }

  answer(cluster: string, namespace: string, standing: NamespaceMappingState | undefined): void {
    this.standings.set(`${cluster}/${namespace}`, standing);
    for (const listener of this.#listeners) listener();
  }

  #standing(cluster: string, namespace: string): NamespaceMappingState | undefined {
    const key = `${cluster}/${namespace}`;
    if (this.standings.has(key)) return this.standings.get(key);
    return { state: 'Mapped', tenantNamespace: `${namespace}-there` };
  }

  async namespace(name: string, labels: Record<string, string> = {}): Promise<Namespace> {
    return this.client.create(namespaces, { metadata: { name, labels } });
  }

  /** Without a provider it is one made by hand. */
  async virtualNode(
    name: string,
    provider?: string,
    spec: Partial<VirtualNodeSpec> = {},
  ): Promise<VirtualNode> {
    await this.client.create(virtualNodes, {
      metadata: { name, ...(provider !== undefined && { labels: { [LABEL_PROVIDER]: provider } }) },
      spec: {
        kubeconfigSecretRef: { namespace: SYSTEM, name },
        resources: { cpu: '1' },
        labels: { 'tributary.dev/cluster': provider ?? name },
        ...spec,
      },
    });
    const ready = { type: 'Ready', status: 'True', reason: 'AsExpected', message: '' };
    return this.client.patch(
      virtualNodes,
      { name },
      { type: 'merge', body: { status: { conditions: [ready], namespaces: spec.namespaces ?? [] } } },
      { subresource: 'status' },
    );
  }

  async offload(spec: NamespaceOffloadingSpec = {}, namespace = 'shop'): Promise<NamespaceOffloading> {
    return this.client.create(namespaceOffloadings, { metadata: { name: 'offloading', namespace }, spec });
  }

  async remove(namespace = 'shop'): Promise<void> {
    await this.client.delete(namespaceOffloadings, { name: 'offloading', namespace });
  }

  async get(namespace = 'shop'): Promise<NamespaceOffloading | undefined> {
    return this.client
      .get(namespaceOffloadings, { name: 'offloading', namespace })
      .catch(ignoring('NotFound'));
  }

  async pod(
    name: string,
    nodeName: string | undefined,
    metadata: DraftMeta = {},
    phase = 'Running',
  ): Promise<Pod> {
    const pod = await this.client.create(pods, {
      metadata: { name, namespace: 'shop', ...metadata },
      spec: { containers: [{ name: 'app', image: 'app' }], ...(nodeName !== undefined && { nodeName }) },
    });
    return this.client.patch(
      pods,
      pod.metadata,
      { type: 'merge', body: { status: { phase } } },
      { subresource: 'status' },
    );
  }

  async podNames(): Promise<string[]> {
    const { items } = await this.client.list(pods, { namespace: 'shop' });
    return items.map(({ metadata, spec }) => `${metadata.name}@${spec?.nodeName ?? ''}`).toSorted();
  }

  async clusters(namespace = 'shop'): Promise<OffloadedCluster[]> {
    return (await this.get(namespace))?.status?.clusters ?? [];
  }

  /** `cluster phase reason` of each. */
  async phases(namespace = 'shop'): Promise<string[]> {
    return (await this.clusters(namespace)).map(
      ({ cluster, phase, reason }) => `${cluster} ${phase} ${reason}`,
    );
  }

  /** Lets time pass until the condition holds. */
  async until(
    what: string,
    condition: () => boolean | Promise<boolean>,
    limitMs: number = PATIENCE_MS,
  ): Promise<void> {
    await this.clock.until(what, condition, limitMs);
  }

  async untilReady(reason: string, namespace = 'shop'): Promise<NamespaceOffloading> {
    let found: NamespaceOffloading | undefined;
    const seen = (): string | undefined => found?.status?.conditions?.[0]?.reason;
    await this.until(`${namespace} is ${reason}`, async () => {
      found = await this.get(namespace);
      return seen() === reason;
    });
    return found as NamespaceOffloading;
  }

  async untilGone(namespace = 'shop'): Promise<void> {
    await this.until(
      `the offloading of ${namespace} is gone`,
      async () => (await this.get(namespace)) === undefined,
      3 * PATIENCE_MS,
    );
  }

  async mappings(virtualNode: string): Promise<string[]> {
    const { spec } = await this.client.get(virtualNodes, { name: virtualNode });
    return (spec.namespaces ?? []).map(({ homeNamespace }) => homeNamespace);
  }

  async journals(): Promise<number> {
    return (await this.client.list(secrets, { namespace: SYSTEM })).items.length;
  }

  async #play(): Promise<void> {
    while (!this.#over) {
      await this.#peering();
      await this.#agents();
      await this.clock.sleep(PLAY_MS);
    }
  }

  async #peering(): Promise<void> {
    const offloading = this.#offloading;
    if (offloading === undefined) return;
    for (const { metadata, spec, status } of (await this.client.list(virtualNodes)).items) {
      const provider = metadata.labels?.[LABEL_PROVIDER];
      if (provider === undefined || this.dead.has(provider)) continue;
      const asked = new Map(offloading.of(provider).map((one) => [one.homeNamespace, one.leaving]));
      const names = new Set(asked.keys());
      if (this.named.has(`${provider}/shop`)) names.add('shop');
      const wanted = [...names].flatMap((homeNamespace) => {
        const standing = this.#standing(provider, homeNamespace);
        return standing?.state === 'Mapped'
          ? [{ homeNamespace, tenantNamespace: standing.tenantNamespace, ...leavingOf(asked, homeNamespace) }]
          : [];
      });
      const body = { type: 'merge', body: { spec: { namespaces: wanted } } } as const;
      if (!deepEqual(spec.namespaces ?? [], wanted)) await this.client.patch(virtualNodes, metadata, body);
      if (deepEqual(status?.namespaces ?? [], wanted)) continue;
      const told = { type: 'merge', body: { status: { namespaces: wanted } } } as const;
      await this.client.patch(virtualNodes, metadata, told, { subresource: 'status' });
    }
  }

  async #agents(): Promise<void> {
    const { items } = await this.client.list(virtualNodes);
    const alive = new Set(
      items
        .filter(({ metadata }) => !this.dead.has(metadata.labels?.[LABEL_PROVIDER] ?? ''))
        .map(({ metadata }) => metadata.name),
    );
    for (const { metadata, spec } of (await this.client.list(pods, { namespace: 'shop' })).items) {
      if (metadata.deletionTimestamp === undefined || !alive.has(spec?.nodeName ?? '')) continue;
      await this.client.delete(pods, metadata, { gracePeriodSeconds: 0 }).catch(ignoring('NotFound'));
    }
  }
}

const leavingOf = (
  asked: ReadonlyMap<string, true | undefined>,
  homeNamespace: string,
): { leaving?: true } => (asked.get(homeNamespace) === true ? { leaving: true } : {});
