import type { AcceptancePolicy } from '../../../../../src/api/acceptance-policy.ts';
import { type Advertisement, advertisements } from '../../../../../src/api/advertisement.ts';
import { namespaces, pods } from '../../../../../src/api/resources.ts';
import { type VirtualNode, virtualNodes } from '../../../../../src/api/virtual-node.ts';
import { Caches } from '../../../../../src/kube/caches.ts';
import { errorMessage, TributaryError } from '../../../../../src/lib/errors.ts';
import { Lifecycle } from '../../../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../../../src/lib/log.ts';
import { Borrowing, type BorrowingOptions } from '../../../../../src/peering/borrowing/borrowing.ts';
import type { BorrowingIntent } from '../../../../../src/peering/borrowing/facts.ts';
import { Identity } from '../../../../../src/peering/identity/identity.ts';
import type { LinkView, PeerLinks } from '../../../../../src/peering/ports.ts';
import { FakeApi } from '../../../../support/fake-api/fake-api.ts';
import type { AnyObject } from '../../../../support/fake-api/storage.ts';
import { FakeClock } from '../../../../support/fake-clock.ts';
import { FakeAgents, LEASES, VIRTUAL_NODES } from './fake-agents.ts';
import { ScriptedProvider } from './scripted-provider.ts';

const TOKEN = 'cluster-role';
/** In which a peering has come to an end with whatever it was given to do. */
const PATIENCE_MS = 200_000;
const ADVERTISEMENTS = 'advertisements.tributary.dev';

/** Of an agent, at one of its writes. */
export interface Crash {
  crashed: () => boolean;
  /** Resolves when it happens. */
  crash: Promise<void>;
}

export interface Running {
  borrowing: Borrowing;
  /** As kill -9: nothing of it arrives anywhere any more. */
  kill(): void;
  stop(): Promise<void>;
}

export const policy = (spec: Partial<AcceptancePolicy['spec']> = {}): AcceptancePolicy => ({
  metadata: { name: 'all', uid: 'p', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { peers: { anyone: true }, approval: 'Automatic', namespaces: ['shop'], ...spec },
});

/** A home cluster, one provider as a script, agents as they look from outside, and consumers that come and go. */
export class World {
  readonly clock: FakeClock = new FakeClock();
  readonly identity: Identity = Identity.generate();
  readonly #tokens = new Set([TOKEN]);
  readonly home: FakeApi;
  readonly provider: ScriptedProvider;
  readonly agents: FakeAgents;
  readonly events: string[] = [];
  readonly refusals: string[] = [];
  readonly reach = { opened: 0, closed: 0 };
  intent: BorrowingIntent = { wanted: true, namespaces: [], policy: policy() };
  connected = true;
  clusterName = 'Milan';
  calls = 0;
  callFails = false;
  readonly #running = new Set<Running>();
  readonly #wishListeners = new Set<(clusterID: string) => void>();
  readonly #linkListeners = new Set<(key: { clusterID?: string }) => void>();
  readonly #more: Partial<BorrowingOptions>;

  constructor(more: Partial<BorrowingOptions> = {}) {
    const { clock } = this;
    this.#more = more;
    this.home = new FakeApi({ clock, types: [virtualNodes, advertisements], tokens: this.#tokens });
    this.provider = new ScriptedProvider(this.identity.clusterID, clock);
    this.agents = new FakeAgents(this.home);
  }

  /** Sets the wall clock forward; nobody is woken by that. */
  jump(ms: number): void {
    this.clock.jump(ms);
  }

  get id(): string {
    return this.provider.identity.clusterID;
  }

  async up(): Promise<this> {
    for (const name of ['shop', 'spare', 'kube-system', 'tributary-system']) {
      this.home.seed(namespaces, { metadata: { name } });
    }
    return this;
  }

  async down(): Promise<void> {
    for (const one of this.#running) await one.stop();
  }

  async start(): Promise<Running> {
    const client = this.home.client({ token: async () => TOKEN });
    let alive = true;
    const borrowing: Borrowing = new Borrowing({
      client,
      caches: new Caches({ client, clock: this.clock, log: silentLogger }),
      identity: this.identity,
      clusterName: 'rome',
      intents: {
        intent: (clusterID) => (clusterID === this.id ? this.intent : { wanted: false, namespaces: [] }),
        onChange: (listener) => subscribed(this.#wishListeners, listener),
      },
      links: () =>
        this.#links(
          () => borrowing,
          () => alive,
        ),
      reach: {
        open: async () => {
          this.reach.opened++;
          return Promise.resolve({ server: 'https://127.0.0.1:4443' });
        },
        close: async () => {
          this.reach.closed++;
          await Promise.resolve();
        },
      },
      launcher: this.agents.launcher(() => alive),
      systemNamespace: 'tributary-system',
      events: { event: (_subject, _type, reason, message) => this.events.push(`${reason}: ${message}`) },
      clock: this.clock,
      log: silentLogger,
      ...this.#more,
    });
    const lifecycle = new Lifecycle(borrowing.components(), {
      clock: this.clock,
      log: silentLogger,
      stopDeadlineMs: PATIENCE_MS,
    });
    const running: Running = {
      borrowing,
      kill: () => {
        alive = false;
      },
      stop: async () => {
        if (!this.#running.delete(running)) return;
        alive = false;
        await this.clock.during('borrowing stops', lifecycle.stop());
        await client.close();
      },
    };
    this.#running.add(running);
    const started = lifecycle.start(new AbortController().signal).then(() => {
      this.#exchange(borrowing, () => alive);
      for (const listener of this.#wishListeners) listener(this.id);
    });
    await this.clock.during('borrowing starts', started);
    return running;
  }

  /** A fresh process takes over from those that are killed. */
  async replaceAll(): Promise<Running> {
    this.silence();
    for (const one of this.#running) await one.stop();
    this.#tokens.add(TOKEN);
    return this.start();
  }

  silence(): void {
    for (const one of this.#running) one.kill();
    this.#tokens.clear();
    this.home.cut();
  }

  /** The `k`-th write from now on is the last: lost on the way, or stored with its answer lost. */
  crashAt(k: number, when: 'before' | 'after'): Crash {
    let seen = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const crash = (): void => {
      this.silence();
      resolve();
    };
    const match = ({ method }: { method: string }): boolean => {
      if (method === 'GET' || ++seen !== k) return false;
      if (when === 'before') crash();
      // The request is served before the next microtask.
      else queueMicrotask(crash);
      return false;
    };
    this.home.fault({ match, times: Infinity });
    return { crashed: () => seen >= k, crash: promise };
  }

  want(intent: Partial<BorrowingIntent>): void {
    this.intent = { ...this.intent, ...intent };
    for (const listener of this.#wishListeners) listener(this.id);
  }

  /** The provider has something new to say. */
  say(): void {
    for (const listener of this.#exchanges) listener();
  }

  link(connected: boolean): void {
    this.connected = connected;
    if (connected) this.say();
    for (const listener of this.#linkListeners) listener({ clusterID: this.id });
  }

  addPod(name: string, node: string, more: Record<string, unknown> = {}): void {
    this.home.seed(pods, {
      metadata: { name, namespace: 'shop', ...more },
      spec: { nodeName: node, containers: [{ name: 'main', image: 'web' }] },
      status: { phase: 'Running' },
    });
  }

  get advertisement(): Advertisement | undefined {
    return this.home.storage.get(ADVERTISEMENTS, this.id) as unknown as Advertisement | undefined;
  }

  patchAdvertisement(spec: Partial<Advertisement['spec']>): void {
    const { storage } = this.home;
    const object = storage.get(ADVERTISEMENTS, this.id);
    if (object === undefined) throw new Error('no Advertisement');
    storage.update(ADVERTISEMENTS, { ...object, spec: { ...object.spec, ...spec } });
  }

  virtualNode(name: string): VirtualNode | undefined {
    return this.home.storage.get(VIRTUAL_NODES, name) as unknown as VirtualNode | undefined;
  }

  get secret(): AnyObject | undefined {
    return this.home.storage.get('secrets', `tributary-system/tributary-kubeconfig-${this.id}`);
  }

  kubeconfigText(): string | undefined {
    const data = this.secret?.['data'] as { kubeconfig: string } | undefined;
    return data === undefined ? undefined : Buffer.from(data.kubeconfig, 'base64').toString();
  }

  get kubeconfig(): { server: string; token: string; name: string | undefined } | undefined {
    const text = this.kubeconfigText();
    if (text === undefined) return undefined;
    const { clusters, users } = JSON.parse(text) as {
      clusters: { cluster: Record<string, string> }[];
      users: { user: { token: string } }[];
    };
    const { server = '', 'tls-server-name': name } = clusters[0]?.cluster ?? {};
    return { server, name, token: users[0]?.user.token ?? '' };
  }

  condition(type: string): { status: string; reason: string; message: string } | undefined {
    return this.advertisement?.status?.conditions?.find((one) => one.type === type);
  }

  /** Everything in this cluster that is there because of the provider. */
  leftovers(): string[] {
    const { storage } = this.home;
    const kinds = [ADVERTISEMENTS, VIRTUAL_NODES, 'nodes', 'pods', 'secrets', LEASES];
    return [
      ...kinds.flatMap((kind) => storage.list(kind).map(({ metadata }) => `${kind}/${metadata.name}`)),
      ...[...this.agents.running.keys()].map((id) => `agent of ${id}`),
      ...(this.provider.request === undefined ? [] : ['the request']),
    ];
  }

  /** Lets time pass until the condition holds. */
  async until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    await this.clock.until(what, condition, PATIENCE_MS);
  }

  async established(): Promise<void> {
    await this.until('established', () => this.condition('VirtualNodeReady')?.status === 'True');
  }

  async gone(): Promise<void> {
    try {
      await this.until('gone', () => this.leftovers().length === 0);
    } catch (error) {
      throw new Error(`${errorMessage(error)}: ${this.leftovers().join(', ')}`, { cause: error });
    }
  }

  readonly #exchanges = new Set<() => void>();

  #links(
    borrowing: () => Borrowing,
    isAlive: () => boolean,
  ): Pick<PeerLinks, 'view' | 'publish' | 'call' | 'onChange'> {
    const view = (clusterID: string): LinkView | undefined =>
      clusterID === this.id && this.connected
        ? {
            clusterID,
            connected: true,
            clusterName: this.clusterName,
            peerEndpoints: [],
            publicKey: this.provider.identity.publicKey,
            networkKeys: [],
          }
        : undefined;
    return {
      view,
      publish: () => queueMicrotask(() => this.#exchange(borrowing(), isAlive)),
      call: async (_clusterID, method) => {
        this.calls++;
        await Promise.resolve();
        if (!this.connected || !isAlive() || this.callFails)
          throw new TributaryError('Unreachable', 'no link');
        if (method !== 'credential') throw new Error(method);
        return this.provider.credential();
      },
      onChange: (listener) => subscribed(this.#linkListeners, listener),
    };
  }

  /** As a link does: both say the whole of their state, where it differs from what was said last. */
  #exchange(borrowing: Borrowing, isAlive: () => boolean): void {
    const last = { theirs: '', ours: '' };
    const peer = { clusterID: this.id, publicKey: this.provider.identity.publicKey };
    const exchange = (): void => {
      if (!isAlive() || !this.connected) {
        last.theirs = '';
        last.ours = '';
        return;
      }
      let documents: ReturnType<Borrowing['documents']>;
      try {
        documents = borrowing.documents(this.id);
      } catch {
        return;
      }
      const ours = JSON.stringify(documents);
      if (ours !== last.ours) this.provider.received(documents);
      last.ours = ours;
      const { offer = null, grant = null } = this.provider.documents();
      const theirs = JSON.stringify({ offer, grant });
      if (theirs === last.theirs) return;
      last.theirs = theirs;
      borrowing.received(peer, { offer, grant }).catch((error: unknown) => {
        this.refusals.push(errorMessage(error));
      });
    };
    const known = this.#exchangeOf.get(borrowing);
    if (known !== undefined) return known();
    this.#exchangeOf.set(borrowing, exchange);
    this.#exchanges.add(exchange);
    exchange();
  }

  readonly #exchangeOf = new WeakMap<Borrowing, () => void>();
}

function subscribed<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
