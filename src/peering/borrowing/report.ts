import {
  ADVERTISEMENT_CONDITIONS,
  ADVERTISEMENT_REASONS,
  type AdvertisementStatus,
} from '../../api/advertisement.ts';
import { conditionOf } from '../../api/conditions.ts';
import { FOREIGN_CLUSTER_REASONS } from '../../api/foreign-cluster.ts';
import { MAX_MESSAGE_LENGTH } from '../../api/limits.ts';
import { present } from '../../lib/fields.ts';
import type { PeeringReport } from '../ports.ts';
import type { GrantDocument } from '../protocol/documents.ts';
import type { BorrowingFacts, OfferAssessment, Step } from './facts.ts';

const REASONS = FOREIGN_CLUSTER_REASONS;
const AGREED = 'agreed on by both';
const KNOWN = new Set<string>(Object.values(REASONS));

/** A peer's reason is shown only where it is one of the list. What it calls "here" is over there for us. */
function known(reason: string | undefined, otherwise: string): string {
  if (reason === REASONS.deniedHere) return REASONS.denied;
  return reason !== undefined && KNOWN.has(reason) ? reason : otherwise;
}

/** Says whose words these are: people look for the provider's policies and commands over there. */
const quoted = (message: string): string => `the provider says: ${message}`;

/** While nothing of it is in place: what is waited for, and who has to act. */
export function restReport(facts: BorrowingFacts, assessment?: OfferAssessment): PeeringReport {
  const { intent, received, advertisement } = facts;
  if (!intent.wanted) return { phase: 'None', reason: REASONS.notWanted };
  if (advertisement?.spec.approval === 'Denied') {
    return { phase: 'Denied', reason: REASONS.deniedHere, message: 'a person here has denied the offer' };
  }
  const grant = withEnd(received.grant);
  if (grant?.state === 'Denied' || grant?.state === 'Ended')
    return refusedReport({ ...grant, state: grant.state });
  if (assessment !== undefined && assessment.resources === undefined) return offeredReport(assessment, grant);
  if (received.refusal !== undefined && advertisement === undefined) {
    return { phase: 'Pending', reason: REASONS.invalid, message: received.refusal };
  }
  return pendingReport(facts);
}

/** One that has an end counts as ended, once our pods have left. */
const withEnd = (grant: GrantDocument | null | undefined): GrantDocument | null | undefined =>
  grant?.state === 'Active' && grant.ends !== undefined ? { ...grant, state: 'Ended' } : grant;

/** When an offer is over, the provider is asked again. */
function offeredReport(
  { decision, reason, message }: OfferAssessment,
  grant?: GrantDocument | null,
): PeeringReport {
  const isOver = decision === 'Expired';
  if (isOver && grant?.state === 'Pending') return undecided(grant);
  return {
    phase: isOver ? 'Pending' : 'Offered',
    reason: OFFERED[reason] ?? REASONS.offerRefused,
    message,
  };
}

const UNEXPLAINED = { Denied: 'the provider says no', Ended: 'the provider has ended it' };

function refusedReport({
  state,
  reason,
  message,
}: GrantDocument & { state: 'Denied' | 'Ended' }): PeeringReport {
  const otherwise = state === 'Denied' ? REASONS.denied : REASONS.revoked;
  return {
    phase: 'Denied',
    reason: known(reason, otherwise),
    message: message === undefined ? UNEXPLAINED[state] : quoted(message),
  };
}

function pendingReport({ received: { grant, offer } }: BorrowingFacts): PeeringReport {
  if (offer != null) return { phase: 'Offered', reason: REASONS.settingUp, message: 'an offer has come' };
  if (grant?.state === 'Pending') return undecided(grant);
  return { phase: 'Pending', reason: REASONS.waitingForOffer, message: 'the provider has sent no offer yet' };
}

const undecided = ({ reason, message }: GrantDocument): PeeringReport => ({
  phase: 'Pending',
  reason: known(reason, REASONS.waitingForDecision),
  message: message === undefined ? 'the provider has not decided yet' : quoted(message),
});

const OFFERED: Readonly<Record<string, string>> = {
  [ADVERTISEMENT_REASONS.waitingForApproval]: REASONS.waitingForApproval,
  [ADVERTISEMENT_REASONS.noPolicy]: REASONS.noPolicy,
  [ADVERTISEMENT_REASONS.expired]: REASONS.waitingForOffer,
  [ADVERTISEMENT_REASONS.withdrawn]: REASONS.withdrawn,
};

/** It is accepted here, and being set up. */
const waitReport = (message: string): PeeringReport => ({
  phase: 'Accepted',
  reason: REASONS.settingUp,
  message,
});

/** Our contract waits for the provider's signature. One that lends to us has signed an earlier one, so nothing goes back. */
export const unsignedReport = ({ received: { grant } }: Pick<BorrowingFacts, 'received'>): PeeringReport =>
  waitReport(grant?.state === 'Active' ? AGREED : 'the provider has not signed the contract yet');

export const ending = (message: string): PeeringReport => ({
  phase: 'Ending',
  reason: REASONS.ending,
  message,
});

type Decision = Pick<OfferAssessment, 'decision' | 'reason' | 'message' | 'policy'>;

/** Names the policy, which is ours to change. */
export function whyClosed({ decision, message, policy }: Omit<Decision, 'reason'>): string {
  const by = policy === undefined ? '' : `AcceptancePolicy ${policy} refuses the offer: `;
  // The object in which it is said says more beside it.
  return `${decision === 'Refused' ? by : ''}${message}`.slice(0, MAX_MESSAGE_LENGTH / 2);
}

/** Until a new offer is looked at, what was decided of the one before holds. */
function closedBy(status: AdvertisementStatus = {}, step: Step): Decision | undefined {
  if (step.kind === 'use') return step.closed === undefined ? undefined : step.assessment;
  const { decision, reason = '', message = '', policy } = status;
  const isClosed = decision === 'Refused' || reason === ADVERTISEMENT_REASONS.withdrawn;
  if (step.kind !== 'keep' || decision === undefined || !isClosed) return undefined;
  return { decision, reason, message, ...present({ policy }) };
}

/** In use, or being set up, as the Advertisement's conditions say; in use, too, where only nothing new is sent there. */
function usedReport({ advertisement, received: { grant } }: BorrowingFacts, step: Step): PeeringReport {
  if (grant?.state === 'Pending' && grant.reason === REASONS.suspended)
    return { ...undecided(grant), phase: 'Accepted' };
  const node = conditionOf(advertisement, ADVERTISEMENT_CONDITIONS.virtualNode);
  if (node?.status !== 'True') return waitReport(node?.message ?? AGREED);
  const closed = closedBy(advertisement?.status, step);
  if (closed !== undefined) {
    const reason = OFFERED[closed.reason] ?? REASONS.offerRefused;
    return { phase: 'Established', reason, message: `no new pods are sent there: ${whyClosed(closed)}` };
  }
  return { phase: 'Established', reason: REASONS.ok, message: node.message };
}

/** What was agreed on before still counts while a new offer is kept, or a new contract signed; before that, nothing is agreed on. */
function onTheWay(facts: BorrowingFacts, step: Exclude<Step, { report: PeeringReport }>): PeeringReport {
  const isAgreed = facts.advertisement?.status?.contract?.providerSignature !== undefined;
  if (step.kind === 'use' || facts.hasBelongings || isAgreed) return usedReport(facts, step);
  return step.kind === 'sign' ? unsignedReport(facts) : restReport(facts);
}

/** While it is taken down, the Advertisement says what is waited for. */
function endingReport(report: PeeringReport, { advertisement }: BorrowingFacts): PeeringReport {
  const node = conditionOf(advertisement, ADVERTISEMENT_CONDITIONS.virtualNode);
  const { reason, message } = node ?? {};
  const isNews = reason === ADVERTISEMENT_REASONS.ending && message !== report.message;
  return isNews ? { ...report, message: `${report.message ?? 'it ends'}; ${message}` } : report;
}

/** For the ForeignCluster. Pure: a restart says the same. `leftOut`: see DesiredNamespaces. */
export function reportOf(facts: BorrowingFacts, step: Step, leftOut: readonly string[] = []): PeeringReport {
  const said = 'report' in step ? step.report : onTheWay(facts, step);
  const { credentialExpires } = facts.advertisement?.status ?? {};
  const report = {
    ...(step.kind === 'end' ? endingReport(said, facts) : said),
    ...(credentialExpires !== undefined && { credentialExpires }),
  };
  if (leftOut.length === 0 || !facts.intent.wanted || report.message === undefined) return report;
  const shown = leftOut.slice(0, MAX_LEFT_OUT).join(', ');
  const more = leftOut.length > MAX_LEFT_OUT ? ', ...' : '';
  return {
    ...report,
    message: `${report.message}; not offloaded, as not there or the cluster's own: ${shown}${more}`,
  };
}

const MAX_LEFT_OUT = 5;
