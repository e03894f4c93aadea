import { expect, test } from '@jest/globals';

import type { Offer } from '../../../../src/api/offer.ts';
import type { SharingPolicy } from '../../../../src/api/sharing-policy.ts';
import { amountsOf, breachOf } from '../../../../src/peering/lending/status.ts';
import {
  type DraftOffer,
  isEmpty,
  nextOffer,
  type OfferState,
  renewalOf,
} from '../../../../src/peering/offer/next-offer.ts';
import { anOffer, NOW_MS } from '../support/offers.ts';

const policy = { metadata: { name: 'p' }, spec: { peers: {}, offerSeconds: 600 } } as SharingPolicy;
const draftOf = (more: Partial<Offer> = {}): DraftOffer => {
  const { generation: _generation, issued: _issued, expires: _expires, ...draft } = anOffer(more);
  return draft;
};
const next = (more: Partial<OfferState>): Offer =>
  nextOffer({
    before: undefined,
    draft: draftOf(),
    policy,
    policyChanged: false,
    nowMs: NOW_MS,
    ...more,
  });

test('the first one lives as long as the policy says, in whole seconds', () => {
  expect(next({ nowMs: NOW_MS + 400 })).toMatchObject({
    generation: NOW_MS + 400,
    issued: '2026-01-01T12:00:00Z',
    expires: '2026-01-01T12:10:00Z',
  });
});

test('it stays while nothing moves by the threshold, until two thirds of its life have passed', () => {
  const before = next({});
  const little = draftOf({ resources: { cpu: '3900m', memory: '8Gi', pods: '100' } });
  expect(renewalOf(before) - NOW_MS).toBe(400_000);
  expect(next({ before, draft: little, nowMs: NOW_MS + 399_000 })).toBe(before);
  const renewed = next({ before, nowMs: NOW_MS + 400_000 });
  expect(renewed).toMatchObject({ generation: NOW_MS + 400_000, expires: '2026-01-01T12:16:40Z' });
});

test('a new one goes out for a large move, for another namespace, and for any move once the policy has changed', () => {
  const before = next({});
  const much = draftOf({ resources: { cpu: '2', memory: '8Gi', pods: '100' } });
  const little = draftOf({ resources: { cpu: '3900m', memory: '8Gi', pods: '100' } });
  expect(next({ before, draft: much }).resources['cpu']).toBe('2');
  expect(next({ before, draft: draftOf({ namespaces: [] }) }).namespaces).toEqual([]);
  expect(next({ before, draft: little, policyChanged: true }).resources['cpu']).toBe('3900m');
  expect(next({ before, policyChanged: true })).toBe(before);
});

test('numbers rise, also when the clock was set back, and when all else is forgotten', () => {
  const before = next({ nowMs: NOW_MS + 1e9 });
  expect(next({ before, policyChanged: true, draft: draftOf({ labels: { a: 'b' } }) }).generation).toBe(
    before.generation + 1,
  );
  expect(next({ nowMs: NOW_MS + 2e9 }).generation).toBeGreaterThan(before.generation);
});

test('one that lies ahead since the clock was set back is made anew, since every peer would refuse it', () => {
  const before = next({ nowMs: NOW_MS + 301_000 });
  expect(next({ before, nowMs: NOW_MS + 1_000 })).toBe(before);
  expect(next({ before })).toMatchObject({
    generation: before.generation + 1,
    issued: '2026-01-01T12:00:00Z',
    expires: '2026-01-01T12:10:00Z',
  });
});

test.each([0, -5, 1e12])('offerSeconds %d makes an offer that a peer can take', (offerSeconds) => {
  const odd = { ...policy, spec: { ...policy.spec, offerSeconds } };
  const { issued, expires } = next({ policy: odd });
  const seconds = (Date.parse(expires) - Date.parse(issued)) / 1000;
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(604_800);
});

test('a peer may use what was agreed, but no more than is lent today', () => {
  expect(
    amountsOf(
      { cpu: '2', memory: '4Gi', pods: '10', 'example.com/gpu': '1' },
      { cpu: '1500m', memory: '8Gi', pods: '10' },
    ),
  ).toEqual({ cpu: '1500m', memory: '4Gi', pods: '10', 'example.com/gpu': '0' });
});

test('a breach names what, how much and of how much', () => {
  expect(breachOf({ cpu: '2', pods: '3' }, { cpu: '2000m', pods: '3' })).toBeUndefined();
  expect(breachOf({ cpu: '2001m', 'example.com/gpu': '1' }, { cpu: '2' })).toBe(
    'cpu 2001m of 2, example.com/gpu 1 of 0',
  );
});

test('zeros are an empty offer', () => {
  expect(isEmpty({ resources: { cpu: '0', memory: '0Gi' } })).toBe(true);
  expect(isEmpty({ resources: { cpu: '0', pods: '1' } })).toBe(false);
});
