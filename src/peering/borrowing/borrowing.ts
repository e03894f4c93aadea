import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import { isClusterNamespace } from '../../api/cluster-namespaces.ts';
import type { NamespaceMappingState } from '../../api/namespace-offloading.ts';
import type { SignedContract } from '../../api/offer.ts';
import type { HomeApiServer } from '../../api/virtual-node.ts';
import type { Caches } from '../../kube/caches.ts';
import { type ControllerBasics, Controller } from '../../kube/controller.ts';
import type { DrainLimits } from '../../kube/drain-stage.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { type Random, systemRandom } from '../../lib/backoff.ts';
import { deepEqual } from '../../lib/equality.ts';
import { TributaryError } from '../../lib/errors.ts';
import { type Component, subscribing } from '../../lib/lifecycle.ts';
import { Listeners } from '../../lib/listeners.ts';
import type { Logger } from '../../lib/log.ts';
import type { ProxySettings } from '../../lib/proxy.ts';
import { isSignedBy } from '../contract.ts';
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
import type { DocumentChanges, Documents } from '../protocol/documents.ts';
import { AccessFinder } from './access.ts';
import { accessBounds } from './bounds.ts';
import { BorrowingCaches } from './caches.ts';
import { CredentialRenewer } from './credentials.ts';
import { decide } from './decide.ts';
import type { BorrowingFacts, BorrowingIntent, ReceivedDocuments } from './facts.ts';
import { ProviderInbox } from './inbox.ts';
import { desiredNamespaces, documentsOf, isNamed, mappingStateOf, mappingStatesOf } from './namespaces.ts';
import { NodeSetup } from './node-setup.ts';
import { NO_PLACES, type OurPlaces, type Resolve } from './our-places.ts';
import { readContract } from './own-contract.ts';
import { Reconciler } from './reconciler.ts';
import { reportOf } from './report.ts';
import { AgentSetup, Setup } from './setup.ts';
import { Teardown } from './teardown.ts';

interface BorrowingIntents {
  intent(clusterID: string): BorrowingIntent;
  /** Calls back with each ClusterID whose intent may have changed; the returned function ends that. */
  onChange(listener: (clusterID: string) => void): () => void;
}

export interface BorrowingOptions extends ControllerBasics {
  caches: Caches;
  identity: OwnIdentity;
  /** Of this cluster, for people over there. */
  clusterName: string;
  intents: BorrowingIntents;
  /** What NamespaceOffloadings want over there, too; default: nothing. */
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
  /** No peer may send our agents there; default: nothing is known. */
  ours?: () => OurPlaces;
  /** For development: whether a provider's API server may be on this machine's loopback. Default false. */
  allowLoopback?: boolean;
  /** The way out to providers' API servers; default: directly. */
  proxies?: ProxySettings;
  /** Default: as this host does. */
  resolve?: Resolve;
  /** How long pods may take to leave when a peering ends. Default 300 000 as budgets allow, 30 000 to end then. */
  drain?: Partial<DrainLimits>;
  events: EventRecorder;
  random?: Random;
}

/** Providers that are worked on at the same time. */
const CONCURRENCY = 8;
const DEFAULT_LIMITS = { evictMs: 300_000, endMs: 30_000 };

/** What others were told of a provider: a change of it is news to them. */
interface Told {
  report: PeeringReport;
  mappingStates: Record<string, NamespaceMappingState>;
}

/** We as consumer: from an offer to a virtual node, and back. */
export class Borrowing implements BorrowingSide {
  readonly #options: BorrowingOptions;
  readonly #log: Logger;
  readonly #caches: BorrowingCaches;
  readonly #inbox: ProviderInbox;
  /** When there was last a link to a provider, or it was first looked for; monotonic. */
  readonly #heardAt = new Map<string, number>();
  readonly #access: AccessFinder;
  readonly #credentials: CredentialRenewer;
  readonly #controller: Controller;
  readonly #listeners = new Listeners<[clusterID: string]>();
  /** Calls back after the report about a provider, or the state of a namespace with it, has changed. */
  readonly onChange: Listeners<[clusterID: string]>['add'] = this.#listeners.add;
  readonly #told = new Map<string, Told>();

  constructor(options: BorrowingOptions) {
    const { caches, clock, random = systemRandom, systemNamespace, metrics } = options;
    this.#options = options;
    const log = (this.#log = options.log.named('borrowing'));
    this.#caches = new BorrowingCaches(caches, systemNamespace, clock);
    this.#inbox = new ProviderInbox({
      ...options,
      log,
      keptOffer: (clusterID) => this.#caches.advertisements.get(clusterID)?.spec,
      subjectOf: (clusterID) =>
        this.#caches.advertisements.get(clusterID) ?? options.intents.intent(clusterID).subject,
    });
    const wake = (clusterID: string): void => this.#controller.add(clusterID);
    const common = { ...options, random, log, wake };
    const { ours = () => NO_PLACES, allowLoopback = false, proxies, resolve } = options;
    this.#access = new AccessFinder({
      ...common,
      ...accessBounds({ ours, allowLoopback, clock, proxies, resolve }),
    });
    this.#credentials = new CredentialRenewer(common);
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

  /** What acts; to be started once the intents are known. */
  actors(): Component[] {
    return [this.#controller, subscribing('borrowing changes', () => this.#follow())];
  }

  components(): Component[] {
    return [...this.caches(), ...this.actors()];
  }

  /** Throws while our own state is not read yet: it is right to say nothing, but wrong to say that there is nothing. */
  documents(clusterID: string): Pick<Documents, 'request' | 'acceptance'> {
    const { clusterName } = this.#options;
    if (!this.#isRead) throw new TributaryError('Unavailable', 'not all that was agreed on is read yet');
    return documentsOf(this.#facts(clusterID), clusterName, this.#caches.virtualNodesOf(clusterID));
  }

  async received(peer: PeerIdentity, changes: Pick<DocumentChanges, 'offer' | 'grant'>): Promise<void> {
    await Promise.resolve();
    // Without the offer that is kept, an old one that is sent again could not be told from a new one.
    if (!this.#caches.synced) throw notRead();
    const problems = this.#inbox.take(peer, changes);
    this.#changed(peer.clusterID);
    if (problems.length > 0) throw new TributaryError('Invalid', problems.join('; '));
  }

  report(clusterID: string): PeeringReport {
    if (!this.#caches.synced) return { phase: 'None', message: 'not read yet' };
    const facts = this.#facts(clusterID);
    return reportOf(facts, decide(facts), facts.desired.leftOut);
  }

  /** Where a home namespace stands with a provider. Undefined: the provider has not spoken of it yet. */
  mappingState(clusterID: string, homeNamespace: string): NamespaceMappingState | undefined {
    if (!this.#isRead) return undefined;
    return mappingStateOf(this.#facts(clusterID), homeNamespace, this.#caches.virtualNodesOf(clusterID));
  }

  /** Whether an AcceptancePolicy or a ForeignCluster names it: then it is wanted there without a NamespaceOffloading. */
  isNamed(clusterID: string, homeNamespace: string): boolean {
    return isNamed(this.#options.intents.intent(clusterID), homeNamespace) && this.#mayOffload(homeNamespace);
  }

  /** What a policy does today. */
  effectOf({ metadata: { name } }: AcceptancePolicy): PolicyEffect {
    const under = [...this.#caches.advertisements.list()].filter(({ status }) => status?.policy === name);
    return { peers: under.map(({ metadata }) => metadata.name) };
  }

  /** Before, what is missing is not absent: nothing may be taken back because of it. */
  get #isRead(): boolean {
    return this.#caches.synced && this.#options.offloadings?.synced !== false;
  }

  readonly #mayOffload = (namespace: string): boolean =>
    !isClusterNamespace(namespace, this.#options.systemNamespace) && this.#caches.hasNamespace(namespace);

  #silence(clusterID: string): Pick<BorrowingFacts, 'isLinked' | 'silentForMs'> {
    const now = this.#options.clock.monotonic();
    const isLinked = this.#options.links().view(clusterID) !== undefined;
    const since = isLinked ? now : (this.#heardAt.get(clusterID) ?? now);
    this.#heardAt.set(clusterID, since);
    return { isLinked, silentForMs: now - since };
  }

  #facts(clusterID: string): BorrowingFacts {
    const { intents, clock, offloadings } = this.#options;
    const intent = intents.intent(clusterID);
    const received = this.#inbox.of(clusterID);
    const advertisement = this.#caches.advertisements.get(clusterID);
    const { contract, virtualNodes = [] } = advertisement?.status ?? {};
    const proved = provedContract(clusterID, received, contract);
    return {
      nowMs: clock.now(),
      intent,
      desired: desiredNamespaces({
        intent,
        offloaded: offloadings?.of(clusterID) ?? [],
        mayOffload: this.#mayOffload,
        agreed: readContract(contract)?.namespaces ?? [],
      }),
      received,
      ...this.#silence(clusterID),
      advertisement,
      hasBelongings: this.#caches.hasBelongings(clusterID) || virtualNodes.length > 0,
      ...(proved && { proved }),
    };
  }

  #follow(): (() => void)[] {
    const { intents, links, offloadings } = this.#options;
    const changed = (clusterID: string): void => this.#changed(clusterID);
    this.#caches.onChange(changed);
    const allChanged = (): void => this.#known().forEach(changed);
    const ends = [
      intents.onChange(changed),
      links().onChange(({ clusterID }) => {
        if (clusterID !== undefined) this.#linkChanged(clusterID);
      }),
      this.#caches.namespaces.onChange(allChanged),
      () => this.#access.stop(),
      () => this.#credentials.stop(),
    ];
    if (offloadings !== undefined) ends.push(offloadings.onChange(allChanged));
    allChanged();
    return ends;
  }

  #known(): Set<string> {
    return new Set([...this.#caches.ids(), ...this.#inbox.ids(), ...this.#told.keys()]);
  }

  #linkChanged(clusterID: string): void {
    const isUp = this.#options.links().view(clusterID)?.connected === true;
    if (isUp) {
      this.#credentials.retry(clusterID);
      this.#access.retry(clusterID);
    } else if (this.report(clusterID).phase === 'None') {
      // Nothing is wanted of it; a new link says everything again.
      this.#inbox.forget(clusterID);
      this.#heardAt.delete(clusterID);
      this.#told.delete(clusterID);
    }
    this.#controller.add(clusterID);
  }

  #changed(clusterID: string): void {
    this.#controller.add(clusterID);
    this.#options.links().publish(clusterID);
    const now = this.#toTell(clusterID);
    if (deepEqual(now, this.#told.get(clusterID))) return;
    this.#told.set(clusterID, now);
    this.#listeners.tell(clusterID);
  }

  #toTell(clusterID: string): Told {
    const report = this.report(clusterID);
    if (!this.#isRead) return { report, mappingStates: {} };
    const states = mappingStatesOf(this.#facts(clusterID), this.#caches.virtualNodesOf(clusterID));
    return { report, mappingStates: Object.fromEntries(states) };
  }

  #reconciler(): Reconciler {
    const limits = { ...DEFAULT_LIMITS, ...this.#options.drain };
    const common = { ...this.#options, caches: this.#caches, log: this.#log };
    const agents = new AgentSetup(common);
    const teardown = new Teardown({ ...common, limits });
    const nodes = new NodeSetup({ ...common, teardown });
    const using = { ...common, access: this.#access, credentials: this.#credentials, agents };
    return new Reconciler({
      ...using,
      setup: new Setup({ ...using, nodes }),
      teardown,
      facts: (clusterID) => this.#facts(clusterID),
      clusterNameOf: (clusterID) => this.#options.links().view(clusterID)?.clusterName,
    });
  }
}

/** The provider's signature over just the contract that we hold. Once it is recorded it need not be proved again. */
function provedContract(
  clusterID: string,
  { grant, publicKey }: ReceivedDocuments,
  ours: SignedContract | undefined,
): BorrowingFacts['proved'] {
  if (ours === undefined || ours.providerSignature !== undefined || grant?.state !== 'Active') {
    return undefined;
  }
  const { contract } = grant;
  if (contract?.text !== ours.text || publicKey === undefined) return undefined;
  return isSignedBy({ clusterID, publicKey }, ours.text, contract.signature) ? contract : undefined;
}

const notRead = (): TributaryError =>
  new TributaryError('Unavailable', 'what was agreed on before is not read yet');
