import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import type { NamespaceMappingState } from '../../api/namespace-offloading.ts';
import type { SignedContract } from '../../api/offer.ts';
import type { HomeApiServer } from '../../api/virtual-node.ts';
import type { Caches } from '../../kube/caches.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Controller, type ControllerMetrics } from '../../kube/controller.ts';
import type { DrainLimits } from '../../kube/drain-stage.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { type Random, systemRandom } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode, TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import { isSignedBy } from '../contract.ts';
import { checkOffer } from '../offer/check.ts';
import type { PolicyEffect } from '../policy/policy-status.ts';
import type {
  AgentLauncher,
  ApiReach,
  BorrowingSide,
  NamespaceOffloadings,
  OwnIdentity,
  PeerIdentity,
  PeeringReport,
  PeerLinks,
} from '../ports.ts';
import type { DocumentChanges, Documents, GrantDocument, OfferDocument } from '../protocol/documents.ts';
import { AccessKeeper } from './access.ts';
import { BorrowingCaches } from './caches.ts';
import { CredentialKeeper } from './credentials.ts';
import { decide, readContract } from './decide.ts';
import type { BorrowingWish, Facts } from './facts.ts';
import { Hearing } from './inbox.ts';
import { documentsOf, isNamed, standingOf, standingsOf, wantedNamespaces } from './namespaces.ts';
import { NodeSetup } from './node-setup.ts';
import { probe } from './probe.ts';
import { Reconciler } from './reconciler.ts';
import { reportOf } from './report.ts';
import { AgentSetup, Setup } from './setup.ts';
import { BORROWING_EVENTS } from './status.ts';
import { Teardown } from './teardown.ts';

interface BorrowingWishes {
  wish(clusterID: string): BorrowingWish;
  /** Calls back with each ClusterID whose wish may have changed; the returned function ends that. */
  onChange(listener: (clusterID: string) => void): () => void;
}

export interface BorrowingOptions {
  client: KubeClient;
  caches: Caches;
  identity: OwnIdentity;
  /** Of this cluster, for people over there. */
  clusterName: string;
  wishes: BorrowingWishes;
  /** Namespaces that are wanted over there besides; default: none. */
  offloadings?: NamespaceOffloadings;
  /** Late bound: the registry of links needs us, too. */
  links: () => Pick<PeerLinks, 'view' | 'publish' | 'call' | 'onChange'>;
  reach: ApiReach;
  /** How the last stream to that provider was made, for people. */
  wayTo?: (clusterID: string) => 'Link' | 'DialBack' | undefined;
  launcher: AgentLauncher;
  /** Where the kubeconfig Secrets are. */
  systemNamespace: string;
  /** Where offloaded pods reach our API server, where they can. */
  homeApiServer?: HomeApiServer;
  /** `host:port`, or `host` where that is 443, of our own API server: no peer may send our agents there. */
  ownApiServers?: readonly string[];
  /** For development: a provider's API server on this machine's loopback may be dialled. Default false. */
  allowLoopback?: boolean;
  /** How long pods may take to leave when a peering ends. Default 300 000 as budgets allow, 30 000 to end then. */
  drain?: Partial<DrainLimits>;
  events: EventRecorder;
  metrics?: ControllerMetrics;
  clock: Clock;
  random?: Random;
  log: Logger;
}

/** Providers that are worked on at the same time. */
const CONCURRENCY = 8;
const DEFAULT_LIMITS = { evictMs: 300_000, endMs: 30_000 };

/** We as consumer: from an offer to a virtual node, and back. */
export class Borrowing implements BorrowingSide {
  readonly #options: BorrowingOptions;
  readonly #log: Logger;
  readonly #caches: BorrowingCaches;
  readonly #hearing = new Hearing();
  readonly #access: AccessKeeper;
  readonly #credentials: CredentialKeeper;
  readonly #controller: Controller;
  readonly #listeners = new Set<(clusterID: string) => void>();
  readonly #told = new Map<string, Told>();
  #unsubscribe: (() => void)[] = [];

  constructor(options: BorrowingOptions) {
    const { caches, clock, random = systemRandom, systemNamespace, reach, metrics } = options;
    this.#options = options;
    const log = (this.#log = options.log.named('borrowing'));
    this.#caches = new BorrowingCaches(caches, systemNamespace);
    const wake = (clusterID: string): void => this.#controller.add(clusterID);
    const common = { clock, random, log, wake };
    const { ownApiServers: forbidden = [], allowLoopback = false } = options;
    this.#access = new AccessKeeper({
      ...common,
      reach,
      probe: async (api, signal) => probe(api, { forbidden, allowLoopback, clock }, signal),
    });
    this.#credentials = new CredentialKeeper({ ...common, links: options.links });
    const reconciler = this.#reconciler();
    this.#controller = new Controller({
      name: 'borrowing',
      concurrency: CONCURRENCY,
      reconcile: async (clusterID, { signal }) => {
        if (!this.#isRead) throw notRead();
        return reconciler.reconcile(clusterID, signal);
      },
      clock,
      log,
      random,
      ...(metrics && { metrics }),
    });
  }

  /** Caches: before the links and whatever asks for reports. */
  caches(): Component[] {
    return this.#caches.all();
  }

  /** What acts; to be started once the wishes are known. */
  actors(): Component[] {
    const source: Component = {
      name: 'borrowing changes',
      start: async () => {
        this.#connect();
        await Promise.resolve();
      },
      stop: async () => {
        for (const end of this.#unsubscribe.splice(0)) end();
        this.#access.stop();
        this.#credentials.stop();
        await Promise.resolve();
      },
    };
    return [this.#controller, source];
  }

  components(): Component[] {
    return [...this.caches(), ...this.actors()];
  }

  /** Throws while our own state is not read yet: to say nothing is right, to say that there is nothing is not. */
  documents(clusterID: string): Pick<Documents, 'request' | 'acceptance'> {
    const { clusterName } = this.#options;
    if (!this.#isRead) throw new TributaryError('Unavailable', 'not all that was agreed on is read yet');
    const virtualNodes = this.#caches.virtualNodesOf(clusterID);
    return documentsOf(this.#facts(clusterID), { clusterName, virtualNodes });
  }

  async received(peer: PeerIdentity, changes: Pick<DocumentChanges, 'offer' | 'grant'>): Promise<void> {
    const { clusterID } = peer;
    const { offer, grant } = changes;
    await Promise.resolve();
    // Without the offer that is kept, a replay could not be told.
    if (!this.#caches.synced) throw notRead();
    // Each by itself: what is wrong with one is no reason to miss the other.
    const problems = [
      grant === undefined ? undefined : this.#take(peer, () => ({ grant: this.#checkedGrant(peer, grant) })),
      offer === undefined ? undefined : this.#take(peer, () => ({ offer: this.#checkedOffer(peer, offer) })),
    ].filter((problem) => problem !== undefined);
    this.#changed(clusterID);
    if (problems.length > 0) throw new TributaryError('Invalid', problems.join('; '));
  }

  #take(peer: PeerIdentity, checked: () => Pick<DocumentChanges, 'offer' | 'grant'>): string | undefined {
    try {
      this.#hearing.take(peer, checked());
      return undefined;
    } catch (error) {
      if (!hasCode(error, 'Invalid')) throw error;
      this.#refuse(peer, errorMessage(error));
      return errorMessage(error);
    }
  }

  report(clusterID: string): PeeringReport {
    if (!this.#caches.synced) return { phase: 'None', message: 'not read yet' };
    const facts = this.#facts(clusterID);
    return reportOf(facts, decide(facts), facts.wanted.leftOut);
  }

  standing(clusterID: string, homeNamespace: string): NamespaceMappingState | undefined {
    if (!this.#isRead) return undefined;
    return standingOf(this.#facts(clusterID), homeNamespace, this.#caches.virtualNodesOf(clusterID));
  }

  isNamed(clusterID: string, homeNamespace: string): boolean {
    return isNamed(this.#options.wishes.wish(clusterID), homeNamespace) && this.#mayOffload(homeNamespace);
  }

  /** What a policy does today. */
  effectOf({ metadata: { name } }: AcceptancePolicy): PolicyEffect {
    const under = [...this.#caches.advertisements.list()].filter(({ status }) => status?.policy === name);
    return { peers: under.map(({ metadata }) => metadata.name) };
  }

  /** Calls back after the report about a provider, or where a namespace stands with it, has changed. */
  onChange(listener: (clusterID: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Else what is missing is not absent: nothing may be taken back because of it. */
  get #isRead(): boolean {
    return this.#caches.synced && this.#options.offloadings?.synced !== false;
  }

  readonly #mayOffload = (namespace: string): boolean =>
    !isClusterNamespace(namespace, this.#options.systemNamespace) && this.#caches.hasNamespace(namespace);

  #facts(clusterID: string): Facts {
    const { wishes, clock, offloadings } = this.#options;
    const wish = wishes.wish(clusterID);
    const heard = this.#hearing.of(clusterID);
    const advertisement = this.#caches.advertisements.get(clusterID);
    const { contract, virtualNodes = [] } = advertisement?.status ?? {};
    const proved = this.#proved(clusterID, contract);
    return {
      nowMs: clock.now(),
      wish,
      wanted: wantedNamespaces({
        wish,
        offloaded: offloadings?.of(clusterID) ?? [],
        mayOffload: this.#mayOffload,
        agreed: readContract(contract)?.namespaces ?? [],
      }),
      heard,
      isLinked: this.#options.links().view(clusterID) !== undefined,
      advertisement,
      hasBelongings: this.#caches.hasBelongings(clusterID) || virtualNodes.length > 0,
      ...(proved && { proved }),
    };
  }

  /** The provider's signature over just the contract that we hold. Once it is recorded it need not be proved again. */
  #proved(clusterID: string, ours: SignedContract | undefined): Facts['proved'] {
    const { grant, publicKey } = this.#hearing.of(clusterID);
    if (ours === undefined || ours.providerSignature !== undefined || grant?.state !== 'Active')
      return undefined;
    const { contract } = grant;
    if (contract?.text !== ours.text || publicKey === undefined) return undefined;
    return isSignedBy({ clusterID, publicKey }, ours.text, contract.signature) ? contract : undefined;
  }

  #checkedOffer(peer: PeerIdentity, document: OfferDocument | null): OfferDocument | null {
    if (document === null) return null;
    const { identity, clock } = this.#options;
    const kept = this.#caches.advertisements.get(peer.clusterID)?.spec;
    const heard = this.#hearing.of(peer.clusterID).offer ?? undefined;
    const last =
      kept === undefined || (heard?.offer.generation ?? 0) >= kept.offer.generation ? (heard ?? kept) : kept;
    const offer = checkOffer(document, {
      provider: peer,
      consumer: identity.clusterID,
      lastGeneration: last?.offer.generation,
      ...(last && { lastSignature: last.signature }),
      nowMs: clock.now(),
    });
    return { offer, signature: document.signature };
  }

  /** That the contract is the one we mean is seen later; that its signature is the provider's, now. */
  #checkedGrant(peer: PeerIdentity, grant: GrantDocument | null): GrantDocument | null {
    const { contract } = grant ?? {};
    if (contract !== undefined && !isSignedBy(peer, contract.text, contract.signature)) {
      throw new TributaryError('Invalid', 'the signature of the contract is not that of the provider');
    }
    return grant;
  }

  /** What is in place stays as it is. */
  #refuse(peer: PeerIdentity, message: string): void {
    const { events, wishes } = this.#options;
    const isNews = this.#hearing.of(peer.clusterID).refusal !== message;
    this.#hearing.refuse(peer, message);
    if (!isNews) return;
    this.#log.warn('refused what a provider sent', { peer: peer.clusterID, error: message });
    const subject = this.#caches.advertisements.get(peer.clusterID) ?? wishes.wish(peer.clusterID).subject;
    if (subject !== undefined) events.event(subject, 'Warning', BORROWING_EVENTS.invalid, message);
  }

  #connect(): void {
    const { wishes, links, offloadings } = this.#options;
    const changed = (clusterID: string): void => this.#changed(clusterID);
    this.#caches.onChange(changed);
    const allChanged = (): void => this.#known().forEach(changed);
    this.#unsubscribe = [
      wishes.onChange(changed),
      offloadings?.onChange(allChanged) ?? NOTHING,
      links().onChange(({ clusterID }) => {
        if (clusterID !== undefined) this.#linkChanged(clusterID);
      }),
      this.#caches.namespaces.onChange(allChanged),
    ];
    allChanged();
  }

  #known(): Set<string> {
    return new Set([...this.#caches.ids(), ...this.#hearing.ids(), ...this.#told.keys()]);
  }

  #linkChanged(clusterID: string): void {
    const isUp = this.#options.links().view(clusterID)?.connected === true;
    if (isUp) {
      this.#credentials.retry(clusterID);
      this.#access.retry(clusterID);
    } else if (this.report(clusterID).phase === 'None') {
      // Nothing is wanted of it; a new link says everything again.
      this.#hearing.forget(clusterID);
      this.#told.delete(clusterID);
    }
    this.#controller.add(clusterID);
  }

  #changed(clusterID: string): void {
    this.#controller.add(clusterID);
    this.#options.links().publish(clusterID);
    const told = this.#tell(clusterID);
    if (deepEqual(told, this.#told.get(clusterID))) return;
    this.#told.set(clusterID, told);
    for (const listener of this.#listeners) listener(clusterID);
  }

  #tell(clusterID: string): Told {
    const report = this.report(clusterID);
    if (!this.#isRead) return { report, standings: {} };
    const standings = standingsOf(this.#facts(clusterID), this.#caches.virtualNodesOf(clusterID));
    return { report, standings: Object.fromEntries(standings) };
  }

  #reconciler(): Reconciler {
    const { client, identity, launcher, systemNamespace, homeApiServer, events, clock } = this.#options;
    const limits = { ...DEFAULT_LIMITS, ...this.#options.drain };
    const [caches, access, credentials, log] = [this.#caches, this.#access, this.#credentials, this.#log];
    const agents = new AgentSetup({ launcher, clock, log });
    const teardown = new Teardown({ client, clock, log, events, limits });
    const nodes = new NodeSetup({
      client,
      caches,
      teardown,
      systemNamespace,
      ...(homeApiServer && { homeApiServer }),
    });
    const { wayTo } = this.#options;
    const setup = new Setup({
      client,
      caches,
      access,
      credentials,
      nodes,
      agents,
      systemNamespace,
      ...(wayTo && { wayTo }),
    });
    return new Reconciler({
      client,
      caches,
      identity,
      setup,
      teardown,
      agents,
      access,
      credentials,
      events,
      clock,
      facts: (clusterID) => this.#facts(clusterID),
      clusterNameOf: (clusterID) => this.#options.links().view(clusterID)?.clusterName,
    });
  }
}

interface Told {
  report: PeeringReport;
  standings: Record<string, NamespaceMappingState>;
}

const NOTHING = (): void => undefined;

const notRead = (): TributaryError =>
  new TributaryError('Unavailable', 'what was agreed on before is not read yet');
