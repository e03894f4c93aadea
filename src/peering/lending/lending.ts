import { isClusterID } from '../../api/forms.ts';
import { type PeeringRequest, peeringRequests } from '../../api/peering-request.ts';
import { runtimeClasses } from '../../api/resources.ts';
import { sharingPolicies, type SharingPolicy } from '../../api/sharing-policy.ts';
import { TenantDirectory } from '../../hosting/guests/tenant-directory.ts';
import { Tenants } from '../../hosting/tenants/tenants.ts';
import type { Cache } from '../../kube/cache.ts';
import type { Caches } from '../../kube/caches.ts';
import { Controller, type ControllerMetrics } from '../../kube/controller.ts';
import type { Random } from '../../lib/backoff.ts';
import { deepEqual } from '../../lib/equality.ts';
import { TributaryError } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import { JoinTokens } from '../identity/join-tokens.ts';
import { freeOf, lentNames } from '../offer/free.ts';
import type { StockWatcher } from '../offer/stock-watcher.ts';
import type { PolicyConditions, PolicyEffect } from '../policy/policy-status.ts';
import type { LendingSide, PeerIdentity, PeeringReport } from '../ports.ts';
import type {
  ApiAccess,
  Credential,
  DocumentChanges,
  Documents,
  RenewParams,
  RenewResult,
} from '../protocol/documents.ts';
import { GuestPolicies } from '../../hosting/tenants/guest-policies.ts';
import { ApiAccessFinder } from './api-access.ts';
import { Credentials } from './credentials.ts';
import { Fences } from './fences.ts';
import { grantOf, isInForce, isServed, offerDocumentOf, reportOf } from './grant.ts';
import { Inbox } from './inbox.ts';
import { Offers } from './offers.ts';
import { keepOverhead, podOverheadOf, type RuntimeClass } from './pod-overhead.ts';
import { policyConditions } from './policy-conditions.ts';
import { Reconciler, type ReconcilerOptions } from './reconciler.ts';
import { Suspensions } from './suspension.ts';

export type { LendingIntent } from './intent.ts';

export interface LendingOptions extends Pick<
  ReconcilerOptions,
  'client' | 'clock' | 'log' | 'events' | 'identity' | 'links' | 'withdrawalGraceMs' | 'endGraceMs'
> {
  caches: Caches;
  metrics?: ControllerMetrics;
  random?: Random;
  /** Where we run, and where join tokens are kept. */
  systemNamespace: string;
  stock: Pick<StockWatcher, 'stock' | 'usage' | 'onChange'>;
  /** Called from `start` on; so parts that need each other can be made in any order. */
  intents: ReconcilerOptions['intents'] & {
    onChange(listener: (clusterID: string) => void): () => void;
  };
  /** Where peers find our API server, where people say so; else it is looked for. */
  api?: ApiAccess;
  /** How we reach it ourselves: what is told where nothing better is found. */
  ownApi?: ApiAccess;
  /** Life of a peer's token, seconds. Default 3600, at least 600. */
  tokenSeconds?: number;
  /** How long to wait for a new quota to be in force, milliseconds. Default 5000. */
  quotaPatienceMs?: number;
}

const CONCURRENCY = 4;

/** We as provider: who may use us, what is offered, tenants, tokens, and the end of all that. */
export class Lending implements LendingSide {
  readonly tokens: JoinTokens;
  /** For admission over pods of peers; filled when the components have started. */
  readonly tenants: TenantDirectory;
  readonly #options: LendingOptions;
  readonly #requests: Cache<PeeringRequest>;
  readonly #policies: Cache<SharingPolicy>;
  readonly #runtimeClasses: Cache<RuntimeClass>;
  readonly #tenants: Tenants;
  readonly #guestPolicies: GuestPolicies;
  readonly #stock: LendingOptions['stock'];
  readonly #offers: Offers;
  readonly #api: ApiAccessFinder;
  readonly #credentials: Credentials;
  readonly #fences: Fences;
  readonly #inbox: Inbox;
  readonly #suspensions = new Suspensions();
  readonly #controller: Controller;
  readonly #changed = new Listeners<[clusterID: string]>();
  /** Calls back when documents or report of that peer may have changed; the returned function ends that. */
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#changed.add;
  readonly #policyChanged = new Listeners<[policy: string]>();
  /** Calls back when `effectOf` or `conditionsOf` that policy may answer something else; not for what is free. */
  readonly onPolicy: Listeners<[policy: string]>['add'] = this.#policyChanged.add;

  constructor(options: LendingOptions) {
    this.#options = options;
    const { client, caches, clock, identity, systemNamespace, metrics, random } = options;
    const { quotaPatienceMs, links, stock } = options;
    const log = options.log.named('lending');
    const common = { client, clock, log, ...(random && { random }) };
    this.#requests = caches.of(peeringRequests);
    this.#policies = caches.of(sharingPolicies);
    this.#runtimeClasses = caches.of(runtimeClasses, { transform: keepOverhead });
    this.#tenants = new Tenants({
      ...common,
      caches,
      ...(quotaPatienceMs !== undefined && { quotaPatienceMs }),
      systemNamespace,
    });
    this.#guestPolicies = new GuestPolicies({ ...options, log });
    this.tenants = this.#makeDirectory();
    const { clusterID } = identity;
    this.#inbox = new Inbox({
      clock,
      own: clusterID,
      requests: this.#requests,
      links,
      heard: (peer) => this.#controller.add(peer),
    });
    this.tokens = new JoinTokens({ ...common, namespace: systemNamespace, clusterID });
    this.#stock = stock;
    const stored = { requests: this.#requests, policies: this.#policies, tenants: this.#tenants };
    this.#offers = new Offers({
      ...stored,
      identity,
      stock,
      overheadOf: (name) => podOverheadOf(this.#runtimeClasses.get(name)),
    });
    this.#credentials = new Credentials(options);
    this.#api = this.#makeApi();
    this.#fences = new Fences({
      ...common,
      systemNamespace,
      requests: this.#requests,
      changed: (peer) => this.#add(peer),
    });
    const reconciler = new Reconciler({
      ...options,
      ...stored,
      log,
      inbox: this.#inbox,
      offers: this.#offers,
      tokens: this.tokens,
      fences: this.#fences,
      suspensions: this.#suspensions,
    });
    this.#controller = new Controller({
      ...common,
      name: 'lending',
      concurrency: CONCURRENCY,
      reconcile: async (key, context) => reconciler.reconcile(key, context),
      ...(metrics && { metrics }),
    });
  }

  #makeDirectory(): TenantDirectory {
    return new TenantDirectory({
      tenants: this.#tenants,
      policiesOf: (peer) => this.#guestPolicies.countOf(peer),
      request: (peer) => this.#requests.get(peer),
    });
  }

  #makeApi(): ApiAccessFinder {
    const { client, clock, random, systemNamespace, api: given, ownApi: own } = this.#options;
    const log = this.#options.log.named('lending');
    return new ApiAccessFinder({
      client,
      clock,
      log,
      systemNamespace,
      ...present({ random, given, own }),
    });
  }

  /** All who ask. */
  requests(): Iterable<PeeringRequest> {
    return this.#requests.list();
  }

  request(clusterID: string): PeeringRequest | undefined {
    return this.#requests.get(clusterID);
  }

  /** In the order in which they are to be started; after the stock, before links. */
  components(): Component[] {
    return [
      this.#requests,
      this.#policies,
      this.#runtimeClasses,
      ...this.#tenants.components(),
      this.#guestPolicies,
      this.#api,
      this.tokens.janitor(),
      subscribing('lending triggers', () => this.#follow()),
      this.#controller,
    ];
  }

  /** What makes us look at a peer again. */
  #follow(): (() => void)[] {
    const ends = [
      this.#requests.onChange((key, current, previous) => this.#onRequest(key, current, previous)),
      this.#policies.onChange((_key, current, previous) => {
        if (!deepEqual(current?.spec, previous?.spec)) this.#addAll();
        // It may let in whoever waits for an object.
        for (const peer of this.#inbox.asking()) this.#add(peer);
      }),
      this.#tenants.onChange((peer) => this.#add(peer)),
      this.#tenants.onFreed(() => this.#addWithheld()),
      this.#runtimeClasses.onChange((_key, current, previous) => {
        if (!deepEqual(current?.overhead, previous?.overhead)) this.#addAll();
        if ((current === undefined) === (previous === undefined)) return;
        for (const { metadata } of this.#policies.list()) this.#policyChanged.tell(metadata.name);
      }),
      this.#stock.onChange(() => this.#addAll()),
      this.#options.intents.onChange((peer) => {
        if (this.#requests.get(peer) !== undefined || this.#inbox.of(peer).request) this.#add(peer);
      }),
      this.#api.onChange(() => {
        for (const { metadata } of this.#requests.list()) this.#changed.tell(metadata.name);
      }),
    ];
    this.#addAll();
    // Also peers without a request of which something is left.
    for (const peer of this.#tenants.peers()) this.#add(peer);
    return ends;
  }

  #onRequest(key: string, current: PeeringRequest | undefined, previous: PeeringRequest | undefined): void {
    this.#add(key);
    this.#changed.tell(key);
    // What one peer was promised or may still take is not free for the others.
    if (!deepEqual(promiseOf(current), promiseOf(previous))) this.#addAll();
    for (const { status } of [current, previous].filter((it) => it !== undefined)) {
      if (status?.policy !== undefined) this.#policyChanged.tell(status.policy);
    }
  }

  #addAll(): void {
    for (const { metadata } of this.#requests.list()) this.#add(metadata.name);
  }

  /** Adds the peers with withheld namespaces: a name may have become free for them. */
  #addWithheld(): void {
    for (const { metadata, status } of this.#requests.list()) {
      if (status?.withheld !== undefined) this.#add(metadata.name);
    }
  }

  /** We ignore objects with another name: the API server refuses a PeeringRequest whose name is not its ClusterID. */
  #add(peer: string): void {
    if (isClusterID(peer)) this.#controller.add(peer);
  }

  documents(clusterID: string): Pick<Documents, 'offer' | 'grant'> {
    const request = this.#requests.get(clusterID);
    if (request === undefined) return {};
    const offer = offerDocumentOf(request, this.#options.identity);
    return { ...(offer && { offer }), grant: grantOf(request, this.#api.current) };
  }

  /** Keeps what was said; the controller acts on it. Throws Invalid or TooManyRequests, for the peer to read. */
  async received(
    peer: PeerIdentity,
    changes: Pick<DocumentChanges, 'request' | 'acceptance'>,
  ): Promise<void> {
    await Promise.resolve();
    this.#inbox.take(peer, changes);
  }

  /** Forbidden unless a contract is in force. */
  async credential({ clusterID }: PeerIdentity, signal: AbortSignal): Promise<Credential> {
    const request = this.#requests.get(clusterID);
    if (request === undefined || !isServed(request)) {
      throw new TributaryError(
        'Forbidden',
        'no contract is in force, so there is nothing to have a credential for',
      );
    }
    const credential = await this.#credentials.issue(clusterID, signal);
    this.#inbox.note(clusterID, { credentialExpires: credential.expires });
    this.#controller.add(clusterID);
    return credential;
  }

  /** Whether a peer's streams to our API server may be open. */
  serves(clusterID: string): boolean {
    const request = this.#requests.get(clusterID);
    return request !== undefined && isServed(request);
  }

  /** For a device whose pods are to run here only while it is heard. Throws Forbidden for others. */
  async renew({ clusterID }: PeerIdentity, params: RenewParams, signal: AbortSignal): Promise<RenewResult> {
    return this.#fences.renew(clusterID, params, signal);
  }

  /** Takes a peer's rights for a while; `why` is for people, here and over there. */
  suspend(clusterID: string, why: string): void {
    if (this.#requests.get(clusterID) === undefined) return;
    this.#suspensions.note(clusterID, why);
    this.#add(clusterID);
  }

  /** The policy that decides about a peer whose contract is in force. */
  policyOf(clusterID: string): SharingPolicy | undefined {
    const request = this.#requests.get(clusterID);
    return request !== undefined && isInForce(request) ? this.#decidingOn(request) : undefined;
  }

  /**
   * Whether a peer's pods here are kept from the API server of their home. Holds from the decision on: the network joins both
   * clusters before the contract is in force.
   */
  forbidsHomeApiServer(clusterID: string): boolean {
    const request = this.#requests.get(clusterID);
    return request !== undefined && this.#decidingOn(request)?.spec.homeApiServer === 'Forbid';
  }

  #decidingOn({ status: { policy } = {} }: PeeringRequest): SharingPolicy | undefined {
    return policy === undefined ? undefined : this.#policies.get(policy);
  }

  report(clusterID: string): PeeringReport {
    return reportOf(this.#requests.get(clusterID));
  }

  /** By ClusterID, for all that ask or have asked. */
  *reports(): Iterable<[string, PeeringReport]> {
    for (const request of this.#requests.list()) yield [request.metadata.name, reportOf(request)];
  }

  /** What a policy does today; throws Invalid for quantities in it that cannot be read. */
  effectOf(policy: SharingPolicy): PolicyEffect {
    const peers = this.#under(policy).map(({ metadata }) => metadata.name);
    return { peers, free: freeOf(this.#stock.stock(), policy, this.#offers.promised()) };
  }

  /** What people are to be told of a policy besides. */
  conditionsOf(policy: SharingPolicy): PolicyConditions {
    const hasRuntimeClass = (name: string): boolean => this.#runtimeClasses.get(name) !== undefined;
    const stock = this.#stock.stock();
    const { priorityClasses } = stock;
    const found = { hasRuntimeClass, priorityClasses, lent: lentNames(stock, policy) };
    return policyConditions(policy, { peers: this.#under(policy), ...found });
  }

  #under({ metadata: { name } }: SharingPolicy): PeeringRequest[] {
    return [...this.#requests.list()].filter(({ status }) => status?.policy === name);
  }
}

const promiseOf = (request: PeeringRequest | undefined): readonly unknown[] => [
  request?.status?.promised,
  request?.status?.contract?.text,
  request?.status?.offer?.namespaces,
];
