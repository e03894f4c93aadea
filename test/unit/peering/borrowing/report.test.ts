import { describe, expect, test } from '@jest/globals';
import type { BorrowingFacts, OfferAssessment, Step } from '../../../../src/peering/borrowing/facts.ts';
import { reportOf, restReport, unsignedReport } from '../../../../src/peering/borrowing/report.ts';
import type { GrantDocument } from '../../../../src/peering/protocol/documents.ts';

const asking = (grant?: GrantDocument): BorrowingFacts =>
  ({
    intent: { wanted: true, namespaces: [] },
    received: { offer: null, ...(grant && { grant }) },
    advertisement: { spec: {} },
  }) as unknown as BorrowingFacts;
const withdrawn: OfferAssessment = { decision: 'Expired', reason: 'Withdrawn', message: 'taken back' };
const expired: OfferAssessment = { decision: 'Expired', reason: 'Expired', message: 'over' };

test.each([withdrawn, expired])(
  'after an offer that is $reason, what the provider waits for counts',
  (assessment) => {
    const grant: GrantDocument = { state: 'Pending', reason: 'WaitingForApproval', message: 'approve it' };
    expect(restReport(asking(grant), assessment)).toEqual({
      phase: 'Pending',
      reason: 'WaitingForApproval',
      message: 'the provider says: approve it',
    });
  },
);

test.each([
  [withdrawn, 'Withdrawn'],
  [expired, 'WaitingForOffer'],
])('without a word of the provider, nothing is offered', (assessment, reason) => {
  expect(restReport(asking(), assessment)).toEqual({ phase: 'Pending', reason, message: assessment.message });
});

test('an offer that is there and does not pass is an offer', () => {
  const assessment: OfferAssessment = { decision: 'Refused', reason: 'BelowMinimum', message: 'too little' };
  const grant: GrantDocument = { state: 'Pending', reason: 'WaitingForDecision' };
  expect(restReport(asking(grant), assessment)).toMatchObject({ phase: 'Offered', reason: 'OfferRefused' });
});

test('a denial over there is none here', () => {
  const grant: GrantDocument = { state: 'Denied', reason: 'DeniedHere', message: 'not you' };
  expect(restReport(asking(grant))).toEqual({
    phase: 'Denied',
    reason: 'DeniedByPeer',
    message: 'the provider says: not you',
  });
});

test('a suspension is shown with its reason, although all that was agreed on is in use', () => {
  const grant: GrantDocument = { state: 'Pending', reason: 'Suspended', message: 'suspended until noon' };
  expect(reportOf(asking(grant), { kind: 'use' } as Step)).toEqual({
    phase: 'Accepted',
    reason: 'Suspended',
    message: 'the provider says: suspended until noon',
  });
});

test('until the next offer is looked at, an offer that was refused stays so', () => {
  const status = {
    decision: 'Refused',
    reason: 'PriceAboveMaximum',
    message: 'cpu: 0.03 EUR asked, at most 0.01 EUR wanted',
    policy: 'bargains',
    conditions: [{ type: 'VirtualNodeReady', status: 'True', reason: 'AsExpected', message: '1 of 1 ready' }],
  };
  const facts = {
    ...asking(),
    advertisement: { spec: {}, status },
    hasBelongings: true,
  } as unknown as BorrowingFacts;
  expect(reportOf(facts, { kind: 'keep' })).toEqual({
    phase: 'Established',
    reason: 'OfferRefused',
    message:
      'no new pods are sent there: AcceptancePolicy bargains refuses the offer: cpu: 0.03 EUR asked, at most 0.01 EUR wanted',
  });
  expect(reportOf(facts, { kind: 'sign' } as Step)).toMatchObject({ reason: 'AsExpected' });
});

describe('before anything is in use', () => {
  const offer = { offer: {}, signature: 's' };
  const facts = (more: {
    grant?: GrantDocument;
    contract?: object;
    hasBelongings?: boolean;
  }): BorrowingFacts =>
    ({
      intent: { wanted: true, namespaces: [] },
      received: { offer, ...(more.grant && { grant: more.grant }) },
      advertisement: { spec: {}, status: { ...(more.contract && { contract: more.contract }) } },
      hasBelongings: more.hasBelongings ?? false,
    }) as unknown as BorrowingFacts;
  const sign = { kind: 'sign' } as Step;
  const signed = { providerSignature: 's' };
  const unsigned = 'the provider has not signed the contract yet';

  test.each([
    ['an offer that has just come', { kind: 'keep' } as const, {}, 'Offered: an offer has come'],
    ['our first signature', sign, {}, `Accepted: ${unsigned}`],
    ['another first signature', sign, { contract: {} }, `Accepted: ${unsigned}`],
    ['a signature over a changed contract', sign, { contract: signed }, 'Accepted: agreed on by both'],
    ['the same, once something is there', sign, { hasBelongings: true }, 'Accepted: agreed on by both'],
    [
      'another offer of one in use',
      { kind: 'keep' } as const,
      { contract: signed },
      'Accepted: agreed on by both',
    ],
  ])('%s is not called more than it is', (_what, step, more, said) => {
    const { phase, message } = reportOf(facts(more), step);
    expect(`${phase}: ${message}`).toBe(said);
  });

  test('while a changed contract waits, the earlier one counts', () => {
    const grant = { state: 'Active' } as GrantDocument;
    expect(unsignedReport(facts({ grant, contract: {} })).message).toBe('agreed on by both');
    expect(unsignedReport(facts({ contract: {} })).message).toBe(unsigned);
  });
});
