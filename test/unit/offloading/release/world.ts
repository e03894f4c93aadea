import { namespaceOffloadings } from '../../../../src/api/namespace-offloading.ts';
import type {
  NamespaceOffloading,
  NamespaceOffloadingSpec,
} from '../../../../src/api/namespace-offloading.ts';
import { pods } from '../../../../src/api/resources.ts';
import { virtualNodes } from '../../../../src/api/virtual-node.ts';
import type { Pod } from '../../../../src/api/wire.ts';
import { Caches } from '../../../../src/kube/caches.ts';
import { Informer } from '../../../../src/kube/informer.ts';
import type { Clock } from '../../../../src/lib/clock.ts';
import { Lifecycle } from '../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Release } from '../../../../src/offloading/release/release.ts';
import { FakeApi } from '../../../support/fake-api/fake-api.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { cluster, refused, REPLICA_SET } from './support.ts';

const TOKEN = 'of-the-process';
const SYSTEM = 'tributary-system';
/** Everything in the API server is so old when it is made; nobody needs to wait. */
const AGE_MS = 120_000;

/** Of the process, at one of its writes. */
interface Crash {
  crashed: () => boolean;
  /** Resolves when it happens. */
  crash: Promise<void>;
}

interface Running {
  stop(): Promise<void>;
}

/** A home cluster with virtual nodes, whose agents and controllers are a few lines each; and the release of pods. */
export class World {
  readonly clock: FakeClock = new FakeClock();
  readonly api: FakeApi;
  readonly told: string[] = [];
  /** The deletion of a pod completes; false: its agent is away. */
  agentsEnd = true;
  readonly #tokens = new Set([TOKEN]);
  readonly #running = new Set<Running>();
  #made = 0;

  constructor() {
    const { clock } = this;
    const old: Clock = {
      now: () => clock.now() - AGE_MS,
      monotonic: () => clock.monotonic(),
      after: (delayMs, callback) => clock.after(delayMs, callback),
      sleep: async (delayMs, signal) => clock.sleep(delayMs, signal),
    };
    this.api = new FakeApi({
      clock: old,
      types: [virtualNodes, namespaceOffloadings],
      tokens: this.#tokens,
    });
  }

  async up(spec: NamespaceOffloadingSpec = {}, names: string[] = ['milan']): Promise<this> {
    for (const name of names)
      this.api.seed(virtualNodes, { metadata: { name }, spec: { nodeName: `${name}-node` } });
    this.api.seed(namespaceOffloadings, {
      metadata: { namespace: 'shop', name: 'offloading' },
      spec,
      status: { clusters: names.map((name) => cluster(name)), conditions: [] },
    });
    return this;
  }

  async down(): Promise<void> {
    for (const running of this.#running) await running.stop();
  }

  /** Refused for two minutes. */
  addPod(
    name: string,
    { node = 'milan', owned = false, claim }: { node?: string; owned?: boolean; claim?: string } = {},
  ): string {
    const volumes =
      claim === undefined ? [] : [{ name: 'data', persistentVolumeClaim: { claimName: claim } }];
    const at = new Date(this.clock.now() - AGE_MS).toISOString();
    const { metadata } = this.api.seed(pods, {
      metadata: { namespace: 'shop', name, ...(owned && { ownerReferences: [REPLICA_SET] }) },
      spec: { nodeName: `${node}-node`, containers: [{ name: 'main', image: 'web:1' }], volumes },
      status: refused('Unschedulable', at),
    });
    return metadata.uid;
  }

  pod(name: string): Pod | undefined {
    return this.api.storage.get('pods', `shop/${name}`) as Pod | undefined;
  }

  /** Changes that made a pod of that name. */
  creations(name: string): number {
    return (this.api.storage.since('pods', 100) ?? []).filter(
      ({ previous, current }) => previous === undefined && current?.metadata.name === name,
    ).length;
  }

  get offloading(): NamespaceOffloading {
    return this.api.storage.get(
      'namespaceoffloadings.tributary.dev',
      'shop/offloading',
    ) as unknown as NamespaceOffloading;
  }

  get journals(): string[] {
    return this.api.storage.list('secrets').map(({ metadata }) => metadata.name);
  }

  /** The start of a pod is reported by its agent. */
  startPod(name: string): void {
    const pod = this.api.storage.get('pods', `shop/${name}`);
    if (pod === undefined) throw new Error(`${name} is gone`);
    const startTime = new Date(this.clock.now()).toISOString();
    this.api.storage.update('pods', { ...pod, status: { phase: 'Running', startTime, conditions: [] } });
  }

  async until(what: string, condition: () => boolean): Promise<void> {
    const tick = (): boolean => {
      this.#tick();
      return condition();
    };
    await this.clock.until(what, tick, 30_000);
  }

  async start(): Promise<Running> {
    this.#tokens.add(TOKEN);
    const client = this.api.client({ clock: this.clock, token: async () => TOKEN });
    const common = { client, clock: this.clock, log: silentLogger };
    const offloadings = new Informer<NamespaceOffloading>({
      ...common,
      type: namespaceOffloadings,
      list: {},
    });
    const release = new Release({
      ...common,
      caches: new Caches(common),
      events: {
        event: ({ metadata }, _type, reason, text) => this.told.push(`${reason} ${metadata.name}: ${text}`),
      },
      offloadings: {
        offloadingOf: (namespace) => offloadings.get(`${namespace}/offloading`),
        onChange: (listener) => offloadings.onChange(listener),
      },
      systemNamespace: SYSTEM,
    });
    const components = [offloadings, ...release.components()];
    const lifecycle = new Lifecycle(components, { ...common, stopDeadlineMs: 5000 });
    const running = {
      stop: async () => {
        if (!this.#running.delete(running)) return;
        await this.clock.during('the release stops', lifecycle.stop());
        await client.close();
      },
    };
    this.#running.add(running);
    await this.clock.during('the release starts', lifecycle.start(new AbortController().signal));
    return running;
  }

  /** As kill -9, and then a fresh one. */
  async replace(running: Running): Promise<Running> {
    this.#silence();
    await running.stop();
    return this.start();
  }

  /** The `k`-th write is the last: it is lost on the way, or stored with its answer lost. */
  crashAt(k: number, when: 'before' | 'after'): Crash {
    let seen = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const crash = (): void => {
      this.#silence();
      resolve();
    };
    const match = ({ method }: { method: string }): boolean => {
      if (method === 'GET' || ++seen !== k) return false;
      if (when === 'before') crash();
      // The request is served before the next microtask.
      else queueMicrotask(crash);
      return false;
    };
    this.api.fault({ match, times: Infinity });
    return { crashed: () => seen >= k, crash: promise };
  }

  #silence(): void {
    this.#tokens.clear();
    this.api.cut();
  }

  /** Agents end what is being deleted; the ReplicaSet wants one pod. */
  #tick(): void {
    const { storage } = this.api;
    for (const pod of storage.list('pods')) {
      if (pod.metadata.deletionTimestamp !== undefined && this.agentsEnd) {
        storage.remove('pods', `shop/${pod.metadata.name}`);
        const owners = pod.metadata['ownerReferences'] as object[] | undefined;
        if (owners !== undefined) this.#replace(owners);
      }
    }
  }

  #replace(ownerReferences: object[]): void {
    const name = `made-${this.#made++}`;
    this.api.seed(pods, { metadata: { namespace: 'shop', name, ownerReferences }, spec: { containers: [] } });
  }
}
