import { expect, test } from '@jest/globals';
import type { Facts, Verdict } from '../../../../src/peering/borrowing/facts.ts';
import { restReport } from '../../../../src/peering/borrowing/report.ts';
import type { GrantDocument } from '../../../../src/peering/protocol/documents.ts';

const asking = (grant?: GrantDocument): Facts =>
  ({
    wish: { wanted: true, namespaces: [] },
    heard: { offer: null, ...(grant && { grant }) },
    advertisement: { spec: {} },
  }) as unknown as Facts;
const withdrawn: Verdict = { decision: 'Expired', reason: 'Withdrawn', message: 'taken back' };
const expired: Verdict = { decision: 'Expired', reason: 'Expired', message: 'over' };

test.each([withdrawn, expired])(
  'after an offer that is $reason, what the provider waits for counts',
  (verdict) => {
    const grant: GrantDocument = { state: 'Pending', reason: 'WaitingForApproval', message: 'approve it' };
    expect(restReport(asking(grant), verdict)).toEqual({
      phase: 'Pending',
      reason: 'WaitingForApproval',
      message: 'the provider says: approve it',
    });
  },
);

test.each([
  [withdrawn, 'Withdrawn'],
  [expired, 'WaitingForOffer'],
])('without a word of the provider, nothing is offered', (verdict, reason) => {
  expect(restReport(asking(), verdict)).toEqual({ phase: 'Pending', reason, message: verdict.message });
});

test('an offer that is there and does not pass is an offer', () => {
  const verdict: Verdict = { decision: 'Refused', reason: 'BelowMinimum', message: 'too little' };
  const grant: GrantDocument = { state: 'Pending', reason: 'WaitingForDecision' };
  expect(restReport(asking(grant), verdict)).toMatchObject({ phase: 'Offered', reason: 'OfferRefused' });
});

test('a denial over there is none here', () => {
  const grant: GrantDocument = { state: 'Denied', reason: 'DeniedHere', message: 'not you' };
  expect(restReport(asking(grant))).toEqual({
    phase: 'Denied',
    reason: 'DeniedByPeer',
    message: 'the provider says: not you',
  });
});
