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
import { draftContract } from '../contract.ts';
import { judge } from '../policy/judge.ts';
import type { Course, Facts, Heard, Verdict } from './facts.ts';
import { ending, restReport, waitReport } from './report.ts';

/**
 * The next step with one provider, from all that is known of it. An Advertisement that is deleted, or that nobody wants any
 * more, comes first: what was made is taken down. Without an Advertisement the last offer becomes one. With it, its offer,
 * the provider's last word and our contract decide. A pure function: the time, too, is one of the facts.
 */
export function decide(facts: Facts): Course {
  const { wish, heard, advertisement, hasBelongings } = facts;
  const isDeleted = advertisement?.metadata.deletionTimestamp !== undefined;
  if (isDeleted || !wish.wanted) return unwanted(facts, isDeleted);
  if (advertisement !== undefined) return withAdvertisement(facts, advertisement);
  if (hasBelongings) {
    const report = ending('its Advertisement is gone');
    return { kind: 'end', report, forget: true, revoked: false };
  }
  const report = restReport(facts);
  return heard.offer == null || report.phase === 'Denied' ? { kind: 'rest', report } : { kind: 'keep' };
}

function unwanted(facts: Facts, isDeleted: boolean): Course {
  const { wish, advertisement, hasBelongings } = facts;
  if (advertisement === undefined && !hasBelongings) return { kind: 'rest', report: restReport(facts) };
  const contract = advertisement?.status?.contract;
  const why = isDeleted && wish.wanted ? 'the Advertisement is being deleted' : 'not wanted any more';
  const revoked = isRevoked(facts, contract);
  return { kind: 'end', report: ending(why), ...(contract && { contract }), forget: true, revoked };
}

function withAdvertisement(facts: Facts, { spec, status = {} }: Advertisement): Course {
  const { nowMs, wish, heard, hasBelongings } = facts;
  if (heard.offer != null && heard.offer.signature !== spec.signature) {
    return { kind: 'keep' };
  }
  const verdict = verdictOf(spec, { nowMs, withdrawn: heard.offer === null, policy: wish.policy });
  const { contract } = status;
  if (spec.approval === 'Denied') return endOrRest(facts, verdict, { ...(contract && { contract }) });
  // What the provider has ended is forgotten first, so that a restart does not take it for valid.
  if (isRevoked(facts, contract)) return endOrRest(facts, verdict, { revoked: true });
  const terms = readContract(contract);
  if (contract !== undefined && terms !== undefined && !isOver(facts, spec.offer, terms)) {
    return underContract(facts, { offer: spec.offer, verdict, contract, terms });
  }
  if (hasBelongings) return endOrRest(facts, verdict, {});
  if (verdict.resources === undefined) return { kind: 'rest', report: restReport(facts, verdict), verdict };
  return sign(facts, spec.offer, verdict, verdict.resources);
}

interface Agreed {
  offer: Offer;
  verdict: Verdict;
  contract: SignedContract;
  terms: Contract;
}

function underContract(facts: Facts, { offer, verdict, contract, terms }: Agreed): Course {
  const { hasBelongings, proved, heard } = facts;
  const isSigned = contract.providerSignature !== undefined;
  if (verdict.resources !== undefined) {
    const draft = draftContract(offer, verdict.resources, facts.nowMs);
    if (isOtherwise(draft, terms) || (draft.generation !== terms.generation && isAmiss(heard, contract))) {
      return sign(facts, offer, verdict, verdict.resources);
    }
  }
  const signed: SignedContract =
    !isSigned && proved?.text === contract.text
      ? { ...contract, providerSignature: proved.signature }
      : contract;
  const closed = verdict.closes === undefined ? {} : { closed: verdict.message };
  if (signed.providerSignature !== undefined)
    return { kind: 'use', verdict, contract: signed, terms, ...closed };
  if (hasBelongings) return { kind: 'use', verdict, contract, ...closed };
  // Nobody has signed it but we, and by now we would not.
  if (verdict.resources === undefined) return { kind: 'rest', report: restReport(facts, verdict), verdict };
  const report = waitReport('the provider has not signed the contract yet');
  return { kind: 'rest', report, verdict, contract };
}

function sign({ nowMs }: Facts, offer: Offer, verdict: Verdict, resources: ResourceList): Course {
  return { kind: 'sign', verdict, contract: draftContract(offer, resources, nowMs) };
}

/** Taken down while there is something to take down; then only the Advertisement stays, and says why. */
function endOrRest(
  facts: Facts,
  verdict: Verdict,
  how: { contract?: SignedContract; revoked?: boolean },
): Course {
  const { contract, revoked = false } = how;
  if (!facts.hasBelongings) return { kind: 'rest', report: restReport(facts, verdict), verdict };
  const report = ending(revoked ? 'the provider has ended it' : verdict.message);
  return { kind: 'end', report, verdict, ...(contract && { contract }), forget: false, revoked };
}

/** The provider has said no, or that what we hold is over. */
function isRevoked(
  { heard: { grant }, advertisement }: Facts,
  contract: SignedContract | undefined,
): boolean {
  if (grant?.state === 'Denied') return true;
  if (grant?.state !== 'Ended') return false;
  const ended = grant.contract?.text;
  // What ended may be an earlier contract than ours, or than the one that today's offer invites to.
  if (contract !== undefined) return ended === undefined || ended === contract.text;
  const generation = advertisement?.spec.offer.generation ?? 0;
  return ended === undefined || !((readText(ended)?.generation ?? generation) < generation);
}

/** The provider does not hold our contract as Active, and has said so on this link. */
function isAmiss({ grant }: Heard, contract: SignedContract): boolean {
  if (contract.providerSignature === undefined) return true;
  if (grant === undefined) return false;
  return grant?.state !== 'Active' || grant.contract?.text !== contract.text;
}

/** Differs in what matters to somebody: a renewal of the offer alone needs no new contract. */
function isOtherwise(draft: Contract, terms: Contract): boolean {
  const { generation: _draftGeneration, issued: _draftIssued, ...wanted } = draft;
  const { generation: _generation, issued: _issued, ...agreed } = terms;
  return !deepEqual(wanted, agreed);
}

/**
 * A provider keeps the pods of a silent home for `keepForSeconds`, and a home keeps the nodes of a silent provider as
 * long: from the end of its last offer on. One that is linked is not silent: whatever is wrong then (a clock that was
 * set, say), it would tell us that it has ended.
 */
function isOver({ isLinked, nowMs }: Facts, offer: Offer, { keepForSeconds }: Contract): boolean {
  return !isLinked && isExpired(offer, nowMs - keepForSeconds * 1000);
}

/** Ours, from the Advertisement's status; undefined where somebody has spoiled it. */
export const readContract = (contract: SignedContract | undefined): Contract | undefined =>
  contract?.consumerSignature === undefined ? undefined : readText(contract.text);

function readText(text: string): Contract | undefined {
  try {
    const terms = JSON.parse(text) as Contract | null;
    return Array.isArray(terms?.namespaces) && typeof terms?.resources === 'object' ? terms : undefined;
  } catch {
    return undefined;
  }
}

interface OfferFacts {
  nowMs: number;
  /** The provider has taken it back. */
  withdrawn: boolean;
  policy: AcceptancePolicy | undefined;
}

const isExpired = (offer: Offer, nowMs: number): boolean =>
  Date.parse(offer.expires) + CLOCK_SKEW_MS <= nowMs;

/** By time, by a person's word, by policy, in this order. */
function verdictOf(
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
