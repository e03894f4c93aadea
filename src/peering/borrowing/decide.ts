import type { AcceptancePolicy } from '../../api/acceptance-policy.ts';
import {
  type Advertisement,
  ADVERTISEMENT_REASONS,
  type AdvertisementSpec,
} from '../../api/advertisement.ts';
import { CLOCK_SKEW_MS } from '../../api/limits.ts';
import type { Contract, Offer, SignedContract } from '../../api/offer.ts';
import type { ResourceList } from '../../api/wire.ts';
import { deepEqual } from '../../lib/equality.ts';
import { errorMessage } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import { draftContract } from '../contract.ts';
import { judge } from '../policy/judge.ts';
import type { BorrowingFacts, OfferAssessment, ReceivedDocuments, Step } from './facts.ts';
import { readContract, readText } from './own-contract.ts';
import { ending, restReport, unsignedReport, whyClosed } from './report.ts';

/**
 * The next step with one provider, from all that is known of it. If the Advertisement is deleted, or nobody wants it any
 * more, what was made is taken down. Without an Advertisement the last offer becomes one. With an Advertisement, its
 * offer, the provider's last word and our contract decide. A pure function: the time, too, is one of the facts.
 */
export function decide(facts: BorrowingFacts): Step {
  const { intent, received, advertisement, hasBelongings } = facts;
  const isDeleted = advertisement?.metadata.deletionTimestamp !== undefined;
  if (isDeleted || !intent.wanted) return unwanted(facts, isDeleted);
  if (advertisement !== undefined) return withAdvertisement(facts, advertisement);
  if (hasBelongings) {
    const report = ending('its Advertisement is gone');
    return { kind: 'end', report, forget: true, revoked: false };
  }
  const report = restReport(facts);
  return received.offer == null || report.phase === 'Denied' ? { kind: 'rest', report } : { kind: 'keep' };
}

function unwanted(facts: BorrowingFacts, isDeleted: boolean): Step {
  const { intent, advertisement, hasBelongings } = facts;
  if (advertisement === undefined && !hasBelongings) return { kind: 'rest', report: restReport(facts) };
  const contract = advertisement?.status?.contract;
  const why = isDeleted && intent.wanted ? 'the Advertisement is being deleted' : 'not wanted any more';
  const revoked = isRevoked(facts, contract);
  return { kind: 'end', report: ending(why), ...(contract && { contract }), forget: true, revoked };
}

function withAdvertisement(facts: BorrowingFacts, { spec, status = {} }: Advertisement): Step {
  const { nowMs, intent, received, hasBelongings } = facts;
  if (received.offer != null && received.offer.signature !== spec.signature) {
    return { kind: 'keep' };
  }
  const assessment = assessOffer(spec, { nowMs, withdrawn: received.offer === null, policy: intent.policy });
  const { contract } = status;
  if (spec.approval === 'Denied') return endOrRest(facts, assessment, { ...(contract && { contract }) });
  // What the provider has ended is forgotten first, so that a restart does not take it for valid.
  if (isRevoked(facts, contract)) return endOrRest(facts, assessment, { revoked: true });
  const leaves = leavingBy(received);
  if (leaves !== undefined) return endOrRest(facts, assessment, { ...leaves, ...(contract && { contract }) });
  const terms = readContract(contract);
  if (contract !== undefined && terms !== undefined && !isOver(facts, spec.offer, terms)) {
    return underContract(facts, { offer: spec.offer, assessment, contract, terms });
  }
  if (hasBelongings) return endOrRest(facts, assessment, {});
  if (assessment.resources === undefined)
    return { kind: 'rest', report: restReport(facts, assessment), assessment };
  return { kind: 'sign', assessment, contract: draft(facts, spec.offer, assessment, assessment.resources) };
}

interface Agreed {
  offer: Offer;
  assessment: OfferAssessment;
  contract: SignedContract;
  terms: Contract;
}

function underContract(facts: BorrowingFacts, { offer, assessment, contract, terms }: Agreed): Step {
  const { hasBelongings, proved, received } = facts;
  const isSigned = contract.providerSignature !== undefined;
  if (assessment.resources !== undefined) {
    const wanted = draft(facts, offer, assessment, assessment.resources);
    if (differs(wanted, terms) || (wanted.generation !== terms.generation && isNotHeld(received, contract))) {
      return { kind: 'sign', assessment, contract: wanted };
    }
  }
  const signed: SignedContract =
    !isSigned && proved?.text === contract.text
      ? { ...contract, providerSignature: proved.signature }
      : contract;
  const closed = assessment.closes === undefined ? {} : { closed: whyClosed(assessment) };
  if (signed.providerSignature !== undefined)
    return { kind: 'use', assessment, contract: signed, terms, ...closed };
  if (hasBelongings) return { kind: 'use', assessment, contract, ...closed };
  // Only we have signed it, and we would not sign it any more.
  if (assessment.resources === undefined)
    return { kind: 'rest', report: restReport(facts, assessment), assessment };
  return { kind: 'rest', report: unsignedReport(facts), assessment, contract };
}

const draft = (
  { nowMs }: BorrowingFacts,
  offer: Offer,
  { maxKeepForSeconds }: OfferAssessment,
  resources: ResourceList,
): Contract => draftContract(offer, resources, nowMs, maxKeepForSeconds);

/** While there is something to take down, it is taken down. Then only the Advertisement stays, and says why. */
function endOrRest(
  facts: BorrowingFacts,
  assessment: OfferAssessment,
  how: { contract?: SignedContract; revoked?: boolean; untilMs?: number; why?: string },
): Step {
  const { contract, revoked = false, untilMs, why } = how;
  if (!facts.hasBelongings) return { kind: 'rest', report: restReport(facts, assessment), assessment };
  const report = ending(revoked ? 'the provider has ended it' : (why ?? assessment.message));
  const more = { ...(contract && { contract }), ...(untilMs !== undefined && { untilMs }) };
  return { kind: 'end', report, assessment, ...more, forget: false, revoked };
}

/** The provider lends to us until then: pods move while it still helps them to end well. */
function leavingBy({ grant }: ReceivedDocuments): { untilMs: number; why: string } | undefined {
  if (grant?.state !== 'Active' || grant.ends === undefined) return undefined;
  const untilMs = Date.parse(grant.ends);
  return Number.isNaN(untilMs) ? undefined : { untilMs, why: `the provider ends it at ${grant.ends}` };
}

/** The provider has said no, or that what we hold is over. */
function isRevoked(
  { received: { grant }, advertisement }: BorrowingFacts,
  contract: SignedContract | undefined,
): boolean {
  if (grant?.state === 'Denied') return true;
  if (grant?.state !== 'Ended') return false;
  const ended = grant.contract?.text;
  // What ended may be an earlier contract than ours, or an earlier one than the current offer leads to.
  if (contract !== undefined) return ended === undefined || ended === contract.text;
  const generation = advertisement?.spec.offer.generation ?? 0;
  return ended === undefined || !((readText(ended)?.generation ?? generation) < generation);
}

/** The provider has said on this link that our contract is not the one that is Active there. */
function isNotHeld({ grant }: ReceivedDocuments, contract: SignedContract): boolean {
  if (contract.providerSignature === undefined) return true;
  if (grant === undefined) return false;
  return grant?.state !== 'Active' || grant.contract?.text !== contract.text;
}

/** Whether they differ in what matters to somebody: a renewal of the offer alone needs no new contract. */
function differs(drafted: Contract, terms: Contract): boolean {
  const { generation: _draftGeneration, issued: _draftIssued, ...wanted } = drafted;
  const { generation: _generation, issued: _issued, ...agreed } = terms;
  return !deepEqual(wanted, agreed);
}

/**
 * A provider keeps the pods of a silent home for `keepForSeconds`, and a home keeps the nodes of a silent provider for
 * as long, from the end of its last offer on. One that is linked is not silent: whatever is wrong then (a clock that was
 * set, say), it would tell us when the contract has ended. And as that clock may also end the link, the silence itself has to last so long.
 */
function isOver(facts: BorrowingFacts, offer: Offer, { keepForSeconds }: Contract): boolean {
  const { isLinked, silentForMs, nowMs } = facts;
  const keepForMs = keepForSeconds * 1000;
  return !isLinked && silentForMs >= keepForMs && isExpired(offer, nowMs - keepForMs);
}

interface OfferFacts {
  nowMs: number;
  /** The provider has taken it back. */
  withdrawn: boolean;
  policy: AcceptancePolicy | undefined;
}

const isExpired = (offer: Offer, nowMs: number): boolean =>
  Date.parse(offer.expires) + CLOCK_SKEW_MS <= nowMs;

/** A person's refusal counts first, then time, then the policy. */
function assessOffer(
  { offer, approval }: Pick<AdvertisementSpec, 'offer' | 'approval'>,
  { nowMs, withdrawn, policy }: OfferFacts,
): OfferAssessment {
  if (approval === 'Denied') {
    const message = 'denied by a person here';
    return { decision: 'Refused', reason: ADVERTISEMENT_REASONS.deniedHere, message };
  }
  if (withdrawn) {
    const message = 'the provider has withdrawn its offer';
    return { decision: 'Expired', reason: ADVERTISEMENT_REASONS.withdrawn, message, closes: true };
  }
  if (isExpired(offer, nowMs)) {
    const message = `the offer ended at ${offer.expires} and was not renewed`;
    return { decision: 'Expired', reason: ADVERTISEMENT_REASONS.expired, message };
  }
  if (policy === undefined) {
    // It was asked without a policy, so a person has set `outgoing: Enabled`: that is a decision, and it sets no bounds.
    return accepted(offer.resources, 'a person wants this provider, and no AcceptancePolicy sets bounds');
  }
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
  const { maxKeepForSeconds } = policy.spec;
  return {
    ...accepted(judged.resources, `accepted by policy ${by.policy}`),
    ...by,
    ...present({ maxKeepForSeconds }),
  };
}

const accepted = (resources: ResourceList, message: string): OfferAssessment => ({
  decision: 'Accepted',
  reason: ADVERTISEMENT_REASONS.ok,
  message,
  resources,
});
const pending = (reason: 'noPolicy' | 'waitingForApproval', message: string): OfferAssessment => ({
  decision: 'Pending',
  reason: ADVERTISEMENT_REASONS[reason],
  message,
});
