import { expect, test } from '@jest/globals';

import type { AcceptancePolicy, AcceptancePolicySpec } from '../../../../src/api/acceptance-policy.ts';
import { judge } from '../../../../src/peering/policy/judge.ts';
import { anOffer } from '../support/offers.ts';

const policy = (spec: Partial<AcceptancePolicySpec>): AcceptancePolicy => ({
  metadata: { name: 'p', uid: 'p', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { peers: { anyone: true }, ...spec },
});

const offer = anOffer({
  resources: { cpu: '4', memory: '8Gi', pods: '100', 'nvidia.com/gpu': '2' },
  labels: { site: 'basel' },
  prices: { cpu: { amount: '0.04', currency: 'EUR' }, pods: { amount: '0.000', currency: 'USD' } },
});

test.each<[string, Partial<AcceptancePolicySpec>, Record<string, string>]>([
  ['all of it without ceilings', {}, {}],
  ['the smaller of offer and ceiling', { ceilings: { cpu: '2', memory: '100Gi' } }, { cpu: '2' }],
  [
    'a ceiling in other words',
    { ceilings: { cpu: '2500m', memory: '4096Mi' } },
    { cpu: '2500m', memory: '4Gi' },
  ],
  ['whole bytes', { ceilings: { memory: '1000500m' } }, { memory: '1000' }],
  ['none of it, and says so', { ceilings: { 'nvidia.com/gpu': '0' } }, { 'nvidia.com/gpu': '0' }],
  ['nothing of what was not offered', { ceilings: { 'amd.com/gpu': '1' } }, {}],
  ['what reaches the minimum', { minimum: { cpu: '4', memory: '8192Mi' } }, {}],
  ['the currency in lower case', { maxPrices: { cpu: { amount: '0.04', currency: 'eur' } } }, {}],
  ['what costs no more than that', { maxPrices: { cpu: { amount: '0.0400', currency: 'EUR' } } }, {}],
  ['what costs nothing', { maxPrices: { memory: { amount: '0', currency: 'CHF' } } }, {}],
  ['a price of zero in any currency', { maxPrices: { pods: { amount: '0', currency: 'CHF' } } }, {}],
  ['what bears the labels', { requiredLabels: { site: 'basel' } }, {}],
])('takes %s', (_name, spec, differing) => {
  expect(judge(offer, policy(spec))).toEqual({
    accepted: true,
    resources: { ...offer.resources, ...differing },
  });
});

test.each<[string, Partial<AcceptancePolicySpec>, string, string]>([
  ['too little', { minimum: { cpu: '4001m' } }, 'BelowMinimum', 'cpu: 4 offered, at least 4001m wanted'],
  [
    'none at all',
    { minimum: { 'amd.com/gpu': '1' } },
    'BelowMinimum',
    'amd.com/gpu: 0 offered, at least 1 wanted',
  ],
  [
    'too dear',
    { maxPrices: { cpu: { amount: '0.039', currency: 'EUR' } } },
    'PriceAboveMaximum',
    'cpu: 0.04 EUR asked, at most 0.039 EUR wanted',
  ],
  [
    'another currency',
    { maxPrices: { cpu: { amount: '100', currency: 'USD' } } },
    'PriceAboveMaximum',
    'cpu: 0.04 EUR asked, at most 100 USD wanted, and currencies differ',
  ],
  [
    'another label',
    { requiredLabels: { site: 'bern' } },
    'LabelMissing',
    'label site="bern" is required, the offer says "basel"',
  ],
  [
    'no label',
    { requiredLabels: { constructor: 'x' } },
    'LabelMissing',
    'label constructor="x" is required, the offer has no such label',
  ],
])('refuses %s', (_name, spec, reason, message) => {
  expect(judge(offer, policy(spec))).toEqual({ accepted: false, reason, message });
});

test('a policy that cannot be read is Invalid, not an acceptance', () => {
  expect(() => judge(offer, policy({ minimum: { cpu: 'much' } }))).toThrow(
    expect.objectContaining({ code: 'Invalid' }),
  );
});
