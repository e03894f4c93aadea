/** A real API server with the manifests of the `cluster` role, and the admission webhook of this process under its account. */
import { readFileSync } from 'node:fs';
import { Registry } from 'prom-client';

import { webhook } from '../../../src/agent/offloading.ts';
import { type AgentParts, controllerMetrics } from '../../../src/agent/parts.ts';
import {
  type MutatingWebhookConfiguration,
  mutatingWebhookConfigurations,
  WEBHOOK_CONFIGURATION,
} from '../../../src/api/admission.ts';
import { CLUSTER_NAME } from '../../../src/api/manifest.ts';
import type { NamespaceOffloading, PodStrategy } from '../../../src/api/namespace-offloading.ts';
import type { PeeringRequest } from '../../../src/api/peering-request.ts';
import { namespaces as namespaceType, pods, resourceQuotas } from '../../../src/api/resources.ts';
import type { Namespace, Pod, ResourceList } from '../../../src/api/wire.ts';
import { manifestsCommand } from '../../../src/cli/manifests.ts';
import { parseConfig } from '../../../src/config.ts';
import { TenantDirectory } from '../../../src/hosting/guests/tenant-directory.ts';
import { guestAdmission } from '../../../src/hosting/guests/webhook.ts';
import type { ResourceQuota } from '../../../src/hosting/tenants/quota-recounts.ts';
import { Caches } from '../../../src/kube/caches.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { createClient } from '../../../src/kube/http-client.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { parseKubeconfig } from '../../../src/kube/kubeconfig.ts';
import type { AdmissionPart } from '../../../src/kube/webhook-configuration.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { ignoring } from '../../../src/lib/errors.ts';
import { type Component, Lifecycle } from '../../../src/lib/lifecycle.ts';
import { Listeners } from '../../../src/lib/listeners.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { offloadingAdmission } from '../../../src/offloading/admission/webhook.ts';
import { type SelectedNamespaces, shortFormOf } from '../../../src/offloading/short-form.ts';
import { StockWatcher } from '../../../src/peering/offer/stock-watcher.ts';
import { eventually } from '../eventually.ts';
import { printed, RightsCluster } from './rights-cluster.ts';

export const SYSTEM = 'tributary-system';
const CONFIGURATION = { name: WEBHOOK_CONFIGURATION };
const LONG_MS = 60_000;
/** What the operator offloads. */
const SELECTED: SelectedNamespaces = {
  selector: {
    matchExpressions: [
      { key: 'team', operator: 'In', values: ['far'] },
      { key: 'legacy', operator: 'DoesNotExist' },
    ],
  },
  podStrategy: 'Remote',
};

/** The machine's clock, which a test can set forward; then sleeps of more than a minute end. */
export class ShiftedClock implements Clock {
  #offsetMs = 0;
  readonly #sleepers = new Set<() => void>();

  now = (): number => systemClock.now() + this.#offsetMs;
  monotonic = (): number => systemClock.monotonic();
  after = (delayMs: number, callback: () => void): (() => void) => systemClock.after(delayMs, callback);

  async sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    if (delayMs < LONG_MS) return systemClock.sleep(delayMs, signal);
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#sleepers.add(resolve);
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    await promise.finally(() => this.#sleepers.delete(resolve));
  }

  forward(ms: number): void {
    this.#offsetMs += ms;
    for (const wake of this.#sleepers) wake();
  }
}

export class WebhookLab {
  readonly cluster: RightsCluster;
  /** As the administrator. */
  readonly admin: KubeClient;
  readonly clock: ShiftedClock = new ShiftedClock();
  readonly #role: KubeClient;
  readonly #offloadings = new Map<string, NamespaceOffloading>();
  readonly #changed = new Listeners();
  #isOpen = false;
  /** What lending has promised, by peer; tests change it. */
  readonly grants: Map<string, ResourceList> = new Map();
  /** Peers that were found to be so. */
  readonly heedless: { peer: string; message: string }[] = [];
  #lifecycle: Lifecycle | undefined;

  private constructor(cluster: RightsCluster, token: string, admin: KubeClient) {
    const { server, pki } = cluster.cluster;
    this.cluster = cluster;
    const role = { server: new URL(server), ca: pki.authority.cert };
    this.#role = createClient({ ...role, token: async () => Promise.resolve(token) });
    this.admin = admin;
  }

  static async up(namespaces: readonly string[]): Promise<WebhookLab> {
    const cluster = await RightsCluster.up();
    await cluster.apply(await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
    const { token } = await cluster.tokenOf({ namespace: SYSTEM, name: 'tributary-cluster' });
    const kubeconfig = readFileSync(cluster.cluster.kubeconfig, 'utf8');
    const lab = new WebhookLab(cluster, token, createClient(await parseKubeconfig(kubeconfig)));
    for (const name of namespaces) {
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
      await cluster.cluster.api.call('POST', '/api/v1/namespaces', namespace);
    }
    await eventually('pods can be made', async () => {
      const made = await Promise.allSettled(namespaces.map(async (namespace) => lab.tryPod(namespace)));
      return made.every(({ status }) => status === 'fulfilled');
    });
    return lab;
  }

  async down(): Promise<void> {
    await this.stop();
    await this.#role.close();
    await this.admin.close();
    await this.cluster.down();
  }

  /** A process that starts. */
  async start(): Promise<void> {
    const config = parseConfig({
      options: { 'node-address': '127.0.0.1', 'system-namespace': SYSTEM },
      env: {},
      hostname: 'lab',
    });
    const parts: AgentParts = { config, clock: this.clock, log: silentLogger };
    const registry = new Registry();
    const { components: caches, part } = this.#guests();
    const offloadings = {
      offloadingOf: (namespace: string) => this.#offloadings.get(namespace),
      offloadingByShortForm: (namespace: string, podStrategy: PodStrategy) =>
        this.#offloadings.get(namespace) ?? shortFormOf(namespace, podStrategy),
      all: () => [...this.#offloadings.values()],
      isOpen: () => this.#isOpen,
      selectedBy: () => [],
      tether: () => undefined,
      onChange: this.#changed.add,
    };
    const home = offloadingAdmission(offloadings, {
      clock: this.clock,
      systemNamespace: SYSTEM,
      selected: SELECTED,
      admitted: { letIn: () => undefined },
    });
    const components = webhook([home, part], {
      parts,
      home: this.#role,
      inPod: false,
      registry,
      metrics: controllerMetrics(registry),
    });
    this.#lifecycle = new Lifecycle([...caches, ...components], {
      clock: systemClock,
      log: silentLogger,
      stopDeadlineMs: 10_000,
    });
    await this.#lifecycle.start(new AbortController().signal);
  }

  /** The provider's side, with the stock and the tenants as they are on the server, and no lending. */
  #guests(): { components: Component[]; part: AdmissionPart } {
    const common = { client: this.#role, clock: this.clock, log: silentLogger };
    const stock = new StockWatcher({ caches: new Caches(common), clock: this.clock });
    const cache = new Informer<Namespace>({ ...common, type: namespaceType, list: {} });
    const quotas = new Informer<ResourceQuota>({ ...common, type: resourceQuotas, list: {} });
    const tenants = new TenantDirectory({
      tenants: {
        namespaces: cache,
        quotasOf: () => [...quotas.list()],
        namespacesOf: (peer) =>
          [...cache.list()].filter(({ metadata }) => metadata.labels?.['tributary.dev/peer'] === peer),
      },
      policiesOf: () => 0,
      request: (peer) => {
        const promised = this.grants.get(peer);
        if (promised === undefined) return undefined;
        const status = { promised, contract: { text: '' } };
        return { status } as unknown as PeeringRequest;
      },
    });
    const part = guestAdmission({
      ...common,
      account: { namespace: SYSTEM, name: CLUSTER_NAME },
      pods: stock.pods,
      tenants,
      heedless: (peer, message) => void this.heedless.push({ peer, message }),
    });
    return { components: [stock, cache, quotas], part };
  }

  async stop(): Promise<void> {
    await this.#lifecycle?.stop();
    this.#lifecycle = undefined;
  }

  /** Plays a VirtualNode whose taint keeps nobody away. */
  open(isOpen: boolean): void {
    this.#isOpen = isOpen;
    this.#changed.tell();
  }

  /** Plays the controller of NamespaceOffloadings; null removes an offloading. */
  offload(namespace: string, podStrategy: PodStrategy | null): void {
    if (podStrategy === null) this.#offloadings.delete(namespace);
    else {
      const metadata = {
        name: 'offloading',
        namespace,
        uid: namespace,
        resourceVersion: '1',
        creationTimestamp: '',
      };
      const clusterSelector = { matchLabels: { region: 'eu' } };
      this.#offloadings.set(namespace, { metadata, spec: { podStrategy, clusterSelector } });
    }
    this.#changed.tell();
  }

  async configuration(): Promise<MutatingWebhookConfiguration | undefined> {
    return this.admin.get(mutatingWebhookConfigurations, CONFIGURATION).catch(ignoring('NotFound'));
  }

  /** Of the webhooks for objects, not for labels and selectors: namespaces by the first word of the webhook's name. */
  async lists(): Promise<Record<string, string[]>> {
    const found = (await this.configuration())?.webhooks ?? [];
    return Object.fromEntries(
      found
        .filter(({ name }) => !/\.(label|selector)\./u.test(name))
        .map(({ name, namespaceSelector }) => [
          name.split('.')[0],
          namespaceSelector?.matchExpressions?.[0]?.values ?? [],
        ]),
    );
  }

  /** All webhooks of the configuration are in force when each namespace answers as its strategy says. */
  async untilInForce(namespace: string): Promise<void> {
    await eventually(`the webhook is in force in ${namespace}`, async () => {
      const pod = await this.tryPod(namespace).catch(() => undefined);
      return pod?.metadata.annotations?.['tributary.dev/strategy'] !== undefined;
    });
  }

  /** Sends an object through admission as a dry run. */
  async tryPod(namespace: string, spec: object = {}, metadata: object = {}): Promise<Pod> {
    const path = `/api/v1/namespaces/${namespace}/pods?dryRun=All`;
    const { status, body } = await this.cluster.cluster.api.call('POST', path, {
      ...POD,
      metadata: { name: 'web', ...metadata },
      spec: { ...POD.spec, ...spec },
    });
    if (status !== 201) throw new Error(`${status} ${body}`);
    return JSON.parse(body) as Pod;
  }

  async makePod(namespace: string, name: string): Promise<Pod> {
    return this.admin.create(pods, { ...POD, metadata: { namespace, name } });
  }
}

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  spec: { containers: [{ name: 'web', image: 'web:1' }] },
};
