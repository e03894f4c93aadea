import { describe, expect, test } from '@jest/globals';
import type { Pod, PodStatus } from '../../../../src/api/wire.ts';
import { forgeStatus } from '../../../../src/provider/forge/status.ts';
import { CONTEXT, homePod, NOW, remotePod, RUNNING } from '../support/pods.ts';

const LATER = '2026-01-01T00:01:00Z';
const shown = (home: Pod, status: PodStatus, metadata: Partial<Pod['metadata']> = {}): PodStatus =>
  forgeStatus(home, remotePod(home, { metadata, status }), CONTEXT, LATER);
const condition = (status: PodStatus, type: string): object | undefined =>
  status.conditions?.find((one) => one.type === type);

describe('since when a pod is ready', () => {
  const gate = { readinessGates: [{ conditionType: 'lb' }] };
  const opened = { type: 'lb', status: 'True' };
  const since = (ready: object, spec: Partial<NonNullable<Pod['spec']>> = {}): unknown => {
    const conditions = [opened, { type: 'Ready', ...ready }] as NonNullable<PodStatus['conditions']>;
    return condition(shown(homePod({ spec, status: { ...RUNNING, conditions } }), RUNNING), 'Ready');
  };
  const EARLIER = '2025-12-31T23:00:00Z';

  test.each([
    [
      'a gate opens now',
      { status: 'False', reason: 'ReadinessGatesNotReady', lastTransitionTime: NOW },
      gate,
      LATER,
    ],
    ['a gate has opened', { status: 'True', lastTransitionTime: LATER }, gate, LATER],
    [
      'the tunnel carries again',
      { status: 'False', reason: 'TunnelDown', lastTransitionTime: NOW },
      {},
      LATER,
    ],
    [
      'the containers have become ready',
      { status: 'False', reason: 'ContainersNotReady', lastTransitionTime: EARLIER },
      {},
      NOW,
    ],
    ['nothing changes', { status: 'True', lastTransitionTime: NOW }, {}, NOW],
  ])('%s', (_what, ready, spec, expected) => {
    expect(since(ready, spec)).toMatchObject({ status: 'True', lastTransitionTime: expected });
  });
});

describe('ended by the foreign cluster', () => {
  const going = { deletionTimestamp: NOW, deletionGracePeriodSeconds: 30 };
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'r', controller: true };
  const owned = homePod({ metadata: { ownerReferences: [owner] }, status: RUNNING });
  const ended = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByForeignCluster' };

  test('says that the pod is not at fault, and since when', () => {
    const first = shown(owned, RUNNING, going);
    expect(condition(first, 'DisruptionTarget')).toMatchObject({ ...ended, lastTransitionTime: LATER });
    const asGoing = { ...owned, metadata: { ...owned.metadata, ...going }, status: first };
    expect(condition(shown(asGoing, RUNNING, going), 'DisruptionTarget')).toEqual(
      condition(first, 'DisruptionTarget'),
    );
  });

  test('what an eviction there says of it is kept as it is', () => {
    const evicted = { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' };
    const there = { ...RUNNING, conditions: [...(RUNNING.conditions ?? []), evicted] };
    const found = shown(owned, there, going).conditions?.filter(({ type }) => type === 'DisruptionTarget');
    expect(found).toEqual([evicted]);
  });

  test('nothing of it is said of a pod that home ends, or that was made anew over there', () => {
    const deleted = homePod({ metadata: going, status: RUNNING });
    expect(condition(shown(deleted, RUNNING, going), 'DisruptionTarget')).toBeUndefined();
    const before = homePod({ status: { ...RUNNING, conditions: [ended] } });
    expect(condition(shown(before, RUNNING), 'DisruptionTarget')).toBeUndefined();
  });

  test('a pod that nobody replaces is not ready from then on; one that is replaced shows what its containers do', () => {
    const bare = homePod({ status: RUNNING });
    expect(condition(shown(bare, RUNNING, going), 'Ready')).toMatchObject({
      status: 'False',
      reason: ended.reason,
    });
    expect(condition(shown(owned, RUNNING, going), 'Ready')).toMatchObject({ status: 'True' });
  });
});
