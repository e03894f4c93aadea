import { timestamp, type WantedCondition, withCondition } from '../../api/conditions.ts';
import {
  FOREIGN_CLUSTER_REASONS,
  type ForeignClusterReason,
  type PeeringPhase,
} from '../../api/foreign-cluster.ts';
import { MAX_MESSAGE_LENGTH } from '../../api/limits.ts';
import {
  contractOf,
  type NamespaceOffer,
  type Offer,
  type SignedContract,
  type WithheldNamespace,
} from '../../api/offer.ts';
import {
  PEERING_REQUEST_CONDITIONS as CONDITIONS,
  PEERING_REQUEST_REASONS as REASONS,
  type PeeringRequest,
  type PeeringRequestStatus,
  type Suspension,
} from '../../api/peering-request.ts';
import type { Condition, Namespace, ResourceList } from '../../api/wire.ts';
import type { KindsReport } from '../../hosting/policies/kinds.ts';
import { present } from '../../lib/fields.ts';
import { parseMilli } from '../../lib/quantity.ts';
import type { Decision } from './decide.ts';
import { windDownMessage } from './wind-down.ts';

/** The status of a PeeringRequest, computed anew each time. All functions here are pure. */

type Refusal = Exclude<Decision, { state: 'Approved' }>;
type Approval = Extract<Decision, { state: 'Approved' }>;

/** A namespace that takes longer than this to end is called stuck. Its pods alone may take half a minute. */
export const STUCK_AFTER_MS = 90_000;

/** When the first of them began to end, in milliseconds since the epoch; `nowMs` if no object says when. */
const endingSince = (ending: readonly Namespace[], nowMs: number): number =>
  Math.min(nowMs, ...ending.map(({ metadata }) => Date.parse(metadata.deletionTimestamp ?? '') || nowMs));

export interface Ending {
  namespaces: readonly Namespace[];
  nowMs: number;
}

/** For how many milliseconds the slowest of them has been ending. */
export const endingForMs = ({ namespaces, nowMs }: Ending): number => nowMs - endingSince(namespaces, nowMs);

/** For a peer that is not let in, or no longer: we offer and grant nothing. */
export function refusedStatus(
  request: PeeringRequest,
  refusal: Refusal,
  ending: Ending,
): PeeringRequestStatus {
  const { status = {} } = request;
  // If a person denies the peer, its token no longer counts. If only the policy is gone, it may come back.
  const keepsToken = refusal.reason !== FOREIGN_CLUSTER_REASONS.deniedHere && status.token !== undefined;
  return {
    ...statusOf(request, {
      phase: ending.namespaces.length > 0 ? 'Ending' : refusal.state,
      reason: refusal.reason,
      message: refusal.message,
    }),
    ...(keepsToken && { token: status.token }),
    ...(ending.namespaces.length > 0 &&
      status.tenantNamespaces && { tenantNamespaces: status.tenantNamespaces }),
    conditions: conditionsOf(request, ending.nowMs, [
      condition(CONDITIONS.approved, false, refusal.reason, refusal.message),
      ...endingConditions(ending),
    ]),
  };
}

/** For a peer that no policy selects any more, and whose pods may still move. All that it has stays as it is. */
export function windingDownStatus(
  request: PeeringRequest,
  { why, untilMs, nowMs }: { why: string; untilMs: number; nowMs: number },
): PeeringRequestStatus {
  const { status = {}, metadata } = request;
  const { generation: observedGeneration } = metadata;
  const { endsSoon: reason, noPolicy } = FOREIGN_CLUSTER_REASONS;
  const message = windDownMessage(request, { why, untilMs }).slice(0, MAX_MESSAGE_LENGTH);
  const told = {
    ...condition(CONDITIONS.ending, true, noPolicy, message),
    ...present({ observedGeneration }),
  };
  return {
    ...status,
    ...present({ observedGeneration }),
    reason,
    message,
    ends: timestamp(untilMs),
    conditions: [...withCondition(status.conditions ?? [], told, nowMs)],
  };
}

/** For a peering that is being ended. */
export function endingStatus(
  request: PeeringRequest,
  ending: Ending & { reason: string; message: string },
): PeeringRequestStatus {
  const { reason, message } = ending;
  return {
    ...statusOf(request, { phase: 'Ending', reason, message }),
    ...(request.status?.tenantNamespaces && { tenantNamespaces: request.status.tenantNamespaces }),
    conditions: conditionsOf(request, ending.nowMs, [
      condition(CONDITIONS.approved, false, reason, message),
      ...endingConditions(ending),
    ]),
  };
}

function endingConditions(ending: Ending): WantedCondition[] {
  if (ending.namespaces.length === 0) return [];
  const names = ending.namespaces.map(({ metadata }) => metadata.name).join(', ');
  return [
    endingForMs(ending) < STUCK_AFTER_MS
      ? condition(CONDITIONS.tenant, false, FOREIGN_CLUSTER_REASONS.ending, `waits for ${names} to end`)
      : condition(CONDITIONS.tenant, false, REASONS.stuck, stuckMessage(ending.namespaces)),
  ];
}

export const stuckMessage = (stuck: readonly Namespace[]): string =>
  `the API server does not finish deleting ${stuck.map(({ metadata }) => metadata.name).join(', ')}; ` +
  'look for finalizers with: kubectl get namespace -o yaml';

export interface Lent {
  decision: Approval;
  offer: Offer | undefined;
  offerSignature: string | undefined;
  contract: SignedContract | undefined;
  /** What the peer may use today of what the contract grants. */
  promised: ResourceList | undefined;
  used: ResourceList;
  /** The tenant of the stored contract has all that it needs. */
  isSetUp: boolean;
  /** Why what it had is closed to it. */
  closedBy: ForeignClusterReason | undefined;
  /** The last one, which may be over. */
  suspension: Suspension | undefined;
  /** What the set-up waits for. */
  waitsFor: string | undefined;
  kinds: KindsReport | undefined;
  /** Home namespaces for which no name is free here. */
  taken: readonly string[];
  /** All home namespaces that get none here, with the reason. */
  withheld: WithheldNamespace[];
  credentialExpires: string | undefined;
  nowMs: number;
}

/** For a peer that is let in: we have made an offer, it has agreed, or its tenant is set up. */
export function lentStatus(request: PeeringRequest, lent: Lent): PeeringRequestStatus {
  const { decision, offer, offerSignature, contract, promised, credentialExpires } = lent;
  const { status = {} } = request;
  const agreed = contractOf(contract)?.namespaces;
  const made = lent.isSetUp ? agreed : status.tenantNamespaces;
  const isUp =
    agreed !== undefined && lent.closedBy === undefined && (lent.isSetUp || isStillUp(status, agreed));
  const { metadata } = decision.policy;
  return {
    ...statusOf(request, phaseOf(lent, isUp)),
    policy: metadata.name,
    ...present({ policyGeneration: metadata.generation, token: decision.token ?? status.token }),
    ...(offer !== undefined && present({ offer, offerSignature })),
    ...(lent.withheld.length > 0 && { withheld: lent.withheld }),
    ...(contract !== undefined && {
      contract,
      used: lent.used,
      ...present({ promised, tenantNamespaces: made, credentialExpires }),
    }),
    ...present({ suspension: lent.suspension }),
    conditions: conditionsOf(request, lent.nowMs, lentConditions(lent, isUp)),
  };
}

/** Whether all that a revised contract needs is there from the one before, because only amounts have changed. */
function isStillUp(
  { phase, tenantNamespaces = [] }: PeeringRequestStatus,
  agreed: readonly NamespaceOffer[],
): boolean {
  const there = new Set(tenantNamespaces.map(({ tenantNamespace }) => tenantNamespace));
  return phase === 'Established' && agreed.every(({ tenantNamespace }) => there.has(tenantNamespace));
}

type Phase = { phase: PeeringPhase; reason: string; message: string };

function phaseOf({ decision, offer, contract, waitsFor, closedBy }: Lent, isUp: boolean): Phase {
  const { message } = decision;
  const { ok, settingUp, waitingForOffer } = FOREIGN_CLUSTER_REASONS;
  if (contract === undefined) {
    if (offer !== undefined) return { phase: 'Offered', reason: ok, message };
    return { phase: 'Pending', reason: waitingForOffer, message: 'nothing is free that could be lent' };
  }
  if (isUp) return { phase: 'Established', reason: ok, message };
  return {
    phase: 'Accepted',
    reason: closedBy ?? settingUp,
    message: waitsFor ?? 'the tenant is being set up',
  };
}

function lentConditions(lent: Lent, isUp: boolean): WantedCondition[] {
  const { decision, contract, promised = {}, used, taken, waitsFor, kinds } = lent;
  const conditions = [condition(CONDITIONS.approved, true, REASONS.ok, decision.message)];
  if (taken.length > 0) {
    const message = `no free name for a tenant of ${taken.join(', ')}: other namespaces bear them`;
    conditions.push(condition(CONDITIONS.tenant, false, REASONS.namespaceTaken, message));
  } else if (contract !== undefined) {
    const isReady = isUp && waitsFor === undefined;
    const message = isReady
      ? 'namespaces, quota, rights and account are in place'
      : (waitsFor ?? 'being set up');
    const reason = isReady ? REASONS.ok : (lent.closedBy ?? FOREIGN_CLUSTER_REASONS.settingUp);
    conditions.push(condition(CONDITIONS.tenant, isReady, reason, message));
  }
  if (lent.closedBy === FOREIGN_CLUSTER_REASONS.suspended && waitsFor !== undefined) {
    conditions.push(condition(CONDITIONS.suspended, true, REASONS.heedless, waitsFor));
  }
  if (contract !== undefined && kinds !== undefined) {
    conditions.push(condition(CONDITIONS.kinds, kinds.state === REASONS.ok, kinds.state, kinds.message));
  }
  if (contract !== undefined) conditions.push(useCondition(used, promised));
  return conditions;
}

function useCondition(used: ResourceList, promised: ResourceList): WantedCondition {
  const breach = breachOf(used, promised);
  if (breach === undefined)
    return condition(CONDITIONS.withinContract, true, REASONS.ok, 'no more is used than was agreed');
  const message = `more is used than is lent now: ${breach}; running pods stay, new ones are refused by quota in each namespace`;
  return condition(CONDITIONS.withinContract, false, REASONS.exceeded, message);
}

function statusOf(request: PeeringRequest, { phase, reason, message }: Phase): PeeringRequestStatus {
  const { generation } = request.metadata;
  return {
    ...(generation !== undefined && { observedGeneration: generation }),
    phase,
    reason,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
  };
}

const condition = (type: string, isTrue: boolean, reason: string, message: string): WantedCondition => ({
  type,
  status: isTrue ? 'True' : 'False',
  reason,
  message,
});

/** Returns these conditions and removes others: a condition about something that is gone would mislead. */
function conditionsOf(
  request: PeeringRequest,
  nowMs: number,
  wanted: readonly WantedCondition[],
): Condition[] {
  // The guardian writes HomePresent.
  const kept = (request.status?.conditions ?? []).filter(
    ({ type }) => type === CONDITIONS.home || wanted.some((it) => it.type === type),
  );
  const observedGeneration = request.metadata.generation;
  return [
    ...wanted.reduce<readonly Condition[]>(
      (conditions, it) =>
        withCondition(
          conditions,
          { ...it, ...(observedGeneration !== undefined && { observedGeneration }) },
          nowMs,
        ),
      kept,
    ),
  ];
}

/**
 * What a peer may use: what was agreed, but never more than we lend today, even if the peer has not signed the smaller
 * offer yet. Of a resource that we no longer offer, it may use nothing.
 */
export function amountsOf(agreed: ResourceList, lent: ResourceList): ResourceList {
  return Object.fromEntries(
    Object.entries(agreed).map(([resource, amount]) => {
      const most = lent[resource] ?? '0';
      return [resource, parseMilli(amount) > parseMilli(most) ? most : amount];
    }),
  );
}

/** What is used beyond what was agreed, as in `cpu 3 of 2`; undefined if there is no such use. */
export function breachOf(used: ResourceList, agreed: ResourceList): string | undefined {
  const above = Object.entries(used).filter(
    ([resource, amount]) => parseMilli(amount) > parseMilli(agreed[resource] ?? '0'),
  );
  if (above.length === 0) return undefined;
  return above.map(([resource, amount]) => `${resource} ${amount} of ${agreed[resource] ?? '0'}`).join(', ');
}

/** We write a later end of the credential if it has moved by more than this. */
const CREDENTIAL_STEP_MS = 5 * 60_000;

/** In coarse steps: a renewal of a token alone is not worth a write. */
export function credentialEnd(written: string | undefined, now: string | undefined): string | undefined {
  if (now === undefined || written === undefined) return now ?? written;
  return Date.parse(now) - Date.parse(written) > CREDENTIAL_STEP_MS ? now : written;
}
