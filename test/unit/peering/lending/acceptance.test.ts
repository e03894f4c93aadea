import { expect, test } from '@jest/globals';

import { type Contract, contractOf } from '../../../../src/api/offer.ts';
import type { PeeringRequestStatus } from '../../../../src/api/peering-request.ts';
import { hasCode } from '../../../../src/lib/errors.ts';
import { contractText, draftContract } from '../../../../src/peering/contract.ts';
import { type AcceptanceWorth, judgeAcceptance } from '../../../../src/peering/lending/acceptance.ts';
import { fc } from '../../../support/property.ts';
import { anOffer, consumer, NOW_MS, provider } from '../support/offers.ts';

const offer = anOffer();
const draft = (change: Partial<Contract> = {}): string =>
  contractText({ ...draftContract(offer, offer.resources, NOW_MS), ...change });
const judge = (text: string, status: PeeringRequestStatus = { offer }, signer = consumer): AcceptanceWorth =>
  judgeAcceptance({ text, signature: signer.sign('contract', text) }, consumer, { status, nowMs: NOW_MS });

test('what accepts the offer of today is a contract', () => {
  expect(judge(draft())).toMatchObject({ provider: provider.clusterID, generation: offer.generation });
  expect(judge(draft({ resources: { cpu: '1', memory: '1Gi', pods: '0' } }))).toMatchObject({
    resources: { cpu: '1' },
  });
});

test('what is in force already stays in force, whatever is offered today', () => {
  const text = draft();
  expect(judge(text, { contract: { text } })).toBe('same');
  expect(judge(text, { contract: { text }, offer: { ...offer, generation: 9 } })).toBe('same');
});

test('an answer to an offer that was replaced or has expired is outdated, and harmless', () => {
  expect(judge(draft({ generation: 6 }))).toBe('outdated');
  expect(judge(draft({ generation: -1 }))).toBe('outdated');
  expect(judge(draft(), { offer: { ...offer, expires: '2026-01-01T12:00:00Z' } })).toBe('outdated');
});

test.each([
  ['a generation that was never offered', draft({ generation: 8 }), 'was never made'],
  ['another offerer', draft({ provider: 'x'.repeat(26) }), 'provider'],
  ['no JSON', '{', 'is not JSON'],
  ['no generation', '{"a":1}', 'does not say which offer'],
  ['a generation in a string', '{"generation":"7"}', 'does not say which offer'],
  ['a generation beyond numbers', '{"generation":1e309}', 'does not say which offer'],
  ['a generation of the prototype', '{"__proto__":{"generation":7}}', 'does not say which offer'],
  ['null', 'null', 'does not say which offer'],
  ['not canonical', draft().replace('{', '{ '), 'canonical'],
  ['too long', ' '.repeat(65_537), 'at most 65536'],
])('refused: %s', (_what, text, reason) => {
  expect(() => judge(text)).toThrow(reason);
});

test('refused: the signature of another, or for another purpose; an acceptance where nothing is offered', () => {
  expect(() => judge(draft(), { offer }, provider)).toThrow('does not bear the signature');
  const signature = consumer.sign('offer', draft());
  const context = { status: { offer }, nowMs: NOW_MS };
  expect(() => judgeAcceptance({ text: draft(), signature }, consumer, context)).toThrow('does not bear');
  expect(() => judge(draft(), {})).toThrow('nothing is offered');
});

test('whatever a peer signs, it is told Invalid, or it is of no effect', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.string(),
        fc.json().map((json) => `{"generation":7,"x":${json}}`),
      ),
      (text) => {
        try {
          return judge(text) === 'outdated';
        } catch (error) {
          return hasCode(error, 'Invalid');
        }
      },
    ),
    { numRuns: 1500 },
  );
});

test('a stored contract that somebody has spoilt is not taken for none', () => {
  expect(contractOf(undefined)).toBeUndefined();
  expect(contractOf({ text: draft() })).toMatchObject({ consumer: consumer.clusterID });
  expect(() => contractOf({ text: 'spoilt' })).toThrow('cannot be read');
});
