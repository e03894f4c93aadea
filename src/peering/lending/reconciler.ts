import { isConditionTrue } from '../../api/conditions.ts';
import { FOREIGN_CLUSTER_REASONS } from '../../api/foreign-cluster.ts';
import { FINALIZER_PEERING } from '../../api/names.ts';
import { type Contract, contractOf, type SignedContract } from '../../api/offer.ts';
import {
  PEERING_REQUEST_CONDITIONS,
  PEERING_REQUEST_REASONS,
  type PeeringRequest,
  peeringRequests,
  type PeeringRequestStatus,
} from '../../api/peering-request.ts';
import type { SharingPolicy, SharingPolicySpec } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import type { Remains } from '../../hosting/tenants/ending-namespaces.ts';
import type { Tenants } from '../../hosting/tenants/tenants.ts';
import type { Cache } from '../../kube/cache.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { addFinalizer, removeFinalizer } from '../../kube/finalizers.ts';
import { deleteByUid } from '../../kube/write.ts';
import { canonicalText } from '../../lib/canonical-json.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode } from '../../lib/errors.ts';
import type { Pace } from '../../lib/pace.ts';
import type { JoinTokens, TokenCheckResult } from '../identity/join-tokens.ts';
import type { StockWatcher } from '../offer/stock-watcher.ts';
import type { OwnIdentity, PeerLinks } from '../ports.ts';
import { judgeAcceptance } from './acceptance.ts';
import { decide, type Decision, policyFor } from './decide.ts';
import { closed, forgetResume, refusalOf, type SetUp } from './closing.ts';
import type { Fences } from './fences.ts';
import type { Heard, Inbox } from './inbox.ts';
import type { LendingIntent } from './intent.ts';
import { isEmpty, renewalOf } from '../offer/next-offer.ts';
import type { Offers } from './offers.ts';
import { StatusRecorder } from './recorder.ts';
import { createRequest, patchSpec, specPatchOf } from './request-spec.ts';
import { isWithdrawn, specOf } from './requested.ts';
import {
  amountsOf,
  credentialEnd,
  endingStatus,
  lentStatus,
  refusedStatus,
  stuckMessage,
  windingDownStatus,
} from './status.ts';
import { isStranger, outlineOf, strangerPace } from './strangers.ts';
import { isLifted, type Suspensions } from './suspension.ts';
import { windsDownUntil } from './wind-down.ts';

export interface ReconcilerOptions extends ClusterBasics {
  events: EventRecorder;
  identity: OwnIdentity;
  inbox: Inbox;
  tenants: Tenants;
  offers: Offers;
  tokens: Pick<JoinTokens, 'check'>;
  fences: Pick<Fences, 'isClosed' | 'drop'>;
  suspensions: Pick<Suspensions, 'of'>;
  stock: Pick<StockWatcher, 'usage'>;
  requests: Pick<Cache<PeeringRequest>, 'get'>;
  policies: Pick<Cache<SharingPolicy>, 'list'>;
  intents: { intent(clusterID: string): LendingIntent };
  links: Pick<PeerLinks, 'view'>;
  /** Milliseconds between a peer's word that it wants nothing any more and the end of it. Default 2000. */
  withdrawalGraceMs?: number;
  /** How long a peer keeps its tenant when no policy selects it any more. Default 0. */
  endGraceMs?: number;
}

type Approval = Extract<Decision, { state: 'Approved' }>;
type Refusal = Exclude<Decision, Approval>;

/** We keep a deleted PeeringRequest at most so long because a namespace does not end. */
const NAMESPACE_PATIENCE_MS = 120_000;
const LOOK_AGAIN_MS = 5000;
const LEAST_MS = 250;
/** We keep a request so long if nobody has let the peer in and it has gone; it asks again when it comes back. */
const STRANGER_MS = 24 * 3600_000;
const STRANGER_STEP_MS = 3600_000;
/**
 * If the ForeignCluster says Disabled, we keep a request only while the peer is linked, so that nothing remains of a
 * peering with a dead peer. We look so often whether it is.
 */
const GONE_STEP_MS = 15_000;
/**
 * A peer that no longer asks or accepts has so long to say otherwise: a peer that has restarted may have spoken before
 * it knew what it wants, and it would lose its pods.
 */
const WITHDRAWAL_GRACE_MS = 2000;

/**
 * Makes the world right for one peer. What it asks and accepts is in the inbox (or, after a restart, in the stored
 * PeeringRequest until the peer has said it again), everything else in caches. Order of things:
 *
 *     request heard ─▶ decision ─▶ PeeringRequest ─▶ offer stored ─▶ offer sent
 *     acceptance heard ─▶ contract signed and stored ─▶ tenant made ─▶ phase Established ─▶ grant sent
 *     no longer let in, asked for or accepted ─▶ account and rights deleted ─▶ namespaces ─▶ stored ─▶ grant sent
 *
 * Each arrow is one reconcile or a write within it, so a kill between any two of them costs nothing.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #recorder: StatusRecorder;
  readonly #strangers: Pace;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#recorder = new StatusRecorder(options);
    this.#strangers = strangerPace(options.clock);
  }

  async reconcile(clusterID: string, { signal }: { signal: AbortSignal }): Promise<ReconcileResult | void> {
    const { inbox, requests } = this.#options;
    const request = requests.get(clusterID);
    const heard = inbox.of(clusterID);
    if (request === undefined) return this.#withoutRequest(clusterID, heard, signal);
    if (request.metadata.deletionTimestamp !== undefined) return this.#end(request, heard, signal);
    const graceMs = isWithdrawn(request, heard) ? this.#graceMs(heard.requestSince) : Infinity;
    if (graceMs <= 0) return this.#delete(request, signal);
    const how = { finalizer: FINALIZER_PEERING, signal };
    if ((await addFinalizer(this.#options.client, peeringRequests, request, how)) !== request) return;
    // Within the grace everything goes on as before; a revocation does not wait for its end.
    const decision = await this.#decide(request, heard, signal);
    if (await this.#wroteSpec(request, decision, signal)) return;
    const nowMs = this.#options.clock.now();
    const isAccepted = heard.acceptance !== null || this.#graceMs(heard.acceptanceSince) > 0;
    const { endGraceMs: endMs = 0 } = this.#options;
    const untilMs = windsDownUntil(request, { decision, graceMs: endMs, isAccepted, nowMs });
    if (untilMs !== undefined) {
      const next = windingDownStatus(request, { why: decision.message, untilMs, nowMs });
      await this.#recorder.write(request, next, signal);
      return { requeueAfterMs: Math.min(graceMs, Math.max(untilMs - nowMs, LEAST_MS)) };
    }
    const { requeueAfterMs = Infinity } =
      decision.state === 'Approved'
        ? await this.#lend(request, { decision, heard }, signal)
        : await this.#refuse(request, decision, signal);
    const againMs = Math.min(requeueAfterMs, graceMs);
    return againMs === Infinity ? undefined : { requeueAfterMs: againMs };
  }

  async #withoutRequest(
    clusterID: string,
    heard: Heard,
    signal: AbortSignal,
  ): Promise<ReconcileResult | void> {
    const { fences, inbox, tenants, offers } = this.#options;
    this.#recorder.forget(clusterID);
    offers.forget(clusterID);
    // Its Lease has gone with the request; what is made next begins without one.
    await fences.drop(clusterID, false, signal);
    if (heard.request) return this.#create(clusterID, heard, specOf(heard.request), signal);
    inbox.forget(clusterID);
    // Ends what a policy keeps for a while, and what is left if somebody has removed the finalizer.
    const remains = await tenants.end(clusterID, signal);
    return this.#afterEnd(clusterID, remains);
  }

  /** Of a stranger only an outline is written, when it is its turn. */
  async #create(
    clusterID: string,
    heard: Heard,
    wish: ReturnType<typeof specOf>,
    signal: AbortSignal,
  ): Promise<ReconcileResult | void> {
    const metadata = { name: clusterID } as PeeringRequest['metadata'];
    const decision = await this.#decide({ metadata, spec: { clusterID, ...wish } }, heard, signal);
    if (decision.state === 'Approved') return createRequest(this.#options.client, clusterID, wish, signal);
    const waitMs = this.#strangers.turn(clusterID);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    return createRequest(this.#options.client, clusterID, outlineOf(wish), signal);
  }

  #afterEnd(clusterID: string, { ending, keptUntil }: Remains): ReconcileResult {
    if (ending.length > 0) return { requeueAfterMs: LOOK_AGAIN_MS };
    if (keptUntil === undefined) return {};
    const { clock, tenants } = this.#options;
    return {
      requeueAfterMs: Math.min(tenants.lookAgainMs(clusterID), Math.max(1000, keptUntil - clock.now())),
    };
  }

  /** For how many milliseconds a peer may still take back its word that it wants nothing. */
  #graceMs(sinceMs = -Infinity): number {
    const { clock, withdrawalGraceMs = WITHDRAWAL_GRACE_MS } = this.#options;
    return sinceMs + withdrawalGraceMs - clock.monotonic();
  }

  #isLinked(clusterID: string): boolean {
    return this.#options.links.view(clusterID) !== undefined;
  }

  /** The peer no longer asks. The approval that a person has given goes with the object. */
  async #delete(request: PeeringRequest, signal: AbortSignal): Promise<void> {
    await deleteByUid(this.#options.client, peeringRequests, request, { signal });
  }

  async #end(request: PeeringRequest, heard: Heard, signal: AbortSignal): Promise<ReconcileResult | void> {
    const { client, clock, tenants, events } = this.#options;
    if (!request.metadata.finalizers?.includes(FINALIZER_PEERING)) return;
    const remains = await tenants.end(request.metadata.name, signal);
    const ending = { namespaces: remains.ending, nowMs: clock.now() };
    const sinceMs = ending.nowMs - Date.parse(request.metadata.deletionTimestamp ?? '');
    if (remains.ending.length > 0 && sinceMs < NAMESPACE_PATIENCE_MS) {
      const { withdrawn, revoked } = FOREIGN_CLUSTER_REASONS;
      // It may ask again in the meantime, for which a new object is made afterwards.
      const isWithdrawn = heard.request === null || request.status?.reason === withdrawn;
      const reason = isWithdrawn ? withdrawn : revoked;
      const message = isWithdrawn ? 'the peer no longer asks' : 'the PeeringRequest was deleted';
      await this.#recorder.write(request, endingStatus(request, { ...ending, reason, message }), signal);
      return { requeueAfterMs: LOOK_AGAIN_MS };
    }
    if (remains.ending.length > 0) {
      const message = `${stuckMessage(remains.ending)}; the peer has no account and no rights any more`;
      events.event(request, 'Warning', PEERING_REQUEST_REASONS.stuck, message);
    }
    await removeFinalizer(client, peeringRequests, request, { finalizer: FINALIZER_PEERING, signal });
  }

  /** Returns whether anything was written; then the change starts the next reconcile. */
  async #wroteSpec(request: PeeringRequest, decision: Decision, signal: AbortSignal): Promise<boolean> {
    const { request: wish } = this.#options.inbox.of(request.metadata.name);
    if (!wish || isStranger(request, decision)) return false;
    const spec = specPatchOf(request, specOf(wish));
    if (spec !== undefined) await patchSpec(this.#options.client, request, spec, signal);
    return spec !== undefined;
  }

  async #decide(request: PeeringRequest, heard: Heard, signal: AbortSignal): Promise<Decision> {
    const { inbox, intents, policies, tokens } = this.#options;
    const { metadata, spec, status = {} } = request;
    const { incoming, facts, tetheredTo } = intents.intent(metadata.name);
    const admitted = isConditionTrue(status.conditions, PEERING_REQUEST_CONDITIONS.approved);
    const standing = { policy: status.policy, linked: this.#isLinked(metadata.name) };
    const policy = policyFor([...policies.list()], facts, admitted ? standing : undefined);
    const known: TokenCheckResult | undefined =
      status.token === undefined ? heard.refusedToken : { result: 'ok', name: status.token };
    const { approval } = spec;
    // What is written of a stranger may be older than what it says.
    const tether = (heard.request ?? spec).tether === true;
    const state = { incoming, ...(approval && { approval }), policy, admitted, tether, tetheredTo };
    const decision = decide({ ...state, token: known });
    const text = heard.request?.joinToken;
    if (decision.state !== 'Pending' || known !== undefined || text === undefined) return decision;
    // Not earlier: the check of a token uses it up.
    const token = await tokens.check(text, metadata.name, signal);
    const isStill = inbox.of(metadata.name).request === heard.request;
    if (token.result !== 'ok' && isStill) inbox.note(metadata.name, { refusedToken: token });
    return decide({ ...state, token });
  }

  async #refuse(request: PeeringRequest, decision: Refusal, signal: AbortSignal): Promise<ReconcileResult> {
    const { clock, inbox, tenants, intents } = this.#options;
    const clusterID = request.metadata.name;
    const remains = await tenants.end(clusterID, signal);
    const nowMs = clock.now();
    const ending = { namespaces: remains.ending, nowMs };
    const next = refusedStatus(request, decision, ending);
    const waitMs = isStranger(request, decision)
      ? await this.#showStranger(request, next, signal)
      : await this.#recorder.write(request, next, signal);
    const after = this.#afterEnd(clusterID, remains);
    const requeueAfterMs = Math.min(after.requeueAfterMs ?? Infinity, waitMs ?? Infinity);
    // A person has decided about it, so it stays.
    if (request.spec.approval !== undefined) return requeueAfterMs === Infinity ? {} : { requeueAfterMs };
    const isSaidElsewhere =
      intents.intent(request.metadata.name).incoming === 'Disabled' && after.requeueAfterMs === undefined;
    const leftMs = isSaidElsewhere ? 0 : Date.parse(request.metadata.creationTimestamp) + STRANGER_MS - nowMs;
    if (leftMs <= 0 && !this.#isLinked(request.metadata.name)) {
      inbox.forget(request.metadata.name);
      await this.#delete(request, signal);
    }
    const againMs = isSaidElsewhere ? GONE_STEP_MS : Math.max(leftMs, STRANGER_STEP_MS);
    return { requeueAfterMs: Math.min(requeueAfterMs, againMs) };
  }

  /** One write, when it is its turn: what it wants, then what became of it. Returns for how long it has to wait. */
  async #showStranger(
    request: PeeringRequest,
    next: PeeringRequestStatus,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { client, inbox } = this.#options;
    const { request: wish } = inbox.of(request.metadata.name);
    const spec = wish ? specPatchOf(request, outlineOf(specOf(wish))) : undefined;
    if (spec === undefined && deepEqual(request.status, next)) return undefined;
    const waitMs = this.#strangers.turn(request.metadata.name);
    if (waitMs > 0) return waitMs;
    if (spec === undefined) return this.#recorder.write(request, next, signal);
    await patchSpec(client, request, spec, signal);
    return undefined;
  }

  async #lend(
    request: PeeringRequest,
    { decision, heard }: { decision: Approval; heard: Heard },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { clock, identity, offers, stock, tenants } = this.#options;
    const { status = {}, metadata } = request;
    const nowMs = clock.now();
    const { offer, taken, withheld } = offers.make(request, decision.policy, nowMs);
    const contract = this.#contract(request, heard, nowMs);
    const agreed = contractOf(contract);
    const promised = agreed && amountsOf(agreed.resources, offer.resources);
    const isNew = contract?.text !== status.contract?.text;
    const wanted = { agreed, isNew, promised, policy: decision.policy.spec };
    const suspension = this.#options.suspensions.of(request, nowMs);
    const closing = { agreed, suspension };
    const setUp =
      (await closed(request, closing, this.#options, signal)) ?? (await this.#setUp(request, wanted, signal));
    const isSame = offer === status.offer;
    const next = lentStatus(request, {
      decision,
      // If a contract is in force, we send an empty offer as it is: it takes nothing away from what runs.
      offer: agreed === undefined && isEmpty(offer) ? undefined : offer,
      offerSignature: isSame ? status.offerSignature : identity.sign('offer', canonicalText(offer)),
      contract,
      promised,
      used: stock.usage(metadata.name),
      isSetUp: setUp.isDone,
      closedBy: setUp.closedBy,
      suspension,
      waitsFor: setUp.waitsFor,
      kinds: tenants.kinds(metadata.name),
      taken,
      withheld,
      credentialExpires: credentialEnd(status.credentialExpires, heard.credentialExpires),
      nowMs,
    });
    const useMs = (await this.#recorder.write(request, next, signal)) ?? Infinity;
    // Not before what it asks for is stored.
    if (isLifted(request)) await forgetResume(this.#options.client, request, signal);
    const renewalMs = Math.max(1000, renewalOf(offer) - nowMs);
    const graceMs = heard.acceptance === null ? this.#graceMs(heard.acceptanceSince) : 0;
    return {
      requeueAfterMs: Math.min(renewalMs, useMs, setUp.lookAgainMs, graceMs > 0 ? graceMs : Infinity),
    };
  }

  /**
   * Makes the tenant of a stored contract. A new contract is stored first, so that no tenant exists without a contract
   * and none is taken for a remnant after a restart. Without a contract there is no tenant.
   */
  async #setUp(
    { metadata: { name: consumer } }: PeeringRequest,
    wanted: {
      agreed: Contract | undefined;
      isNew: boolean;
      promised: ResourceList | undefined;
      policy: SharingPolicySpec;
    },
    signal: AbortSignal,
  ): Promise<SetUp> {
    const { tenants, intents } = this.#options;
    const { agreed: contract, isNew, promised: amounts, policy } = wanted;
    if (contract === undefined || amounts === undefined) {
      const { requeueAfterMs = Infinity } = this.#afterEnd(consumer, await tenants.end(consumer, signal));
      return { isDone: false, lookAgainMs: requeueAfterMs };
    }
    if (isNew) return { isDone: false, lookAgainMs: Infinity };
    // Somebody else has made that namespace first: the next offer leaves it out.
    const lost = contract.namespaces.find(({ tenantNamespace: name }) => tenants.isTaken(name, consumer));
    if (lost !== undefined) {
      const waitsFor = `namespace ${lost.tenantNamespace} is somebody else's by now`;
      return { isDone: false, waitsFor, lookAgainMs: LOOK_AGAIN_MS };
    }
    const { virtualNodes: returnsTo = [] } = intents.intent(consumer).returning ?? {};
    const waitsFor = await tenants
      .ensure({ consumer, contract, amounts, policy, returnsTo }, signal)
      .catch((error: unknown) => refusalOf(error));
    return waitsFor === undefined
      ? { isDone: true, lookAgainMs: tenants.lookAgainMs(consumer) }
      : { isDone: false, waitsFor, lookAgainMs: LOOK_AGAIN_MS };
  }

  /** The contract in force: the one just accepted, with our signature, else the stored one. */
  #contract({ status = {} }: PeeringRequest, heard: Heard, nowMs: number): SignedContract | undefined {
    const { acceptance, peer } = heard;
    if (acceptance === null) {
      return this.#graceMs(heard.acceptanceSince) > 0 ? status.contract : undefined;
    }
    if (acceptance === undefined || peer === undefined) return status.contract;
    try {
      const worth = judgeAcceptance(acceptance, peer, { status, nowMs });
      if (worth === 'same' || worth === 'outdated') return status.contract;
    } catch (error) {
      // We told the peer when it sent this, or the offer has changed since.
      if (hasCode(error, 'Invalid')) return status.contract;
      throw error;
    }
    const { text, signature: consumerSignature } = acceptance;
    const providerSignature = this.#options.identity.sign('contract', text);
    return { text, consumerSignature, providerSignature };
  }
}
