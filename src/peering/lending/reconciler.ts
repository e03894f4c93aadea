import { isConditionTrue } from '../../api/conditions.ts';
import { FOREIGN_CLUSTER_REASONS, type PeeringWish } from '../../api/foreign-cluster.ts';
import { isClusterName } from '../../api/forms.ts';
import { FINALIZER_PEERING } from '../../api/names.ts';
import { type Contract, contractOf, type NamespaceOffer, type SignedContract } from '../../api/offer.ts';
import {
  PEERING_REQUEST_CONDITIONS,
  PEERING_REQUEST_REASONS,
  type PeeringRequest,
  peeringRequests,
  type PeeringRequestSpec,
} from '../../api/peering-request.ts';
import type { SharingPolicy, SharingPolicySpec } from '../../api/sharing-policy.ts';
import type { ResourceList } from '../../api/wire.ts';
import type { Remains, Tenants } from '../../hosting/tenants/tenants.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { addFinalizer, removeFinalizer } from '../../kube/finalizers.ts';
import { canonicalText } from '../../lib/canonical-json.ts';
import type { Clock } from '../../lib/clock.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { TokenCheckResult } from '../identity/join-tokens.ts';
import type { PeerFacts } from '../policy/match.ts';
import type { OwnIdentity } from '../ports.ts';
import type { RequestDocument } from '../protocol/documents.ts';
import { judgeAcceptance } from './acceptance.ts';
import { decide, type Decision, policyFor } from './decide.ts';
import type { Heard, Inbox } from './inbox.ts';
import { isEmpty, renewalOf } from '../offer/next-offer.ts';
import type { Offers } from './offers.ts';
import { StatusRecorder } from './recorder.ts';
import { amountsOf, endingStatus, lentStatus, refusedStatus, stuckMessage } from './status.ts';

/** What people and policies of this cluster say about a peer; src/peering/clusters knows. */
export interface LendingIntent {
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
  offers: Offers;
  /** Requests of the peer's pods here. */
  used: (clusterID: string) => ResourceList;
  request: (clusterID: string) => PeeringRequest | undefined;
  policies: () => Iterable<SharingPolicy>;
  intent: (clusterID: string) => LendingIntent;
  isLinked: (clusterID: string) => boolean;
  /** Milliseconds between a peer's last word and its end. Default 2000. */
  withdrawalGraceMs?: number;
  checkToken: (text: string, consumer: string, signal: AbortSignal) => Promise<TokenCheckResult>;
}

type Approval = Extract<Decision, { state: 'Approved' }>;

/** A namespace that does not end keeps a PeeringRequest for no longer than this. */
const NAMESPACE_PATIENCE_MS = 120_000;
const LOOK_AGAIN_MS = 5000;
/** So long a request is kept that nobody has let in, and whose peer has gone; it asks again when it comes back. */
const STRANGER_MS = 24 * 3600_000;
const STRANGER_STEP_MS = 3600_000;
/**
 * Where the ForeignCluster says Disabled, a request is kept only for as long as the peer is there to ask: ending a
 * peering with a dead one leaves nothing. Looked at so often.
 */
const GONE_STEP_MS = 15_000;
/**
 * A peer that no longer asks or accepts is given so long to say otherwise: one that has restarted may have spoken
 * before it knew what it wants, and its pods would be the price.
 */
const WITHDRAWAL_GRACE_MS = 2000;
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
  readonly #recorder: StatusRecorder;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#recorder = new StatusRecorder(options);
  }

  async reconcile(clusterID: string, { signal }: { signal: AbortSignal }): Promise<ReconcileResult | void> {
    const { inbox, request: find } = this.#options;
    const request = find(clusterID);
    const heard = inbox.of(clusterID);
    if (request === undefined) return this.#withoutRequest(clusterID, heard, signal);
    if (request.metadata.deletionTimestamp !== undefined) return this.#end(request, heard, signal);
    const graceMs = heard.request === null ? this.#graceMs(heard.requestSince) : Infinity;
    if (graceMs <= 0) return this.#delete(request, signal);
    // Within the grace all goes on as before, and a revocation is not put off by it.
    if (await this.#wroteSpec(request, heard.request ?? undefined, signal)) return;
    const decision = await this.#decide(request, heard, signal);
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
    const { client, inbox, tenants, offers } = this.#options;
    this.#recorder.forget(clusterID);
    offers.forget(clusterID);
    if (heard.request) {
      const metadata = { name: clusterID, finalizers: [FINALIZER_PEERING] };
      const spec = { clusterID, ...specOf(heard.request) };
      // AlreadyExists: made a moment ago, the watch brings it.
      const { group, version, kind } = peeringRequests;
      const body = { apiVersion: `${group}/${version}`, kind, metadata, spec };
      await client.create(peeringRequests, body, { signal }).catch(ignoring('AlreadyExists'));
      return;
    }
    inbox.forget(clusterID);
    // What a policy keeps for a while, and what is left where somebody took the finalizer away.
    const remains = await tenants.end(clusterID, signal);
    return this.#afterEnd(remains);
  }

  #afterEnd({ ending, keptUntil }: Remains): ReconcileResult {
    if (ending.length > 0) return { requeueAfterMs: LOOK_AGAIN_MS };
    if (keptUntil === undefined) return {};
    return { requeueAfterMs: Math.max(1000, keptUntil - this.#options.clock.now()) };
  }

  /** How long a peer may still take back that it wants nothing. Milliseconds. */
  #graceMs(sinceMs = -Infinity): number {
    const { clock, withdrawalGraceMs = WITHDRAWAL_GRACE_MS } = this.#options;
    return sinceMs + withdrawalGraceMs - clock.monotonic();
  }

  /** No longer asked for: a person's approval goes with it. */
  async #delete({ metadata }: PeeringRequest, signal: AbortSignal): Promise<void> {
    const { name, uid } = metadata;
    await this.#options.client
      .delete(peeringRequests, { name }, { uid, signal })
      .catch(ignoring('NotFound', 'Conflict'));
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
      await this.#recorder.write(request, endingStatus(request, { ...ending, reason, message }), signal);
      return { requeueAfterMs: LOOK_AGAIN_MS };
    }
    if (remains.ending.length > 0) {
      const message = `${stuckMessage(remains.ending)}; the peer has no account and no rights any more`;
      events.event(request, 'Warning', PEERING_REQUEST_REASONS.stuck, message);
    }
    await removeFinalizer(client, peeringRequests, request, { finalizer: FINALIZER_PEERING, signal });
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
    const { clusterName, namespaces, tenantNames } = request.spec;
    if (deepEqual(wanted, { clusterName, namespaces, tenantNames })) return false;
    const { name, uid } = request.metadata;
    // What the peer says and nothing else: `approval` is a person's.
    const spec = {
      ...wanted,
      clusterName: wanted.clusterName ?? null,
      tenantNames: wanted.tenantNames ?? null,
    };
    const body = { metadata: { uid }, spec };
    await client.patch(peeringRequests, { name }, { type: 'merge', body }, { signal });
    return true;
  }

  async #decide(request: PeeringRequest, heard: Heard, signal: AbortSignal): Promise<Decision> {
    const { inbox, intent, isLinked, policies, checkToken } = this.#options;
    const { metadata, spec, status = {} } = request;
    const { incoming, facts } = intent(metadata.name);
    const admitted = isConditionTrue(status.conditions, PEERING_REQUEST_CONDITIONS.approved);
    const standing = { policy: status.policy, linked: isLinked(metadata.name) };
    const policy = policyFor([...policies()], facts, admitted ? standing : undefined);
    const known: TokenCheckResult | undefined =
      status.token === undefined ? heard.refusedToken : { result: 'ok', name: status.token };
    const { approval } = spec;
    const state = { incoming, ...(approval && { approval }), policy, admitted };
    const decision = decide({ ...state, token: known });
    const text = heard.request?.joinToken;
    if (decision.state !== 'Pending' || known !== undefined || text === undefined) return decision;
    // Only now: a token is used up by looking whether it is good.
    const token = await checkToken(text, metadata.name, signal);
    const isStill = inbox.of(metadata.name).request === heard.request;
    if (token.result !== 'ok' && isStill) inbox.note(metadata.name, { refusedToken: token });
    return decide({ ...state, token });
  }

  async #refuse(
    request: PeeringRequest,
    decision: Exclude<Decision, Approval>,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { clock, inbox, tenants, isLinked, intent } = this.#options;
    const remains = await tenants.end(request.metadata.name, signal);
    const nowMs = clock.now();
    const ending = { namespaces: remains.ending, nowMs };
    await this.#recorder.write(request, refusedStatus(request, decision, ending), signal);
    // Somebody has an eye on it.
    if (request.spec.approval !== undefined) return this.#afterEnd(remains);
    const { requeueAfterMs = Infinity } = this.#afterEnd(remains);
    const isSaidElsewhere =
      intent(request.metadata.name).incoming === 'Disabled' && requeueAfterMs === Infinity;
    const leftMs = isSaidElsewhere ? 0 : Date.parse(request.metadata.creationTimestamp) + STRANGER_MS - nowMs;
    if (leftMs <= 0 && !isLinked(request.metadata.name)) {
      inbox.forget(request.metadata.name);
      await this.#delete(request, signal);
    }
    if (isSaidElsewhere) return { requeueAfterMs: GONE_STEP_MS };
    return { requeueAfterMs: Math.min(requeueAfterMs, Math.max(leftMs, STRANGER_STEP_MS)) };
  }

  async #lend(
    request: PeeringRequest,
    { decision, heard }: { decision: Approval; heard: Heard },
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    const { clock, identity, offers, used } = this.#options;
    const { status = {}, metadata } = request;
    const nowMs = clock.now();
    const { offer, taken, withheld } = offers.make(request, decision.policy, nowMs);
    const contract = this.#contract(request, heard, nowMs);
    const agreed = contractOf(contract);
    const promised = agreed && amountsOf(agreed.resources, offer.resources);
    const isNew = contract?.text !== status.contract?.text;
    const setUp = await this.#setUp(
      request,
      { agreed, isNew, promised, policy: decision.policy.spec },
      signal,
    );
    const isSame = offer === status.offer;
    const next = lentStatus(request, {
      decision,
      // With a contract in force an empty offer is told as such: it takes nothing away from what runs.
      offer: agreed === undefined && isEmpty(offer) ? undefined : offer,
      offerSignature: isSame ? status.offerSignature : identity.sign('offer', canonicalText(offer)),
      contract,
      promised,
      used: used(metadata.name),
      isSetUp: setUp.isDone,
      waitsFor: setUp.waitsFor,
      kinds: this.#options.tenants.kinds(metadata.name),
      taken,
      withheld,
      credentialExpires: credentialEnd(status.credentialExpires, heard.credentialExpires),
      nowMs,
    });
    const useMs = (await this.#recorder.write(request, next, signal)) ?? Infinity;
    const renewalMs = Math.max(1000, renewalOf(offer) - nowMs);
    const graceMs = heard.acceptance === null ? this.#graceMs(heard.acceptanceSince) : 0;
    return {
      requeueAfterMs: Math.min(renewalMs, useMs, setUp.lookAgainMs, graceMs > 0 ? graceMs : Infinity),
    };
  }

  /**
   * Makes the tenant of a contract that is stored; a new one is stored first, so that a tenant never stands without
   * a contract and is not taken for left over after a restart. Without a contract there is no tenant.
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
  ): Promise<{ isDone: boolean; waitsFor?: string; lookAgainMs: number }> {
    const { tenants } = this.#options;
    const { agreed: contract, isNew, promised: amounts, policy } = wanted;
    if (contract === undefined || amounts === undefined) {
      const { requeueAfterMs = Infinity } = this.#afterEnd(await tenants.end(consumer, signal));
      return { isDone: false, lookAgainMs: requeueAfterMs };
    }
    if (isNew) return { isDone: false, lookAgainMs: Infinity };
    // Somebody was faster: the next offer goes without it.
    const lost = contract.namespaces.find(({ tenantNamespace: name }) => tenants.isTaken(name, consumer));
    if (lost !== undefined) {
      const waitsFor = `namespace ${lost.tenantNamespace} is somebody else's by now`;
      return { isDone: false, waitsFor, lookAgainMs: LOOK_AGAIN_MS };
    }
    const waitsFor = await tenants
      .ensure({ consumer, contract, amounts, policy }, signal)
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
      // The peer was told when it said so, or the offer has changed since.
      if (hasCode(error, 'Invalid')) return status.contract;
      throw error;
    }
    const { text, signature: consumerSignature } = acceptance;
    const providerSignature = this.#options.identity.sign('contract', text);
    return { text, consumerSignature, providerSignature };
  }
}

/** What is kept of a request. A name that could fool a terminal is left out; it is only for people. */
function specOf({
  clusterName,
  namespaces,
  names = {},
}: RequestDocument): Pick<PeeringRequestSpec, 'clusterName' | 'namespaces' | 'tenantNames'> {
  const tenantNames = Object.entries(names)
    .map(([homeNamespace, tenantNamespace]): NamespaceOffer => ({ homeNamespace, tenantNamespace }))
    .toSorted((a, b) => (a.homeNamespace < b.homeNamespace ? -1 : 1));
  return {
    ...(isClusterName(clusterName) && { clusterName }),
    namespaces: [...new Set(namespaces)].toSorted(),
    ...(tenantNames.length > 0 && { tenantNames }),
  };
}

/** For people to read: somebody's admission or quota is in the way, or our own rights. Throws anything that passes. */
function refusalOf(error: unknown): string {
  if (hasCode(error, 'Forbidden', 'Invalid', 'NotFound')) return `cannot be set up: ${errorMessage(error)}`;
  throw error;
}

/** Coarsely: each renewal of a token is not worth a write. */
function credentialEnd(written: string | undefined, now: string | undefined): string | undefined {
  if (now === undefined || written === undefined) return now ?? written;
  return Date.parse(now) - Date.parse(written) > CREDENTIAL_STEP_MS ? now : written;
}
