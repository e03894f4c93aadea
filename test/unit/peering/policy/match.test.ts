import { expect, test } from '@jest/globals';
import { DISCOVERY_SOURCES, type PeerSelector } from '../../../../src/api/peer-selector.ts';
import type { SharingPolicy } from '../../../../src/api/sharing-policy.ts';
import {
  couldMatch,
  matches,
  networkKeyName,
  sharingPolicyFor,
  type PeerFacts,
} from '../../../../src/peering/policy/match.ts';
import { fc } from '../../../support/property.ts';

const ID = 'a'.repeat(26);
const facts: PeerFacts = {
  clusterID: ID,
  labels: { site: 'basel', tier: 'gold' },
  foundBy: ['LAN', 'Incoming'],
  networkKeys: ['office', 'shared/second'],
};

test.each<[string, PeerSelector, boolean, boolean]>([
  ['nothing', {}, false, false],
  ['empty lists and maps', { clusterIDs: [], matchLabels: {} }, false, false],
  ['its ID', { clusterIDs: ['b'.repeat(26), ID] }, true, true],
  ['another ID', { clusterIDs: ['b'.repeat(26)] }, false, false],
  ['all its labels', { matchLabels: { site: 'basel', tier: 'gold' } }, true, true],
  ['a label with another value', { matchLabels: { site: 'basel', tier: 'silver' } }, false, false],
  ['what every object inherits', { matchLabels: { constructor: 'x' } }, false, false],
  ['a key that it proved', { networkKeySecretRef: { name: 'office' } }, true, true],
  ['the same, spelt out', { networkKeySecretRef: { name: 'office', key: 'key' } }, true, true],
  ['another key of that Secret', { networkKeySecretRef: { name: 'office', key: 'second' } }, false, true],
  ['a key with a name of its own', { networkKeySecretRef: { name: 'shared', key: 'second' } }, true, true],
  ['a key that it did not prove', { networkKeySecretRef: { name: 'home' } }, false, true],
  ['anyone', { anyone: true }, true, true],
  ['anyone, but not in so many words', { anyone: false }, false, false],
  ['anyone as text', { anyone: 'true' as unknown as boolean }, false, false],
  ['one of two fields', { clusterIDs: ['b'.repeat(26)], matchLabels: { site: 'basel' } }, true, true],
  ['discovery alone', { discovery: ['LAN'] }, false, false],
  ['anyone on the LAN', { anyone: true, discovery: ['WAN', 'LAN'] }, true, true],
  ['anyone by DNS', { anyone: true, discovery: ['WAN'] }, false, false],
  ['its ID, found by hand', { clusterIDs: [ID], discovery: ['Manual'] }, false, false],
  ['a key, found by hand', { networkKeySecretRef: { name: 'office' }, discovery: ['Manual'] }, false, false],
  ['anyone, found in no way', { anyone: true, discovery: [] }, false, false],
])('a selector of %s', (_name, selector, isMeant, isWorthDialling) => {
  expect(matches(selector, facts)).toBe(isMeant);
  const { networkKeys: _unproved, ...candidate } = facts;
  expect(couldMatch(selector, candidate)).toBe(isWorthDialling);
});

test('whoever has no ID yet is worth dialling for its labels, not for a listed ID', () => {
  const candidate = { labels: { site: 'basel' }, foundBy: ['Manual' as const] };
  expect(couldMatch({ clusterIDs: [ID] }, candidate)).toBe(false);
  expect(couldMatch({ matchLabels: { site: 'basel' } }, candidate)).toBe(true);
});

const selectors: fc.Arbitrary<PeerSelector> = fc.record(
  {
    clusterIDs: fc.subarray([ID, 'b'.repeat(26)]),
    networkKeySecretRef: fc.record({ name: fc.constantFrom('office', 'home') }),
    matchLabels: fc.dictionary(fc.constantFrom('site', 'tier'), fc.constantFrom('basel', 'gold')),
    anyone: fc.boolean(),
    discovery: fc.subarray([...DISCOVERY_SOURCES]),
  },
  { requiredKeys: [] },
);

test('who matches was worth dialling, and discovery never widens', () => {
  fc.assert(
    fc.property(selectors, (selector) => {
      const { discovery: _narrowed, ...open } = selector;
      if (matches(selector, facts)) {
        expect(couldMatch(selector, facts)).toBe(true);
        expect(matches(open, facts)).toBe(true);
      }
    }),
  );
});

test('a network key is named by its Secret, and by its key unless that is the default one', () => {
  expect([{ name: 'a' }, { name: 'a', key: 'key' }, { name: 'a', key: 'b' }].map(networkKeyName)).toEqual([
    'a',
    'a',
    'a/b',
  ]);
});

const policy = (
  name: string,
  more: { precedence?: number; year?: number; deleted?: boolean } = {},
): SharingPolicy => ({
  metadata: {
    name,
    uid: name,
    resourceVersion: '1',
    creationTimestamp: `${more.year ?? 2026}-01-01T00:00:00Z`,
    ...(more.deleted === true && { deletionTimestamp: '2026-02-01T00:00:00Z' }),
  },
  spec: {
    peers: { anyone: true },
    ...(more.precedence !== undefined && { precedence: more.precedence }),
  },
});

test.each([
  ['the higher precedence', [policy('a'), policy('b', { precedence: 1 })], 'b'],
  ['none for zero', [policy('b', { precedence: 0 }), policy('a', { precedence: -1 })], 'b'],
  ['of equal ones the older', [policy('a', { year: 2026 }), policy('b', { year: 2025 })], 'b'],
  ['of equally old ones the first by name', [policy('b'), policy('a')], 'a'],
  ['not what is being deleted', [policy('a', { precedence: 9, deleted: true }), policy('b')], 'b'],
  ['of nothing, nothing', [], undefined],
])('%s decides', (_name, policies, winner) => {
  for (const order of [policies, policies.toReversed()]) {
    expect(sharingPolicyFor(order, facts)?.metadata.name).toBe(winner);
  }
});
