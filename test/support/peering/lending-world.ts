/** Lending against one API server, real or simulated, with the rest of peering played by the test. */
import type { PeeringWish } from '../../../src/api/foreign-cluster.ts';
import type { Contract } from '../../../src/api/offer.ts';
import { type PeeringRequest, peeringRequests } from '../../../src/api/peering-request.ts';
import { namespaces, nodes, serviceAccounts } from '../../../src/api/resources.ts';
import {
  sharingPolicies,
  type SharingPolicy,
  type SharingPolicySpec,
} from '../../../src/api/sharing-policy.ts';
import { Caches } from '../../../src/kube/caches.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { deepEqual } from '../../../src/lib/equality.ts';
import { hasCode } from '../../../src/lib/errors.ts';
import { type Component, Lifecycle } from '../../../src/lib/lifecycle.ts';
import { silentLogger } from '../../../src/lib/log.ts';
import { contractText, draftContract } from '../../../src/peering/contract.ts';
import { Identity } from '../../../src/peering/identity/identity.ts';
import { Lending, type LendingOptions } from '../../../src/peering/lending/lending.ts';
import { StockWatcher } from '../../../src/peering/offer/stock-watcher.ts';
import { PolicyStatusKeeper } from '../../../src/peering/policy/policy-status.ts';
import type { LinkView, OwnIdentity } from '../../../src/peering/ports.ts';
import type {
  AcceptanceDocument,
  Documents,
  RequestDocument,
} from '../../../src/peering/protocol/documents.ts';
import { eventually } from '../eventually.ts';
import { FakeClock } from '../fake-clock.ts';

export const API = { server: 'https://provider.example:6443' };

export interface Noted {
  type: string;
  reason: string;
  message: string;
}

export class LendingWorld {
  /** Lending's own, with its rights. */
  readonly client: KubeClient;
  /** A person's. */
  readonly admin: KubeClient;
  readonly clock: Clock;
  readonly identity: OwnIdentity;
  readonly events: Noted[] = [];
  /** As in ForeignClusters. */
  readonly incoming: Map<string, PeeringWish> = new Map();
  readonly networkKeys: Map<string, string[]> = new Map();
  readonly linked: Set<string> = new Set();
  readonly #wishListeners = new Set<(clusterID: string) => void>();
  readonly #options: Partial<LendingOptions>;
  #lending: Lending | undefined;
  #lifecycle: Lifecycle | undefined;

  constructor(client: KubeClient, options: Partial<LendingOptions> = {}, admin: KubeClient = client) {
    this.client = client;
    this.admin = admin;
    this.#options = options;
    this.identity = options.identity ?? Identity.generate();
    this.clock = options.clock ?? systemClock;
  }

  get lending(): Lending {
    if (this.#lending === undefined) throw new Error('lending is not running');
    return this.#lending;
  }

  async start(): Promise<this> {
    const { client, identity } = this;
    const own = { client, clock: this.clock, log: silentLogger };
    const common = { ...own, caches: new Caches(own) };
    const stock = new StockWatcher(common);
    this.#lending = new Lending({
      ...common,
      identity,
      stock,
      systemNamespace: 'tributary-system',
      api: API,
      withdrawalGraceMs: 0,
      events: {
        event: (_subject, type, reason, message) => void this.events.push({ type, reason, message }),
      },
      intents: {
        intent: (clusterID) => ({
          incoming: this.incoming.get(clusterID) ?? 'Auto',
          facts: {
            clusterID,
            labels: {},
            foundBy: ['Incoming'],
            networkKeys: this.networkKeys.get(clusterID) ?? [],
          },
        }),
        onChange: (listener) => {
          this.#wishListeners.add(listener);
          return () => this.#wishListeners.delete(listener);
        },
      },
      links: { view: (clusterID) => (this.linked.has(clusterID) ? ({ clusterID } as LinkView) : undefined) },
      ...this.#options,
    });
    const components = [stock, ...this.#lending.components(), ...this.#policyStatus(common)];
    const lifecycle = new Lifecycle(components, {
      clock: this.clock,
      log: silentLogger,
      stopDeadlineMs: 10_000,
    });
    this.#lifecycle = lifecycle;
    await this.#during('lending starts', lifecycle.start(new AbortController().signal));
    return this;
  }

  #policyStatus(common: Pick<LendingOptions, 'client' | 'caches' | 'clock' | 'log'>): Component[] {
    const { lending } = this;
    const policies = common.caches.of(sharingPolicies);
    const keeper = new PolicyStatusKeeper<SharingPolicy>({
      ...common,
      type: sharingPolicies,
      policies,
      effect: (policy) => lending.effectOf(policy),
      conditions: (policy) => lending.conditionsOf(policy),
      onChange: (listener) => lending.onPolicy(listener),
    });
    return [policies, keeper];
  }

  async stop(): Promise<void> {
    if (this.#lifecycle !== undefined) await this.#during('lending stops', this.#lifecycle.stop());
    this.#lifecycle = undefined;
  }

  /** Uses the clock of this world, real or fake. */
  async until(what: string, condition: () => boolean | Promise<boolean>, limitMs?: number): Promise<void> {
    const { clock } = this;
    if (clock instanceof FakeClock) await clock.until(what, condition, limitMs);
    else await eventually(what, condition, limitMs);
  }

  async #during(what: string, work: Promise<void>): Promise<void> {
    await (this.clock instanceof FakeClock ? this.clock.during(what, work) : work);
  }

  intent(clusterID: string, incoming: PeeringWish): void {
    this.incoming.set(clusterID, incoming);
    for (const listener of this.#wishListeners) listener(clusterID);
  }

  async policy(spec: Partial<SharingPolicySpec> = {}, name = 'everybody'): Promise<void> {
    const metadata = { name };
    const body = {
      apiVersion: 'tributary.dev/v1alpha1',
      kind: 'SharingPolicy',
      metadata,
      spec: { peers: { anyone: true }, approval: 'Automatic' as const, ...spec },
    };
    await this.admin.create(sharingPolicies, body);
  }

  async changePolicy(spec: Partial<SharingPolicySpec>, name = 'everybody'): Promise<void> {
    await this.admin.patch(sharingPolicies, { name }, { type: 'merge', body: { spec } });
  }

  async node(name: string, allocatable: Record<string, string>): Promise<void> {
    const conditions = [{ type: 'Ready', status: 'True' }];
    const nodeInfo = { architecture: 'amd64', operatingSystem: 'linux', kubeletVersion: 'v1.35.0' };
    const status = { allocatable, capacity: allocatable, conditions, nodeInfo };
    const metadata = {
      name,
      labels: { 'example.com/lends': 'yes' },
      // Where kwok runs, it ends pods as a kubelet would.
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
    };
    await this.admin.create(nodes, { metadata });
    // More than once: kwok gives a new node a status of its own.
    await this.until(`node ${name} is as wanted`, async () => {
      const node = await this.admin.get(nodes, { name });
      const isReady = node.status?.conditions?.some((it) => it.type === 'Ready' && it.status === 'True');
      if (isReady === true && deepEqual(node.status?.allocatable, allocatable)) return true;
      const body = [{ op: 'add' as const, path: '/status', value: status }];
      await this.admin.patch(nodes, { name }, { type: 'json', body }, { subresource: 'status' });
      return false;
    });
  }

  /** A new one, or one that was known before. */
  peer(identity: Identity = Identity.generate()): Peer {
    return new Peer(this, identity);
  }

  async exists(namespace: string): Promise<boolean> {
    return isThere(this.admin.get(namespaces, { name: namespace }));
  }
}

/** A consumer, as far as its provider sees of it. */
export class Peer {
  readonly identity: Identity;
  readonly #world: LendingWorld;

  constructor(world: LendingWorld, identity: Identity) {
    this.identity = identity;
    this.#world = world;
    world.linked.add(this.id);
  }

  get id(): string {
    return this.identity.clusterID;
  }

  async ask(request: Partial<RequestDocument> | null = {}): Promise<void> {
    const document = request && { clusterName: 'rome', namespaces: ['shop'], ...request };
    await this.#world.lending.received(this.identity, { request: document });
  }

  get told(): Pick<Documents, 'offer' | 'grant'> {
    return this.#world.lending.documents(this.id);
  }

  /** What it would sign for the offer that it has. */
  acceptance(change: Partial<Contract> = {}, signer: Identity = this.identity): AcceptanceDocument {
    const offer = this.told.offer?.offer;
    if (offer === undefined) throw new Error('there is no offer');
    const contract = { ...draftContract(offer, offer.resources, this.#world.clock.now()), ...change };
    const text = contractText(contract);
    return { text, signature: signer.sign('contract', text) };
  }

  async accept(acceptance: AcceptanceDocument | null = this.acceptance()): Promise<void> {
    await this.#world.lending.received(this.identity, { acceptance });
  }

  async offered(): Promise<void> {
    await this.#world.until('an offer', () => this.told.offer !== undefined);
  }

  async granted(state: string): Promise<void> {
    await this.#until(`the grant is ${state}`, () => this.told.grant?.state === state);
  }

  async #until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    try {
      await this.#world.until(what, condition);
    } catch (cause) {
      throw new Error(`${String(cause)}; it is ${JSON.stringify(this.told.grant)}`, { cause });
    }
  }

  /** From the request to the contract in force. */
  async peered(request: Partial<RequestDocument> = {}): Promise<void> {
    await this.ask(request);
    await this.offered();
    let accepted: number | undefined;
    await this.#until('the grant is Active', async () => {
      const { offer, grant } = this.told;
      const generation = offer?.offer.generation;
      // A home does the same: its acceptance may be outdated when it arrives.
      if (generation !== accepted) await this.accept();
      accepted = generation;
      return grant?.state === 'Active';
    });
  }

  async object(): Promise<PeeringRequest> {
    return this.#world.admin.get(peeringRequests, { name: this.id });
  }

  tenant(home = 'shop'): string {
    return `${home}-${this.id.slice(0, 8)}`;
  }

  async hasAccount(): Promise<boolean> {
    return isThere(this.#world.admin.get(serviceAccounts, { namespace: 'tributary-peers', name: this.id }));
  }
}

async function isThere(reading: Promise<unknown>): Promise<boolean> {
  try {
    await reading;
    return true;
  } catch (error) {
    if (hasCode(error, 'NotFound')) return false;
    throw error;
  }
}
