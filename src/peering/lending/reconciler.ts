import { FINALIZER_PEERING } from '../../api/names.ts';
import { CLUSTER_NAME_PATTERN } from '../../api/limits.ts';
import { FOREIGN_CLUSTER_REASONS, type PeeringWish } from '../../api/foreign-cluster.ts';
import type { Offer, SignedContract } from '../../api/offer.ts';
import {
  PEERING_REQUEST_CONDITIONS,
  PEERING_REQUEST_REASONS,
  peeringRequests,
  type PeeringRequest,
  type PeeringRequestSpec,
  type PeeringRequestStatus,
} from '../../api/peering-request.ts';
import type { SharingPolicy } from '../../api/sharing-policy.ts';
import { isConditionTrue } from '../../api/conditions.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { addFinalizer, removeFinalizer } from '../../kube/finalizers.ts';
import { replaceStatusIfDiffers } from '../../kube/write.ts';
import type { Clock } from '../../lib/clock.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { canonicalText } from '../canonical.ts';
import type { TokenVerdict } from '../join/tokens.ts';
import type { PeerFacts } from '../policy/match.ts';
import type { OwnIdentity } from '../ports.ts';
import type { RequestDocument } from '../protocol/documents.ts';
import { contractOf, judgeAcceptance } from './acceptance.ts';
import { decide, policyFor, type Decision } from './decide.ts';
import { offerDocumentOf } from './grant.ts';
import type { Heard, Inbox } from './inbox.ts';
import { amountsOf, isEmpty, nextOffer, renewalOf, type OfferSource } from './offering.ts';
import {
  endingForMs,
  endingStatus,
  lentStatus,
  refusedStatus,
  stuckMessage,
  STUCK_AFTER_MS,
  type Ending,
} from './status.ts';
import { chooseTenantNames } from './tenant-names.ts';
import type { Remains, Tenants } from './tenants.ts';

/** What people and policies of this cluster say about a peer; src/peering/clusters knows. */
export interface LendingWish {
  /** Disabled also while its ForeignCluster is being deleted. */
  incoming: PeeringWish;
  facts: PeerFacts;
}

export interface ReconcilerOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  events: EventRecorder;
  identity: OwnIdentity;
  inbox: Inbox;
  tenants: Tenants;
  offers: OfferSource;
  request: (clusterID: string) => PeeringRequest | undefined;
  policies: () => Iterable<SharingPolicy>;
  wish: (clusterID: string) => LendingWish;
  isLinked: (clusterID: string) => boolean;
  checkToken: (text: string, consumer: string, signal: AbortSignal) => Promise<TokenVerdict>;
}

type Approval = Extract<Decision, { state: 'Approved' }>;

/** A namespace that does not end keeps a PeeringRequest for no longer than this. */
const NAMESPACE_PATIENCE_MS = 120_000;
const LOOK_AGAIN_MS = 5000;
/** Use alone is written at most this often: it moves with every pod. */
const USE_INTERVAL_MS = 10_000;
/** A later end of the credential is written when it has moved by more than this. */
const CREDENTIAL_STEP_MS = 5 * 60_000;

/**
 * Makes the world right for one peer. What it asks and accepts is in the inbox (or, after a restart, in the stored
 * PeeringRequest until the peer has said it again), everything else in caches. Order of things:
 *
 *     request heard ─▶ PeeringRequest ─▶ decision ─▶ offer stored ─▶ offer sent
 *     acceptance heard ─▶ contract signed and stored ─▶ tenant made ─▶ phase Established ─▶ grant sent
 *     no longer let in, asked for or accepted ─▶ account and rights deleted ─▶ namespaces ─▶ stored ─▶ grant sent
 *
 * Each arrow is one reconcile or a write within it, so a kill between any two of them costs nothing.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  /** When use was written last, by peer; monotonic. */
  readonly #useWrittenAt = new Map<string, number>();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  async reconcile(clusterID: string, { signal }: { signal: AbortSignal }): Promise<ReconcileResult | void> {
    const { inbox, request: find } = this.#options;
    const request = find(clusterID);
    const heard = inbox.get(clusterID);
    if (request === undefined) return this.#withoutRequest(clusterID, heard, signal);
    if (request.metadata.deletionTimestamp !== undefined) return this.#end(request, heard, signal);
    if (heard.request === null) return this.#delete(request, signal);
    if (await this.#wroteSpec(request, heard.request, signal)) return;
    const decision = await this.#decide(request, heard, signal);
    return decision.state === 'Approved'
      ? this.#lend(request, { decision, heard }, signal)
      : this.#refuse(request, decision, signal);
  }

  async #withoutRequest(
    clusterID: string,
    heard: Heard,
    signal: AbortSignal,
  ): Promise<ReconcileResult | void> {
    const { client, inbox, tenants } = this.#options;
    this.#useWrittenAt.delete(clusterID);
    if (heard.request) {
      const metadata = { name: clusterID, finalizers: [FINALIZER_PEERING] };
      const spec = { clusterID, ...specOf(heard.request) };
      // AlreadyExists: made a moment ago, the watch brings it.
      await client.create(peeringRequests, { metadata, spec }, { signal }).catch(unless('AlreadyExists'));
      return;
    }
    inbox.forget(clusterID);
    // What a policy keeps for a while, and what is left where somebody took the finalizer away.
    const remains = await tenants.end(clusterID, signal);
    return this.#afterEnd(remains);
  }

  #afterEnd({ ending, keptUntil }: Remains): ReconcileResult | void {
    if (ending.length > 0) return { requeueAfterMs: LOOK_AGAIN_MS };
    if (keptUntil !== undefined)
      return { requeueAfterMs: Math.max(1000, keptUntil - this.#options.clock.now()) };
  }

  /** No longer asked for: a person's approval goes with it. */
  async #delete({ metadata }: PeeringRequest, signal: AbortSignal): Promise<void> {
    const { name, uid } = metadata;
    await this.#options.client
      .delete(peeringRequests, { name }, { uid, signal })
      .catch(unless('NotFound', 'Conflict'));
  }

  async #end(request: PeeringRequest, heard: Heard, signal: AbortSignal): Promise<ReconcileResult | void> {
    const { client, clock, tenants, events } = this.#options;
    if (!request.metadata.finalizers?.includes(FINALIZER_PEERING)) return;
    const remains = await tenants.end(request.metadata.name, signal);
    const ending = { namespaces: remains.ending, nowMs: clock.now() };
    const sinceMs = ending.nowMs - Date.parse(request.metadata.deletionTimestamp ?? '');
    if (remains.ending.length > 0 && sinceMs < NAMESPACE_PATIENCE_MS) {
      const isWithdrawn = heard.request === null;
      const { withdrawn, revoked } = FOREIGN_CLUSTER_REASONS;
      const reason = isWithdrawn ? withdrawn : revoked;
      const message = isWithdrawn ? 'the peer no longer asks' : 'the PeeringRequest was deleted';
      this.#tellStuck(request, ending);
      await this.#writeStatus(request, endingStatus(request, { ...ending, reason, message }), signal);
      return { requeueAfterMs: LOOK_AGAIN_MS };
    }
    if (remains.ending.length > 0) {
      const message = `${stuckMessage(remains.ending)}; the peer has no account and no rights any more`;
      events.event(request, 'Warning', PEERING_REQUEST_REASONS.stuck, message);
    }
    await removeFinalizer(client, peeringRequests, request, { finalizer: FINALIZER_PEERING, signal });
  }

  #tellStuck(request: PeeringRequest, ending: Ending): void {
    if (ending.namespaces.length === 0 || endingForMs(ending) < STUCK_AFTER_MS) return;
    const { stuck } = PEERING_REQUEST_REASONS;
    this.#options.events.event(request, 'Warning', stuck, stuckMessage(ending.namespaces));
  }

  /** Whether anything was written; the change then brings us back. */
  async #wroteSpec(
    request: PeeringRequest,
    document: RequestDocument | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { client } = this.#options;
    const finalizer = FINALIZER_PEERING;
    if ((await addFinalizer(client, peeringRequests, request, { finalizer, signal })) !== request)
      return true;
    if (document === undefined) return false;
    const wanted = specOf(document);
    const { clusterName, namespaces } = request.spec;
    if (deepEqual(wanted, { clusterName, namespaces })) return false;
    const { name, uid } = request.metadata;
    // What the peer says and nothing else: `approval` is a person's.
    const body = { metadata: { uid }, spec: { ...wanted, clusterName: wanted.clusterName ?? null } };
    await client.patch(peeringRequests, { name }, { type: 'merge', body }, { signal });
    return true;
  }

  async #decide(request: PeeringRequest, heard: Heard, signal: AbortSignal): Promise<Decision> {
    const { inbox, wish, isLinked, policies, checkToken } = this.#options;
    const { metadata, spec, status = {} } = request;
    const { incoming, facts } = wish(metadata.name);
    const admitted = isConditionTrue(status.conditions, PEERING_REQUEST_CONDITIONS.approved);
    const standing = { policy: status.policy, linked: isLinked(metadata.name) };
    const policy = policyFor([...policies()], facts, admitted ? standing : undefined);
    const known: TokenVerdict | undefined =
      status.token === undefined ? heard.refusedToken : { result: 'ok', name: status.token };
    const { approval } = spec;
    const state = { incoming, ...(approval && { approval }), policy, admitted };
    const decision = decide({ ...state, token: known });
    const text = heard.request?.joinToken;
    if (decision.state !== 'Pending' || known !== undefined || text === undefined) return decision;
    // Only now: a token is used up by looking whether it is good.
    const token = await checkToken(text, metadata.name, signal);
    const isStill = inbox.get(metadata.name).request === heard.request;
    if (token.result !== 'ok' && isStill) inbox.note(metadata.name, { refusedToken: token });
    return decide({ ...state, token });
  }

  async #refuse(
    request: PeeringRequest,
    decision: Exclude<Decision, Approval>,
    signal: AbortSignal,
  ): Promise<ReconcileResult | void> {
    const { clock, tenants } = this.#options;
    const remains = await tenants.end(request.metadata.name, signal);
    const ending = { namespaces: remains.ending, nowMs: clock.now() };
    this.#tellStuck(request, ending);
    await this.#writeStatus(request, refusedStatus(request, decision, ending), signal);
    return this.#afterEnd(remains);
  }

  async #lend(
    request: PeeringRequest,
    { decision, heard }: { decision: Approval; heard: Heard },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { clock, identity, offers, tenants } = this.#options;
    const { status = {}, metadata } = request;
    const { name: consumer } = metadata;
    const nowMs = clock.now();
    const { offer, taken } = this.#offer(request, decision, nowMs);
    const contract = this.#contract(request, heard, nowMs);
    const agreed = contractOf(contract);
    const lent = agreed === undefined && isEmpty(offer) ? undefined : offer;
    const promised = agreed && amountsOf(agreed.resources, offer.resources);
    const isStored = agreed !== undefined && contract?.text === status.contract?.text;
    let waitsFor: string | undefined;
    let remains: Remains | undefined;
    if (agreed === undefined) {
      remains = await tenants.end(consumer, signal);
    } else if (isStored && promised !== undefined) {
      const tenancy = { consumer, contract: agreed, amounts: promised, policy: decision.policy.spec };
      const blocker = await tenants.ensure(tenancy, signal);
      if (blocker !== undefined) waitsFor = `waits for namespace ${blocker} of an earlier contract to end`;
    }
    const next = lentStatus(request, {
      decision,
      offer: lent,
      offerSignature:
        offer === status.offer ? status.offerSignature : identity.sign('offer', canonicalText(offer)),
      contract,
      promised,
      used: offers.used(consumer),
      isSetUp: isStored && waitsFor === undefined,
      waitsFor,
      taken,
      credentialExpires: credentialEnd(status.credentialExpires, heard.credentialExpires),
      nowMs,
    });
    const waitMs = await this.#writeUse(request, next, signal);
    const again = [waitMs, waitsFor && LOOK_AGAIN_MS, remains && this.#afterEnd(remains)?.requeueAfterMs];
    const renewalMs = Math.max(1000, renewalOf(offer) - nowMs);
    return { requeueAfterMs: Math.min(renewalMs, ...again.filter((ms) => typeof ms === 'number')) };
  }

  #offer(
    request: PeeringRequest,
    { policy }: Approval,
    nowMs: number,
  ): { offer: Offer; taken: readonly string[] } {
    const { identity, offers, tenants } = this.#options;
    const { status = {}, spec, metadata } = request;
    const consumer = metadata.name;
    const before = offerDocumentOf(request, identity)?.offer;
    const names = chooseTenantNames(spec.namespaces, {
      consumer,
      before: [...(before?.namespaces ?? []), ...(contractOf(status.contract)?.namespaces ?? [])],
      isTaken: (name) => tenants.isTaken(name, consumer),
    });
    const draft = offers.terms(consumer, policy, names.namespaces);
    const { name, generation } = policy.metadata;
    const policyChanged =
      status.policy !== name ||
      (status.policyGeneration !== undefined && status.policyGeneration !== generation);
    return { offer: nextOffer(offers, { before, draft, policy, policyChanged, nowMs }), taken: names.taken };
  }

  /** The contract in force: the one just accepted, with our signature, else the stored one. */
  #contract({ status = {} }: PeeringRequest, heard: Heard, nowMs: number): SignedContract | undefined {
    const { acceptance, peer } = heard;
    if (acceptance === null) return undefined;
    if (acceptance === undefined || peer === undefined) return status.contract;
    try {
      const worth = judgeAcceptance(acceptance, peer, { status, nowMs });
      if (worth === 'same' || worth === 'outdated') return status.contract;
    } catch (error) {
      // The peer was told when it said so, or the offer has changed since.
      if (hasCode(error, 'Invalid')) return status.contract;
      throw error;
    }
    const { text, signature: consumerSignature } = acceptance;
    const providerSignature = this.#options.identity.sign('contract', text);
    return { text, consumerSignature, providerSignature };
  }

  /** Writes the status; where nothing but use has moved, not too often. Returns how long to wait for that. */
  async #writeUse(
    request: PeeringRequest,
    next: PeeringRequestStatus,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { status } = request;
    const { name } = request.metadata;
    const nowMs = this.#options.clock.monotonic();
    if (!deepEqual(status?.used, next.used)) {
      const waitMs = (this.#useWrittenAt.get(name) ?? -Infinity) + USE_INTERVAL_MS - nowMs;
      const { used: _before, ...rest } = status ?? {};
      const { used: _now, ...nextRest } = next;
      if (waitMs > 0 && deepEqual(rest, nextRest)) return waitMs;
      this.#useWrittenAt.set(name, nowMs);
    }
    await this.#writeStatus(request, next, signal);
    return undefined;
  }

  async #writeStatus(
    request: PeeringRequest,
    status: PeeringRequestStatus,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, events, log } = this.#options;
    await replaceStatusIfDiffers(client, peeringRequests, request, { status, signal });
    const { phase, reason = '', message = '' } = status;
    if (phase !== request.status?.phase || reason !== request.status?.reason) {
      const isBad = phase === 'Denied' || phase === 'Ending';
      events.event(request, isBad ? 'Warning' : 'Normal', phase ?? reason, `${reason}: ${message}`);
      log.info('peering moved', { peer: request.metadata.name, phase, reason });
    }
    for (const { type, status: is, reason: why, message: text } of status.conditions ?? []) {
      const isNews = !request.status?.conditions?.some((it) => it.type === type && it.reason === why);
      if (is === 'False' && isNews && PROBLEMS.has(why)) events.event(request, 'Warning', why, text);
    }
  }
}

/** Worth an event of their own. */
const PROBLEMS: ReadonlySet<string> = new Set([
  PEERING_REQUEST_REASONS.exceeded,
  PEERING_REQUEST_REASONS.namespaceTaken,
]);

const CLUSTER_NAME = new RegExp(CLUSTER_NAME_PATTERN, 'u');

/** What is kept of a request. A name that could fool a terminal is left out; it is only for people. */
function specOf({
  clusterName,
  namespaces,
}: RequestDocument): Pick<PeeringRequestSpec, 'clusterName' | 'namespaces'> {
  return {
    ...(CLUSTER_NAME.test(clusterName) && { clusterName }),
    namespaces: [...new Set(namespaces)].toSorted(),
  };
}

/** Coarsely: each renewal of a token is not worth a write. */
function credentialEnd(written: string | undefined, now: string | undefined): string | undefined {
  if (now === undefined || written === undefined) return now ?? written;
  return Date.parse(now) - Date.parse(written) > CREDENTIAL_STEP_MS ? now : written;
}

const unless =
  (...codes: Parameters<typeof hasCode> extends [unknown, ...infer Codes] ? Codes : never) =>
  (error: unknown): void => {
    if (!hasCode(error, ...codes)) throw error;
  };
