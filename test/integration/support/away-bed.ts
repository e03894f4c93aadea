/** An agent between two real control planes, and beside it, in this process, what role `cluster` does for offloaded namespaces. */
import { readFile } from 'node:fs/promises';
import { Registry } from 'prom-client';

import { OffloadingParts } from '../../../src/agent/offloading.ts';
import { controllerMetrics } from '../../../src/agent/parts.ts';
import { LABEL_HOME_UID } from '../../../src/api/names.ts';
import {
  type NamespaceOffloading,
  namespaceOffloadings,
  type NamespaceOffloadingSpec,
} from '../../../src/api/namespace-offloading.ts';
import { endpointSlices, events as eventType, nodes } from '../../../src/api/resources.ts';
import { virtualNodes } from '../../../src/api/virtual-node.ts';
import type { Pod } from '../../../src/api/wire.ts';
import { manifestsCommand } from '../../../src/cli/manifests.ts';
import { parseConfig } from '../../../src/config.ts';
import { Caches } from '../../../src/kube/caches.ts';
import { ClientEventRecorder } from '../../../src/kube/events.ts';
import { createClient, type HttpClient } from '../../../src/kube/http-client.ts';
import { parseKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { Lifecycle } from '../../../src/lib/lifecycle.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { eventually } from '../../support/eventually.ts';
import { AgentLab, NODE } from '../../support/labs/agent-lab.ts';
import { applyYaml, printed } from '../../support/labs/rights-cluster.ts';

const SYSTEM = 'tributary-system';
const REF = { namespace: 'shop', name: 'offloading' };

export class AwayBed {
  readonly lab: AgentLab;
  readonly complaints: string[] = [];
  /** Requests since `heal`. */
  passed = 0;
  #client: HttpClient | undefined;
  #lifecycle: Lifecycle | undefined;

  private constructor(lab: AgentLab) {
    this.lab = lab;
  }

  /** `graceSeconds`: of the virtual node. */
  static async up(graceSeconds: number): Promise<AwayBed> {
    const bed = new AwayBed(await AgentLab.up());
    try {
      await bed.#furnish(graceSeconds);
    } catch (error) {
      await bed.down();
      throw error;
    }
    return bed;
  }

  async #furnish(awayAfterSeconds: number): Promise<void> {
    const { lab } = this;
    await applyYaml(lab.homeCluster, await printed(manifestsCommand, ['cluster', '--image', 'tributary:1']));
    await lab.home.patch(
      virtualNodes,
      { name: NODE },
      { type: 'merge', body: { spec: { awayAfterSeconds } } },
    );
    const log = createLogger({
      level: 'warn',
      now: () => systemClock.now(),
      write: (line) => this.complaints.push(line),
    });
    const client = (this.#client = await this.#account());
    const common = { client, clock: systemClock, log };
    const events = new ClientEventRecorder({ ...common, component: 'tributary' });
    const registry = new Registry();
    const parts = new OffloadingParts({
      parts: {
        config: parseConfig({ options: {}, env: {}, hostname: 'test' }),
        clock: systemClock,
        log,
      },
      home: client,
      caches: new Caches(common),
      events,
      metrics: controllerMetrics(registry),
      registry,
      inPod: false,
      peerNamespaces: {
        isNamed: () => false,
        stateOf: () => undefined,
        onChange: () => () => undefined,
      },
      awaySettleMs: 1_000,
    });
    const components = [events, ...parts.caches(), ...parts.actors()];
    this.#lifecycle = new Lifecycle(components, { clock: systemClock, log, stopDeadlineMs: 10_000 });
    await this.#lifecycle.start(new AbortController().signal);
    await lab.start();
    await lab.ready();
  }

  /** Exactly the rights of the role. */
  async #account(): Promise<HttpClient> {
    const { homeCluster } = this.lab;
    const { body } = await homeCluster.api.call(
      'POST',
      `/api/v1/namespaces/${SYSTEM}/serviceaccounts/tributary-cluster/token`,
      {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { expirationSeconds: 3600 },
      },
    );
    const { token } = (JSON.parse(body) as { status: { token: string } }).status;
    const { server, ca } = await parseKubeconfig(await readFile(homeCluster.kubeconfig, 'utf8'));
    return createClient({ server, ...(ca !== undefined && { ca }), token: async () => token });
  }

  async down(): Promise<void> {
    await this.#lifecycle?.stop();
    await this.#client?.close();
    await this.lab.down();
  }

  /** Offloads the namespace, and waits until that is in effect. */
  async offload(spec: NamespaceOffloadingSpec): Promise<void> {
    await this.lab.home.create<NamespaceOffloading>(namespaceOffloadings, {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'NamespaceOffloading',
      metadata: REF,
      spec,
    });
    await eventually('the namespace is offloaded', async () => {
      const { status } = await this.lab.home.get(namespaceOffloadings, REF);
      return status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;
    });
  }

  async change(spec: NamespaceOffloadingSpec): Promise<void> {
    await this.lab.home.patch(namespaceOffloadings, REF, { type: 'merge', body: { spec } });
  }

  /** Packets are swallowed: nothing is refused, and nothing comes back. */
  cut(): void {
    this.lab.proxy.judge(() => ({ kind: 'silence' }));
  }

  /** Requests pass again; those that were swallowed are not answered any more. */
  heal(): void {
    this.passed = 0;
    this.lab.proxy.judge(() => {
      this.passed++;
      return undefined;
    });
  }

  async isNodeReady(): Promise<boolean> {
    const { status } = await this.lab.home.get(nodes, { name: NODE });
    return status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;
  }

  /** Home pods that are not ending, by a label. */
  async pods(app: string): Promise<Pod[]> {
    const all = await this.lab.pods('home');
    return all.filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined && metadata.labels?.['app'] === app,
    );
  }

  /** Endpoints of a Service that are ready. */
  async readyEndpoints(service: string): Promise<number> {
    const labelSelector = `kubernetes.io/service-name=${service}`;
    const { items } = await this.lab.home.list(endpointSlices, { namespace: 'shop', labelSelector });
    return items.flatMap(({ endpoints }) => endpoints ?? []).filter(({ conditions }) => conditions?.ready)
      .length;
  }

  /** `<name of the pod> <UID of the home pod> <UID of the body> <restarts>`, sorted. */
  async bodies(): Promise<string[]> {
    return (await this.lab.pods('foreign'))
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata, status }) => {
        const restarts = status?.containerStatuses?.[0]?.restartCount ?? 0;
        return `${metadata.name} ${metadata.labels?.[LABEL_HOME_UID]} ${metadata.uid} ${restarts}`;
      })
      .toSorted();
  }

  /** `<reason> <name of the object>` of the events in the namespace, each once. */
  async told(): Promise<string[]> {
    const { items } = await this.lab.home.list(eventType, { namespace: 'shop' });
    const names = items.map(({ reason, involvedObject }) => `${reason} ${involvedObject.name}`);
    return [...new Set(names)];
  }
}
