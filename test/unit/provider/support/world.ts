import { namespaces, pods, secrets, type ResourceType } from '../../../../src/api/resources.ts';
import type { VirtualNode } from '../../../../src/api/virtual-node.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import type { KubeObject, PodSpec } from '../../../../src/api/wire.ts';
import { type HttpClient, createClient } from '../../../../src/kube/http-client.ts';
import { LeaseKeeper } from '../../../../src/kube/lease-keeper.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { type Logger, silentLogger } from '../../../../src/lib/log.ts';
import type { NetworkView } from '../../../../src/provider/network-view.ts';
import type { OwnDns } from '../../../../src/provider/home-dns.ts';
import { HomeHistory } from '../../../../src/provider/restored/home-history.ts';
import { Provider } from '../../../../src/provider/provider.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { Auditor } from './auditor.ts';
import { ForeignKubelet } from './foreign-kubelet.ts';

const AGENT = 'agent-token';
/** In which agents have come to an end with whatever they were given to do. */
const PATIENCE_MS = 200_000;

/** Of an agent, at one of its writes. */
export interface Crash {
  crashed: () => boolean;
  /** Resolves when it happens. */
  crash: Promise<void>;
}

export interface Running {
  provider: Provider;
  stop(): Promise<void>;
}

/** Two simulated clusters, a kubelet over there, an auditor over both, and agents that come and go. */
export class World {
  readonly clock: FakeClock = new FakeClock();
  readonly home: FakeApi;
  readonly foreign: FakeApi;
  readonly kubelet: ForeignKubelet;
  readonly auditor: Auditor;
  /** Of the agents to come; without one, as where no tunnel is. */
  network: NetworkView | undefined;
  /** Of home, as the agents to come know it. */
  dns: OwnDns | undefined;
  /** Of the agents to come: when the agent before them was last there, ms since 1970. */
  predecessorAt: number | undefined;
  /** Of the agents to come: for how long they keep what a restore of home has lost, ms; without it, nobody notices one. */
  keepMs: number | undefined;
  /** Of the agents to come. */
  log: Logger = silentLogger;
  /** How often agents have looked at keys, by controller. */
  readonly looks: Map<string, number> = new Map<string, number>();
  /** What was told about pods: "reason: message". */
  readonly events: string[] = [];
  readonly #tokens = { home: new Set([AGENT]), foreign: new Set([AGENT]) };
  readonly #running = new Set<Running>();
  #home: HttpClient | undefined;

  /** With kinds that both clusters serve beside the usual ones. */
  constructor({ types = [] }: { types?: readonly ResourceType<KubeObject>[] } = {}) {
    const { clock } = this;
    this.home = new FakeApi({ clock, types: [virtualNodes, ...types], tokens: this.#tokens.home });
    this.foreign = new FakeApi({ clock, types, tokens: this.#tokens.foreign });
    this.kubelet = new ForeignKubelet(this.foreign, () => clock.now());
    this.auditor = new Auditor(this.home, this.foreign, this.kubelet);
  }

  async up(): Promise<this> {
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
  }

  async start(name = 'rome'): Promise<Running> {
    const home = this.home.client({ token: async () => AGENT });
    this.#home = home;
    const virtualNode = await home.get(virtualNodes, { name });
    const { clock } = this;
    const history = new HomeHistory({ home, nodeName: name, keepMs: this.keepMs ?? 0, clock, log: this.log });
    const lease = new LeaseKeeper({
      client: home,
      clock,
      log: silentLogger,
      namespace: 'kube-node-lease',
      name,
      identity: name,
      durationMs: 40_000,
      marks: history,
    });
    const isNoticed = this.keepMs !== undefined;
    const provider = new Provider({
      ...(isNoticed && { history }),
      virtualNode,
      home,
      foreign: {
        connect: (credentials, options) =>
          createClient(credentials, { ...options, carrier: this.foreign.carrier() }),
      },
      events: { event: (_subject, _type, reason, message) => this.events.push(`${reason}: ${message}`) },
      metrics: {
        reconciled: (controller) => this.looks.set(controller, (this.looks.get(controller) ?? 0) + 1),
        depth: () => undefined,
      },
      nodeAddress: '192.0.2.1',
      kubeletPort: 10_250,
      version: 'test',
      predecessorAt: () => this.predecessorAt,
      ...(this.network !== undefined && { network: this.network }),
      ...(this.dns !== undefined && { dns: this.dns }),
      clock: this.clock,
      log: this.log,
    });
    const parts = [...provider.caches(), ...provider.actors(), ...(isNoticed ? [lease] : [])];
    const lifecycle = new Lifecycle(parts, {
      clock: this.clock,
      log: silentLogger,
      stopDeadlineMs: PATIENCE_MS,
    });
    const running: Running = {
      provider,
      stop: async () => {
        if (!this.#running.delete(running)) return;
        await this.clock.during('the agent stops', lifecycle.stop());
        await home.close();
      },
    };
    this.#running.add(running);
    const started = lifecycle.start(new AbortController().signal).then(() => provider.setListening(true));
    await this.clock.during('the agent starts', started);
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
  crashAt(k: number, when: 'before' | 'after'): Crash {
    let seen = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const crash = (): void => {
      this.silence();
      resolve();
    };
    const match = ({ method, path }: { method: string; path: string }): boolean => {
      if (!isWrite(`${method} ${path}`) || ++seen !== k) return false;
      if (when === 'before') crash();
      // The request is served before the next microtask.
      else queueMicrotask(crash);
      return false;
    };
    this.home.fault({ match, times: Infinity });
    this.foreign.fault({ match, times: Infinity });
    return { crashed: () => seen >= k, crash: promise };
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

  body(name: string): ReturnType<FakeApi['storage']['get']> {
    return this.foreign.storage.get('pods', `tenant/${name}`);
  }

  /** Lets time pass until the condition holds. */
  async until(
    what: string,
    condition: () => boolean | Promise<boolean>,
    limitMs: number = PATIENCE_MS,
  ): Promise<void> {
    await this.clock.until(what, condition, limitMs);
  }

  /** Both clusters agree, and nobody has broken a rule on the way. */
  async settled(limitMs: number = 1.5 * PATIENCE_MS): Promise<void> {
    try {
      await this.until('both clusters agree', () => this.auditor.differences().length === 0, limitMs);
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

function kubeconfig(server: FakeApi): object {
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
