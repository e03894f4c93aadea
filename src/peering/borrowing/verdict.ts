import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import type { AdvertisementSpec, OfferDecision } from '../../api/advertisement.ts';
import { ADVERTISEMENT_REASONS } from '../../api/advertisement.ts';
import { CLOCK_SKEW_MS } from '../../api/limits.ts';
import type { Offer } from '../../api/offer.ts';
import type { ResourceList } from '../../api/wire.ts';
import { errorMessage } from '../../lib/errors.ts';
import { judge } from '../policy/judge.ts';

/** What is to be thought of the offer as it stands now. */
export interface Verdict {
  decision: OfferDecision;
  /** One of ADVERTISEMENT_REASONS. */
  reason: string;
  message: string;
  /** What is taken of it, where it is accepted. */
  resources?: ResourceList;
  policy?: string;
  /** The offer no longer covers what was agreed on: nothing new is to be placed there. */
  closes?: true;
}

export interface OfferFacts {
  nowMs: number;
  /** The provider has taken it back. */
  withdrawn: boolean;
  policy: AcceptancePolicy | undefined;
}

export const isExpired = (offer: Offer, nowMs: number): boolean =>
  Date.parse(offer.expires) + CLOCK_SKEW_MS <= nowMs;

/** By time, by a person's word, by policy, in this order. */
export function verdictOf(
  { offer, approval }: Pick<AdvertisementSpec, 'offer' | 'approval'>,
  { nowMs, withdrawn, policy }: OfferFacts,
): Verdict {
  if (approval === 'Denied') return refused('deniedHere', 'denied by a person here');
  if (withdrawn) {
    const message = 'the provider has withdrawn its offer';
    return { decision: 'Expired', reason: ADVERTISEMENT_REASONS.withdrawn, message, closes: true };
  }
  if (isExpired(offer, nowMs)) {
    const message = `the offer ended at ${offer.expires} and was not renewed`;
    return { decision: 'Expired', reason: ADVERTISEMENT_REASONS.expired, message };
  }
  if (policy === undefined) return withoutPolicy(offer);
  const by = { policy: policy.metadata.name };
  let judged: ReturnType<typeof judge>;
  try {
    judged = judge(offer, policy);
  } catch (error) {
    return { ...pending('noPolicy', `policy ${by.policy}: ${errorMessage(error)}`), ...by };
  }
  if (!judged.accepted) {
    const { reason, message } = judged;
    return { decision: 'Refused', reason, message, ...by, closes: true };
  }
  if ((policy.spec.approval ?? 'Manual') === 'Manual' && approval !== 'Approved') {
    const message = `policy ${by.policy} leaves it to a person: set spec.approval to Approved or Denied`;
    return { ...pending('waitingForApproval', message), ...by };
  }
  return { ...accepted(judged.resources, `accepted by policy ${by.policy}`), ...by };
}

/** It was asked for all the same, so a person has said `outgoing: Enabled`: that is a decision, and sets no bounds. */
const withoutPolicy = (offer: Offer): Verdict =>
  accepted(offer.resources, 'a person wants this provider, and no AcceptancePolicy sets bounds');

type ReasonKey = keyof typeof ADVERTISEMENT_REASONS;

const accepted = (resources: ResourceList, message: string): Verdict => ({
  decision: 'Accepted',
  reason: ADVERTISEMENT_REASONS.ok,
  message,
  resources,
});
const refused = (reason: ReasonKey, message: string): Verdict => ({
  decision: 'Refused',
  reason: ADVERTISEMENT_REASONS[reason],
  message,
});
const pending = (reason: ReasonKey, message: string): Verdict => ({
  decision: 'Pending',
  reason: ADVERTISEMENT_REASONS[reason],
  message,
});
