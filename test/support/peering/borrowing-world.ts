/** Borrowing against a real API server, with the provider as a script and an agent as it looks from home. */
import type { AcceptancePolicy } from '../../../src/api/acceptance-policy.ts';
import { advertisements } from '../../../src/api/advertisement.ts';
import { LABEL_VIRTUAL_NODE } from '../../../src/api/names.ts';
import { leases, nodes, pods } from '../../../src/api/resources.ts';
import { API_VERSION, virtualNodes } from '../../../src/api/virtual-node.ts';
import { Caches } from '../../../src/kube/caches.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import type { DrainLimits } from '../../../src/kube/drain-stage.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { hasCode } from '../../../src/lib/errors.ts';
import { Lifecycle } from '../../../src/lib/lifecycle.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { Borrowing, type BorrowingOptions } from '../../../src/peering/borrowing/borrowing.ts';
import { Identity } from '../../../src/peering/identity/identity.ts';
import type { AgentLauncher, WantedAgent } from '../../../src/peering/ports.ts';
import { ScriptedProvider } from '../../unit/peering/borrowing/support/scripted-provider.ts';
import { eventually } from '../eventually.ts';

const DRAIN_MS = 5000;
const TICK_MS = 50;
const STOP_DEADLINE_MS = 10_000;
const QUIET_MS = 1000;

const POLICY: AcceptancePolicy = {
  metadata: { name: 'all', uid: 'p', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { peers: { anyone: true }, approval: 'Automatic', namespaces: ['shop'] },
};

export class BorrowingWorld {
  readonly identity: Identity = Identity.generate();
  readonly provider: ScriptedProvider = new ScriptedProvider(this.identity.clusterID, systemClock);
  readonly agents: RealAgents;
  readonly borrowing: Borrowing;
  readonly warnings: string[] = [];
  /** `Kind/name reason: message`. */
  readonly events: string[] = [];
  readonly client: KubeClient;
  connected = true;
  readonly #lifecycle: Lifecycle;
  readonly #intents = new Set<(clusterID: string) => void>();
  #wanted = false;
  #said = { ours: '', theirs: '' };

  constructor(
    admin: KubeClient,
    client: KubeClient,
    drain: DrainLimits = { evictMs: DRAIN_MS, endMs: 1000 },
    bounds: Partial<Pick<BorrowingOptions, 'ours' | 'allowLoopback' | 'resolve' | 'proxies'>> = {},
  ) {
    this.client = client;
    this.agents = new RealAgents(admin);
    const log = createLogger({
      level: 'warn',
      now: () => systemClock.now(),
      write: (line) => this.warnings.push(line),
    });
    this.borrowing = new Borrowing({
      client,
      caches: new Caches({ client, clock: systemClock, log }),
      identity: this.identity,
      clusterName: 'rome',
      intents: {
        intent: () => ({ wanted: this.#wanted, namespaces: [], policy: POLICY }),
        onChange: (listener) => {
          this.#intents.add(listener);
          return () => this.#intents.delete(listener);
        },
      },
      links: () => ({
        view: (clusterID) => ({
          clusterID,
          connected: this.connected,
          clusterName: 'Milan',
          peerEndpoints: [],
          publicKey: this.provider.identity.publicKey,
          networkKeys: [],
        }),
        publish: () => queueMicrotask(() => this.say()),
        call: async (_id, method) => {
          if (method !== 'credential') throw new Error(method);
          return Promise.resolve(this.provider.credential() as never);
        },
        onChange: () => () => undefined,
      }),
      reach: {
        open: async () => Promise.resolve({ server: 'https://127.0.0.1:4443' }),
        close: async () => Promise.resolve(),
      },
      launcher: this.agents,
      systemNamespace: 'tributary-system',
      drain,
      ...bounds,
      events: {
        event: ({ kind, metadata }, _type, reason, message) =>
          void this.events.push(`${kind}/${metadata.name} ${reason}: ${message}`),
      },
      clock: systemClock,
      log,
    });
    const options = { clock: systemClock, log, stopDeadlineMs: STOP_DEADLINE_MS };
    this.#lifecycle = new Lifecycle(this.borrowing.components(), options);
  }

  get id(): string {
    return this.provider.identity.clusterID;
  }

  async start(): Promise<void> {
    await this.#lifecycle.start(new AbortController().signal);
  }

  async stop(): Promise<void> {
    await this.#lifecycle.stop();
    await this.agents.stop();
    await this.client.close();
  }

  want(wanted: boolean): void {
    this.#wanted = wanted;
    for (const listener of this.#intents) listener(this.id);
  }

  /** Both sides send what is new, as over a link. */
  say(): void {
    if (!this.connected) return;
    const documents = this.borrowing.documents(this.id);
    const ours = JSON.stringify(documents);
    if (ours !== this.#said.ours) this.provider.received(documents);
    const { offer = null, grant = null } = this.provider.documents();
    const theirs = JSON.stringify({ offer, grant });
    const isNews = theirs !== this.#said.theirs;
    this.#said = { ours, theirs };
    const peer = { clusterID: this.id, publicKey: this.provider.identity.publicKey };
    if (isNews) void this.borrowing.received(peer, { offer, grant });
  }

  /** Returns when nothing of it has been written for a second. */
  async quiet(): Promise<void> {
    let [before, since] = ['', performance.now()];
    await eventually('nothing is written any more', async () => {
      const lists = await Promise.all([this.client.list(advertisements), this.client.list(virtualNodes)]);
      const now = lists.flatMap(({ items }) => items.map(({ metadata }) => metadata.resourceVersion)).join();
      if (now !== before) [before, since] = [now, performance.now()];
      return performance.now() - since >= QUIET_MS;
    });
  }
}

/** Nodes, Leases and pods as an agent treats them, by looking every so often. */
class RealAgents implements AgentLauncher {
  readonly #admin: KubeClient;
  readonly #running = new Map<string, { abort: AbortController; done: Promise<void>; agent: WantedAgent }>();
  dead = false;
  /** Pods do not end by themselves. */
  stubborn = false;

  constructor(admin: KubeClient) {
    this.#admin = admin;
  }

  async ensure(agent: WantedAgent): Promise<void> {
    await Promise.resolve();
    const known = this.#running.get(agent.clusterID);
    if (known !== undefined) {
      known.agent = agent;
      return;
    }
    this.dead = false;
    const abort = new AbortController();
    const running = { abort, agent, done: Promise.resolve() };
    this.#running.set(agent.clusterID, running);
    running.done = this.#run(running, abort.signal);
  }

  async remove(clusterID: string): Promise<void> {
    const running = this.#running.get(clusterID);
    this.#running.delete(clusterID);
    running?.abort.abort();
    await running?.done;
  }

  async stop(): Promise<void> {
    for (const id of this.#running.keys()) await this.remove(id);
  }

  async #run(running: { agent: WantedAgent }, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const { name } of this.dead ? [] : running.agent.virtualNodes) {
        await this.#serve(name).catch((error: unknown) => {
          if (!hasCode(error, 'NotFound', 'Conflict', 'AlreadyExists')) throw error;
        });
      }
      await systemClock.sleep(TICK_MS, signal).catch(() => undefined);
    }
  }

  async #serve(name: string): Promise<void> {
    const admin = this.#admin;
    const found = await admin.get(virtualNodes, { name }).catch(() => undefined);
    if (found === undefined) return admin.delete(nodes, { name });
    const labels = { ...found.spec.labels, [LABEL_VIRTUAL_NODE]: name };
    const node = await admin.get(nodes, { name }).catch(() => undefined);
    const { taints = [] } = found.spec;
    if (node === undefined) {
      await admin.create(nodes, { metadata: { name, labels }, spec: { taints } });
      await admin.create(leases, {
        metadata: { name, namespace: 'kube-node-lease' },
        spec: { holderIdentity: name },
      });
    } else if (JSON.stringify(node.spec?.taints ?? []) !== JSON.stringify(taints)) {
      await admin.patch(nodes, { name }, { type: 'merge', body: { spec: { taints } } });
    }
    if (found.status === undefined) {
      const condition = {
        type: 'Ready',
        status: 'True' as const,
        reason: 'AsExpected',
        message: 'takes pods',
      };
      const conditions = [{ ...condition, lastTransitionTime: new Date(systemClock.now()).toISOString() }];
      const object = { apiVersion: API_VERSION, kind: 'VirtualNode', ...found, status: { conditions } };
      await admin.replace(virtualNodes, object, { subresource: 'status' });
    }
    if (this.stubborn) return;
    const { items } = await admin.list(pods, { fieldSelector: `spec.nodeName=${name}` });
    for (const { metadata } of items.filter((pod) => pod.metadata.deletionTimestamp !== undefined)) {
      await admin.delete(pods, metadata, { gracePeriodSeconds: 0 });
    }
  }
}
