import {
  PEERING_REQUEST_CONDITIONS,
  peeringRequests,
  type PeeringRequest,
} from '../../api/peering-request.ts';
import { isConditionTrue } from '../../api/conditions.ts';
import { sharingPolicies, type SharingPolicy } from '../../api/sharing-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Controller, type ControllerMetrics } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { Informer } from '../../kube/informer.ts';
import type { Random } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { deepEqual } from '../../lib/equality.ts';
import { TributaryError, errorMessage } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import type { Logger } from '../../lib/log.ts';
import { isClusterID } from '../identity/identity.ts';
import { JoinTokens } from '../join/tokens.ts';
import type { Promises } from '../offer/free.ts';
import { StockOffers } from '../offer/stock-offers.ts';
import type { Stockkeeper } from '../offer/stockkeeper.ts';
import type { LendingSide, OwnIdentity, PeerIdentity, PeerLinks, PeeringReport } from '../ports.ts';
import type {
  ApiAccess,
  Credential,
  DocumentChanges,
  Documents,
  RequestDocument,
} from '../protocol/documents.ts';
import { isReservedNamespace } from '../tenant.ts';
import { judgeAcceptance } from './acceptance.ts';
import { ApiAccessFinder } from './api-access.ts';
import { Credentials } from './credentials.ts';
import { grantOf, isActive, offerDocumentOf, reportOf } from './grant.ts';
import { Inbox } from './inbox.ts';
import { Reconciler, type LendingWish } from './reconciler.ts';
import { Tenants } from './tenants.ts';

export type { LendingWish } from './reconciler.ts';

export interface LendingOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  events: EventRecorder;
  metrics?: ControllerMetrics;
  random?: Random;
  identity: OwnIdentity;
  /** Where we run, and where join tokens are kept. */
  systemNamespace: string;
  stockkeeper: Pick<Stockkeeper, 'stock' | 'usage' | 'onChange'>;
  /** Called from `start` on; so parts that need each other can be made in any order. */
  wishes: {
    wish(clusterID: string): LendingWish;
    onChange(listener: (clusterID: string) => void): () => void;
  };
  links: Pick<PeerLinks, 'view'>;
  /** Where peers find our API server, where people say so; else it is looked for. */
  api?: ApiAccess;
  /** How we reach it ourselves: what is told where nothing better is found. */
  ownApi?: ApiAccess;
  /** Life of a peer's token, seconds. Default 3600, at least 600. */
  tokenSeconds?: number;
  /** Between a peer's word that it wants nothing any more and the end of it, milliseconds. Default 2000. */
  withdrawalGraceMs?: number;
}

/** Home namespaces of one peer. */
const MAX_NAMESPACES = 64;
/** Requests that nobody has decided about: IDs cost nothing, objects do. */
const MAX_STRANGERS = 200;
const CONCURRENCY = 4;

/** We as provider: who may use us, what is offered, tenants, tokens, and the end of all that. */
export class Lending implements LendingSide {
  readonly tokens: JoinTokens;
  readonly #options: LendingOptions;
  readonly #log: Logger;
  readonly #requests: Informer<PeeringRequest>;
  readonly #policies: Informer<SharingPolicy>;
  readonly #tenants: Tenants;
  readonly #offers: StockOffers;
  readonly #api: ApiAccessFinder;
  readonly #credentials: Credentials;
  readonly #inbox = new Inbox();
  readonly #controller: Controller;
  readonly #listeners = new Set<(clusterID: string) => void>();

  constructor(options: LendingOptions) {
    this.#options = options;
    const { client, clock, identity, systemNamespace, metrics, random, stockkeeper } = options;
    const log = options.log.named('lending');
    this.#log = log;
    const common = { client, clock, log, ...(random && { random }) };
    this.#requests = new Informer({ ...common, type: peeringRequests, list: {} });
    this.#policies = new Informer({ ...common, type: sharingPolicies, list: {} });
    this.#tenants = new Tenants(common);
    const { clusterID } = identity;
    this.tokens = new JoinTokens({ ...common, namespace: systemNamespace, clusterID });
    this.#offers = new StockOffers({ stockkeeper, provider: clusterID, promised: () => this.#promised() });
    this.#credentials = new Credentials(options);
    const { api: given, ownApi: own } = options;
    this.#api = new ApiAccessFinder({
      ...common,
      systemNamespace,
      ...(given && { given }),
      ...(own && { own }),
    });
    const reconciler = this.#reconciler();
    this.#controller = new Controller({
      ...common,
      name: 'lending',
      concurrency: CONCURRENCY,
      reconcile: async (key, context) => reconciler.reconcile(key, context),
      ...(metrics && { metrics }),
    });
  }

  #reconciler(): Reconciler {
    const { client, clock, events, identity, wishes, links, withdrawalGraceMs } = this.#options;
    return new Reconciler({
      client,
      clock,
      log: this.#log,
      events,
      identity,
      inbox: this.#inbox,
      ...(withdrawalGraceMs !== undefined && { withdrawalGraceMs }),
      tenants: this.#tenants,
      offers: this.#offers,
      request: (clusterID) => this.#requests.get(clusterID),
      policies: () => this.#policies.list(),
      wish: (clusterID) => wishes.wish(clusterID),
      isLinked: (clusterID) => links.view(clusterID) !== undefined,
      checkToken: async (text, consumer, signal) => this.tokens.check(text, consumer, signal),
    });
  }

  /** In the order in which they are to be started; after the stockkeeper, before links. */
  components(): Component[] {
    return [
      this.#requests,
      this.#policies,
      ...this.#tenants.components(),
      this.#api,
      this.tokens.janitor(),
      this.#triggers(),
      this.#controller,
    ];
  }

  /** What makes us look at a peer again. */
  #triggers(): Component {
    const ends: (() => void)[] = [];
    return {
      name: 'lending triggers',
      start: async () => {
        ends.push(
          this.#requests.onChange((key, current, previous) => this.#onRequest(key, current, previous)),
          this.#policies.onChange((_key, current, previous) => {
            if (!deepEqual(current?.spec, previous?.spec)) this.#addAll();
          }),
          this.#tenants.onChange((peer) => this.#add(peer)),
          this.#offers.onChange(() => this.#addAll()),
          this.#options.wishes.onChange((peer) => {
            if (this.#requests.get(peer) !== undefined) this.#add(peer);
          }),
          this.#api.onChange(() => {
            for (const { metadata } of this.#requests.list()) this.#tell(metadata.name);
          }),
        );
        this.#addAll();
        // Also those of whom only something is left.
        for (const peer of this.#tenants.peers()) this.#add(peer);
        await Promise.resolve();
      },
      stop: async () => {
        for (const end of ends) end();
        await Promise.resolve();
      },
    };
  }

  #onRequest(key: string, current: PeeringRequest | undefined, previous: PeeringRequest | undefined): void {
    this.#add(key);
    this.#tell(key);
    // What one peer was promised is not free for the others.
    if (!deepEqual(current?.status?.promised, previous?.status?.promised)) this.#addAll();
  }

  #addAll(): void {
    for (const { metadata } of this.#requests.list()) this.#add(metadata.name);
  }

  /** Objects of another name are not ours: the API server refuses a PeeringRequest that is not named by its ID. */
  #add(peer: string): void {
    if (isClusterID(peer)) this.#controller.add(peer);
  }

  #tell(clusterID: string): void {
    for (const listener of this.#listeners) listener(clusterID);
  }

  #promised(): Promises {
    const policies = new Map([...this.#policies.list()].map(({ metadata, spec }) => [metadata.name, spec]));
    return new Map(
      [...this.#requests.list()].flatMap(({ metadata, status }) => {
        if (status?.promised === undefined) return [];
        const nodeSelector = policies.get(status.policy ?? '')?.nodeSelector;
        return [[metadata.name, { resources: status.promised, ...(nodeSelector && { nodeSelector }) }]];
      }),
    );
  }

  documents(clusterID: string): Pick<Documents, 'offer' | 'grant'> {
    const request = this.#requests.get(clusterID);
    if (request === undefined) return {};
    const offer = offerDocumentOf(request, this.#options.identity);
    return { ...(offer && { offer }), grant: grantOf(request, this.#api.current) };
  }

  /** Takes down what was said; the controller acts on it. Throws Invalid or TooManyRequests, for the peer to read. */
  async received(
    peer: PeerIdentity,
    changes: Pick<DocumentChanges, 'request' | 'acceptance'>,
  ): Promise<void> {
    const { clusterID } = peer;
    const { request, acceptance } = changes;
    const problems: unknown[] = [];
    const attempt = (check: () => void): boolean => {
      try {
        check();
        return true;
      } catch (error) {
        problems.push(error);
        return false;
      }
    };
    const takesRequest = request !== undefined && attempt(() => this.#checkRequest(clusterID, request));
    const takesAcceptance =
      acceptance !== undefined && attempt(() => acceptance && this.#checkAcceptance(peer, acceptance));
    if (takesRequest || takesAcceptance) {
      const taken = { ...(takesRequest && { request }), ...(takesAcceptance && { acceptance }) };
      this.#inbox.hear(peer, taken, this.#options.clock.monotonic());
      this.#controller.add(clusterID);
    }
    await Promise.resolve();
    if (problems.length === 0) return;
    this.#log.warn('refused what a peer said', { peer: clusterID, error: errorMessage(problems[0]) });
    throw problems[0];
  }

  #checkRequest(clusterID: string, request: RequestDocument | null): void {
    if (clusterID === this.#options.identity.clusterID) {
      throw new TributaryError('Invalid', 'a cluster does not lend to itself');
    }
    if (request === null) return;
    const namespaces = new Set(request.namespaces);
    if (namespaces.size > MAX_NAMESPACES) {
      throw new TributaryError(
        'Invalid',
        `${namespaces.size} namespaces are asked for, at most ${MAX_NAMESPACES} are lent to one peer`,
      );
    }
    for (const namespace of namespaces) checkHomeNamespace(namespace);
    this.#refuseFlood(clusterID);
  }

  #refuseFlood(clusterID: string): void {
    if (this.#requests.get(clusterID) !== undefined) return;
    const strangers = new Set(this.#inbox.asking());
    for (const { metadata, status } of this.#requests.list()) {
      if (isConditionTrue(status?.conditions, PEERING_REQUEST_CONDITIONS.approved))
        strangers.delete(metadata.name);
      else strangers.add(metadata.name);
    }
    strangers.delete(clusterID);
    if (strangers.size < MAX_STRANGERS) return;
    throw new TributaryError(
      'TooManyRequests',
      `${strangers.size} clusters wait to be let in here; no more are taken down until some are decided about`,
      { retryAfterMs: 60_000 },
    );
  }

  #checkAcceptance(peer: PeerIdentity, acceptance: NonNullable<DocumentChanges['acceptance']>): void {
    const status = this.#requests.get(peer.clusterID)?.status ?? {};
    judgeAcceptance(acceptance, peer, { status, nowMs: this.#options.clock.now() });
  }

  /** Forbidden unless a contract is in force. */
  async credential({ clusterID }: PeerIdentity, signal: AbortSignal): Promise<Credential> {
    const request = this.#requests.get(clusterID);
    if (request === undefined || !isActive(request)) {
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

  report(clusterID: string): PeeringReport {
    return reportOf(this.#requests.get(clusterID));
  }

  /** By ClusterID, for all that ask or have asked. */
  *reports(): Iterable<[string, PeeringReport]> {
    for (const request of this.#requests.list()) yield [request.metadata.name, reportOf(request)];
  }

  /** Calls back when documents or report of that peer may have changed; the returned function ends that. */
  onChange(listener: (clusterID: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Names that would be reserved here as well, whatever is put behind them. */
function checkHomeNamespace(namespace: string): void {
  const isName = namespace.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace);
  const isForeign = namespace === 'default' || !isReservedNamespace(namespace);
  if (isName && isForeign) return;
  throw new TributaryError(
    'Invalid',
    `namespace ${JSON.stringify(namespace.slice(0, 80))} is not one that can be offloaded`,
  );
}
