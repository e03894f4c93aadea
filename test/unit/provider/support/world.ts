import { namespaces, pods, secrets, type ResourceType } from '../../../../src/api/resources.ts';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import type { KubeObject, PodSpec } from '../../../../src/api/wire.ts';
import { createClient, type HttpClient } from '../../../../src/kube/http-client.ts';
import type { Clock } from '../../../../src/lib/clock.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import type { NetworkView } from '../../../../src/provider/network-view.ts';
import { Provider } from '../../../../src/provider/provider.ts';
import { FakeApiServer } from '../../../support/fake-api-server.ts';
import { eventually } from '../../../support/eventually.ts';
import { fastClock } from '../../../support/fast-clock.ts';
import { Auditor } from './auditor.ts';
import { ForeignKubelet } from './foreign-kubelet.ts';

const AGENT = 'agent-token';
/** Real seconds are these many for the agent: back-offs of half a second take some milliseconds. */
const SPEED = 20;
const STOP_DEADLINE_MS = 10_000;

export interface Running {
  provider: Provider;
  stop(): Promise<void>;
}

/** Two simulated clusters, a kubelet over there, an auditor over both, and agents that come and go. */
export class World {
  readonly clock: Clock = fastClock(SPEED);
  readonly home: FakeApiServer;
  readonly foreign: FakeApiServer;
  readonly kubelet: ForeignKubelet;
  readonly auditor: Auditor;
  /** Of the agents to come; without one, as where no tunnel is. */
  network: NetworkView | undefined;
  /** What was told about pods: "reason: message". */
  readonly events: string[] = [];
  readonly #tokens = { home: new Set([AGENT]), foreign: new Set([AGENT]) };
  readonly #running = new Set<Running>();
  #home: HttpClient | undefined;

  /** With kinds that both clusters serve beside the usual ones. */
  constructor({ types = [] }: { types?: readonly ResourceType<KubeObject>[] } = {}) {
    const { clock } = this;
    this.home = new FakeApiServer({ clock, types: [virtualNodes, ...types], tokens: this.#tokens.home });
    this.foreign = new FakeApiServer({ clock, types, tokens: this.#tokens.foreign });
    this.kubelet = new ForeignKubelet(this.foreign, () => clock.now());
    this.auditor = new Auditor(this.home, this.foreign, this.kubelet);
  }

  async up(): Promise<this> {
    await Promise.all([this.home.start(), this.foreign.start()]);
    const match = ({ path }: { path: string }): boolean => path === '/version';
    this.foreign.fault({ match, times: Infinity, body: '{"gitVersion":"v1.36.3"}' });
    this.home.seed(namespaces, { metadata: { name: 'shop' } });
    this.foreign.seed(namespaces, { metadata: { name: 'tenant' } });
    this.home.seed(virtualNodes, {
      metadata: { name: 'rome' },
      spec: {
        kubeconfigSecretRef: { namespace: 'tributary-system', name: 'rome' },
        resources: { cpu: '100', memory: '100Gi', pods: '1000' },
        namespaces: [{ homeNamespace: 'shop', tenantNamespace: 'tenant' }],
      } satisfies VirtualNode['spec'],
    });
    this.home.seed(secrets, {
      metadata: { namespace: 'tributary-system', name: 'rome' },
      data: { kubeconfig: Buffer.from(JSON.stringify(kubeconfig(this.foreign))).toString('base64') },
    });
    return this;
  }

  async down(): Promise<void> {
    for (const agent of this.#running) await agent.stop();
    await this.#home?.close();
    await Promise.all([this.home.stop(), this.foreign.stop()]);
  }

  async start(name = 'rome'): Promise<Running> {
    const { server, ca } = this.home.credentials();
    const home = createClient({ server, ...(ca === undefined ? {} : { ca }), token: async () => AGENT });
    this.#home = home;
    const virtualNode = await home.get(virtualNodes, { name });
    const provider = new Provider({
      virtualNode,
      home,
      events: { event: (_subject, _type, reason, message) => this.events.push(`${reason}: ${message}`) },
      nodeAddress: '192.0.2.1',
      kubeletPort: 10_250,
      version: 'test',
      ...(this.network !== undefined && { network: this.network }),
      clock: this.clock,
      log: silentLogger,
    });
    const lifecycle = new Lifecycle([...provider.caches(), ...provider.actors()], {
      clock: this.clock,
      log: silentLogger,
      stopDeadlineMs: STOP_DEADLINE_MS * SPEED,
    });
    const running: Running = {
      provider,
      stop: async () => {
        if (!this.#running.delete(running)) return;
        await lifecycle.stop();
        await home.close();
      },
    };
    this.#running.add(running);
    await lifecycle.start(new AbortController().signal);
    provider.setListening(true);
    return running;
  }

  /** As kill -9: from now on nothing of this agent reaches either cluster; then a fresh one starts. */
  async replace(agent: Running): Promise<Running> {
    this.silence();
    await agent.stop();
    this.#tokens.home.add(AGENT);
    this.#tokens.foreign.add(AGENT);
    return this.start();
  }

  /**
   * The agent's `k`-th write from now on is its last: it is lost on the way, or stored with its answer lost.
   */
  crashAt(k: number, when: 'before' | 'after'): { crashed: () => boolean } {
    let seen = 0;
    const match = ({ method, path }: { method: string; path: string }): boolean => {
      if (!isWrite(`${method} ${path}`) || ++seen !== k) return false;
      if (when === 'before') this.silence();
      // The request is served before the next microtask.
      else queueMicrotask(() => this.silence());
      return false;
    };
    this.home.fault({ match, times: Infinity });
    this.foreign.fault({ match, times: Infinity });
    return { crashed: () => seen >= k };
  }

  /** No request is let in any more, and connections break. */
  silence(): void {
    this.#tokens.home.clear();
    this.#tokens.foreign.clear();
    this.home.cut();
    this.foreign.cut();
  }

  addPod(name: string, spec: Partial<PodSpec> = {}): string {
    const pod = this.home.seed(pods, {
      metadata: { name, namespace: 'shop' },
      spec: {
        nodeName: 'rome',
        restartPolicy: 'Always',
        terminationGracePeriodSeconds: 30,
        containers: [{ name: 'main', image: 'web:1' }],
        ...spec,
      },
      status: { phase: 'Pending', qosClass: 'BestEffort' },
    });
    return pod.metadata.uid;
  }

  /** As `kubectl delete`: the object stays until the agent says that its body is gone. */
  deletePod(name: string, { force = false }: { force?: boolean } = {}): void {
    const { storage } = this.home;
    const key = `shop/${name}`;
    const pod = storage.get('pods', key);
    if (pod === undefined) throw new Error(`no pod ${key}`);
    if (force) {
      storage.remove('pods', key);
      return;
    }
    const { metadata } = pod;
    const deletionTimestamp = new Date(this.clock.now() + 30_000).toISOString();
    storage.update('pods', {
      ...pod,
      metadata: { ...metadata, deletionTimestamp, deletionGracePeriodSeconds: 30 },
    });
  }

  status(name: string): Record<string, unknown> | undefined {
    return this.home.storage.get('pods', `shop/${name}`)?.status;
  }

  body(name: string): ReturnType<FakeApiServer['storage']['get']> {
    return this.foreign.storage.get('pods', `tenant/${name}`);
  }

  /** Both clusters agree, and nobody has broken a rule on the way. */
  async settled(deadlineMs: number = 15_000): Promise<void> {
    try {
      await eventually('both clusters agree', () => this.auditor.differences().length === 0, deadlineMs);
    } catch (error) {
      throw new Error(`${(error as Error).message}: ${this.auditor.differences().join('; ')}`, {
        cause: error,
      });
    }
    const { violations } = this.auditor;
    if (violations.length > 0) throw new Error(violations.join('; '));
  }

  /** Requests from now on that would change something, but Events, of both clusters. */
  recordWrites(): () => string[] {
    const from = { home: this.home.log.length, foreign: this.foreign.log.length };
    return () => [...this.home.log.slice(from.home), ...this.foreign.log.slice(from.foreign)].filter(isWrite);
  }
}

export const isWrite = (line: string): boolean => !line.startsWith('GET ') && !line.includes('/events');

function kubeconfig(server: FakeApiServer): object {
  const { server: url, ca = '' } = server.credentials();
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'foreign',
    clusters: [
      {
        name: 'foreign',
        cluster: { server: url.href, 'certificate-authority-data': Buffer.from(ca).toString('base64') },
      },
    ],
    users: [{ name: 'rome', user: { token: AGENT } }],
    contexts: [{ name: 'foreign', context: { cluster: 'foreign', user: 'rome' } }],
  };
}
