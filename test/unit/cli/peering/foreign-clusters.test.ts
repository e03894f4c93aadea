import { describe, expect, test } from '@jest/globals';
import type { Direction, ForeignCluster, PeeringState } from '../../../../src/api/foreign-cluster.ts';
import {
  findCluster,
  type Outcome,
  outcomeOf,
  stateLine,
} from '../../../../src/cli/peering/foreign-clusters.ts';

const MILAN = { metadata: { name: 'mine', uid: '1' }, spec: { clusterID: 'milan' } } as ForeignCluster;

test('who names an unknown cluster is sent to those that are known', () => {
  expect(() => findCluster([MILAN], 'company')).toThrow(
    /^no ForeignCluster has the name or ClusterID "company"; see: tributary peerings$/,
  );
});

test('where none is known, it says how to make one known', () => {
  expect(() => findCluster([], 'company')).toThrow(
    /^no ForeignCluster has the name or ClusterID "company"; no other cluster is known here\. Make it known with a ForeignCluster \(spec\.clusterID, spec\.endpoint\), or peer with it: tributary peer ENDPOINT$/,
  );
});

describe('progress in plain words', () => {
  const line = (
    status: ForeignCluster['status'],
    directions: readonly Direction[] = ['outgoing', 'incoming'],
  ): string =>
    stateLine(
      { metadata: { name: 'x' } as ForeignCluster['metadata'], ...(status && { status }) },
      directions,
    );
  const since = '2026-01-01T12:00:00Z';

  test('what is normal does not look like a failure', () => {
    const incoming = { phase: 'None', reason: 'NoPolicyMatches', message: 'no SharingPolicy ...' } as const;
    expect(line({ link: { connected: true }, outgoing: { phase: 'Established', since }, incoming })).toBe(
      'link up; our pods over there: yes; its pods here: no, this cluster lends it nothing',
    );
    expect(line(undefined)).toBe(
      'no link at the moment; our pods over there: not yet; its pods here: no, this cluster lends it nothing',
    );
  });

  test.each<[PeeringState, string]>([
    [
      { phase: 'Pending', reason: 'WaitingForOffer', message: 'asked for an offer', since },
      'our pods over there: asked for, no answer yet (since 12:00:00Z, WaitingForOffer): asked for an offer',
    ],
    [
      { phase: 'Accepted', reason: 'SettingUp', message: 'the tenant is being set up', since },
      'our pods over there: agreed, being set up (since 12:00:00Z, SettingUp): the tenant is being set up',
    ],
    [
      { phase: 'Denied', reason: 'DeniedByPeer', message: 'the provider says: no', since },
      'our pods over there: denied (since 12:00:00Z, DeniedByPeer): the provider says: no',
    ],
    [
      { phase: 'None', reason: 'Duplicate', message: 'm stands for it' },
      'our pods over there: not asked for (Duplicate): m stands for it',
    ],
  ])('%j', (outgoing, expected) => {
    expect(line({ link: { connected: true }, outgoing }, ['outgoing'])).toBe(`link up; ${expected}`);
  });
});

describe('another cluster that answers', () => {
  const before = undefined;
  test.each<[string, ForeignCluster['status'], boolean, Outcome | undefined]>([
    ['is the end of a wish', { answeredBy: 'rome', foundBy: 'Manual' }, false, 'another'],
    ['may have answered at an earlier endpoint', { answeredBy: 'rome' }, true, undefined],
    [
      'is none where discovery has found the wanted one',
      { answeredBy: 'rome', foundBy: 'Manual,LAN' },
      false,
      undefined,
    ],
    [
      'is none where the wanted one has come',
      { answeredBy: 'rome', link: { connected: true } },
      false,
      undefined,
    ],
    ['is none where it is the wanted one', { answeredBy: 'milan' }, false, undefined],
  ])('%s', (_what, status, isPatient, expected) => {
    expect(outcomeOf({ ...MILAN, ...(status && { status }) }, { before, isPatient })).toBe(expected);
  });
});
