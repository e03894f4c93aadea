import { expect, test } from '@jest/globals';
import type { SharingPolicy, SharingPolicySpec } from '../../../../src/api/sharing-policy.ts';
import { decide, policyFor, type DecisionInput } from '../../../../src/peering/lending/decide.ts';
import type { PeerFacts } from '../../../../src/peering/policy/match.ts';

const policyOf = (spec: Partial<SharingPolicySpec> = {}, name = 'p'): SharingPolicy => ({
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { peers: { anyone: true }, ...spec },
});
const [automatic, manual, token, silent] = [
  policyOf({ approval: 'Automatic' }),
  policyOf({ approval: 'Manual' }),
  policyOf({ approval: 'Token' }),
  policyOf(),
];
const ok = { result: 'ok', name: 't' } as const;
const bad = { result: 'TokenExpired' } as const;

test.each<[string, Partial<DecisionInput>, object]>([
  ['nobody has said what to lend', {}, { state: 'Denied', reason: 'NoPolicyMatches' }],
  ['nor does a person alone', { approval: 'Approved' }, { state: 'Denied', reason: 'NoPolicyMatches' }],
  ['nor a ForeignCluster', { incoming: 'Enabled' }, { state: 'Denied', reason: 'NoPolicyMatches' }],
  ['nor a token', { token: ok }, { state: 'Denied', reason: 'NoPolicyMatches' }],
  ['nor that it was in before', { admitted: true }, { state: 'Denied', reason: 'NoPolicyMatches' }],
  ['automatic', { policy: automatic }, { state: 'Approved', policy: automatic }],
  [
    'Disabled comes first',
    { policy: automatic, incoming: 'Disabled', approval: 'Approved' },
    { state: 'Denied', reason: 'DeniedHere' },
  ],
  [
    'then Denied',
    { policy: automatic, incoming: 'Enabled', approval: 'Denied', admitted: true },
    { state: 'Denied', reason: 'DeniedHere' },
  ],
  ['a person is asked', { policy: manual }, { state: 'Pending', reason: 'WaitingForApproval' }],
  [
    'also where the policy says nothing of it',
    { policy: silent },
    { state: 'Pending', reason: 'WaitingForApproval' },
  ],
  ['a person says yes', { policy: manual, approval: 'Approved' }, { state: 'Approved' }],
  ['or says so on the ForeignCluster', { policy: manual, incoming: 'Enabled' }, { state: 'Approved' }],
  ['a token speaks for a person', { policy: manual, token: ok }, { state: 'Approved', token: 't' }],
  [
    'a bad one leaves it to the person',
    { policy: manual, token: bad },
    { state: 'Pending', reason: 'WaitingForApproval' },
  ],
  ['a token is asked for', { policy: token }, { state: 'Pending', reason: 'TokenRequired' }],
  ['a good one', { policy: token, token: ok }, { state: 'Approved', token: 't' }],
  ['a bad one', { policy: token, token: bad }, { state: 'Denied', reason: 'TokenExpired' }],
  ['a person may let in without', { policy: token, approval: 'Approved', token: bad }, { state: 'Approved' }],
  ['who is in stays in', { policy: token, admitted: true }, { state: 'Approved' }],
  ['whatever the policy says of newcomers now', { policy: manual, admitted: true }, { state: 'Approved' }],
])('%s', (_what, input, decision) => {
  expect(decide({ incoming: 'Auto', admitted: false, ...input })).toMatchObject(decision);
});

const facts: PeerFacts = { clusterID: 'a'.repeat(26), labels: {}, foundBy: ['LAN'], networkKeys: ['home'] };
const less: PeerFacts = { ...facts, foundBy: [], networkKeys: [] };
const byKey = policyOf({ peers: { networkKeySecretRef: { name: 'home' } } }, 'by-key');
const onLan = policyOf({ peers: { anyone: true, discovery: ['LAN'] } }, 'on-lan');
const listed = policyOf({ peers: { clusterIDs: [facts.clusterID] }, precedence: -1 }, 'listed');

test('a newcomer is judged by what is known of it now', () => {
  expect(policyFor([byKey], facts)).toBe(byKey);
  expect(policyFor([byKey, onLan], less)).toBeUndefined();
  expect(policyFor([byKey, listed], less)).toBe(listed);
});

test('who is in keeps its policy while its link is away, as long as the policy could mean it', () => {
  const away = { policy: 'by-key', linked: false };
  expect(policyFor([byKey, listed], less, away)).toBe(byKey);
  expect(policyFor([listed], less, away)).toBe(listed);
  expect(policyFor([onLan], less, { policy: 'on-lan', linked: false })).toBe(onLan);
  const others = policyOf({ peers: { clusterIDs: ['b'.repeat(26)] } }, 'by-key');
  expect(policyFor([others], less, away)).toBeUndefined();
});

test('with a link, a key that is not proved counts as lost, an announcement that is not heard does not', () => {
  expect(policyFor([byKey], less, { policy: 'by-key', linked: true })).toBeUndefined();
  expect(policyFor([onLan], less, { policy: 'on-lan', linked: true })).toBe(onLan);
  expect(policyFor([onLan, listed], less, { policy: 'on-lan', linked: true })).toBe(listed);
});

test('a policy that is being deleted is gone', () => {
  const dying = { ...byKey, metadata: { ...byKey.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  expect(policyFor([dying], facts, { policy: 'by-key', linked: false })).toBeUndefined();
});
