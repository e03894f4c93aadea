import { expect, test } from '@jest/globals';
import type { Node } from '../../../src/api/wire.ts';
import { type DrainTimes, awayForMs, drainText, stageOf } from '../../../src/kube/drain-stage.ts';

const LIMITS = { evictMs: 300_000, endMs: 30_000 };

test.each<[string, Partial<DrainTimes>, string, number]>([
  ['begins', {}, 'Evict', 300_000],
  ['just before the deadline', { elapsedMs: 299_999 }, 'Evict', 1],
  ['at the deadline', { elapsedMs: 300_000 }, 'Delete', 30_000],
  ['when pods had their time', { elapsedMs: 330_000 }, 'Force', 0],
  ['with a clock that jumped far', { elapsedMs: 1e12 }, 'Force', 0],
  ['hasty', { hasty: true }, 'Delete', 5000],
  ['hasty, for long', { hasty: true, elapsedMs: 5000 }, 'Force', 0],
  ['away for a moment', { elapsedMs: 20_000, awayMs: 10_000 }, 'Evict', 10_000],
  ['away for long', { elapsedMs: 40_000, awayMs: 20_000 }, 'Force', 0],
  ['away since the deadline', { elapsedMs: 310_000, awayMs: 10_000 }, 'Delete', 10_000],
])('%s', (_, times, kind, endsInMs) => {
  expect(stageOf({ elapsedMs: 0, hasty: false, ...times }, LIMITS)).toEqual({ kind, endsInMs });
});

test('without a time for budgets, pods still have one to end', () => {
  const limits = { evictMs: 0, endMs: 30_000 };
  expect(stageOf({ elapsedMs: 0, hasty: false }, limits)).toEqual({ kind: 'Delete', endsInMs: 30_000 });
});

const NOW = Date.parse('2026-01-01T01:00:00Z');
const node = (status: string, lastTransitionTime?: string): Node => ({
  metadata: { name: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '' },
  status: { conditions: [{ type: 'Ready', status, ...(lastTransitionTime && { lastTransitionTime }) }] },
});

test.each<[string, Node | undefined, number | undefined]>([
  ['no node', undefined, 60_000],
  ['a new one', { ...node('True'), status: {} }, undefined],
  ['Ready', node('True', '2026-01-01T00:00:00Z'), undefined],
  ['not Ready since before the drain', node('False', '2026-01-01T00:00:00Z'), 60_000],
  ['unknown for ten seconds', node('Unknown', '2026-01-01T00:59:50Z'), 10_000],
  ['by a clock that is ahead', node('False', '2026-01-01T02:00:00Z'), 0],
  ['without a time', node('False'), 60_000],
  ['with a wrong time', node('False', 'never'), 60_000],
])('away: %s', (_, one, expected) => {
  expect(awayForMs(one, NOW, 60_000)).toBe(expected);
});

test('what is waited for, by reason', () => {
  const metadata = { name: 'p', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
  const held = (budget: string | undefined, message: string): object => ({
    pod: { metadata },
    message,
    ...(budget && { budget }),
  });
  const state = {
    stage: 'Evict' as const,
    left: 4,
    held: [
      held('shop/web', 'needs 2 healthy pods and has 2 currently'),
      held('shop/web', 'needs 2 healthy pods and has 2 currently'),
      held(undefined, 'more than one PodDisruptionBudget selects this pod'),
    ] as never,
    untilMs: NOW - 400,
    waitMs: 500,
  };
  expect(drainText(state)).toBe(
    'draining: 4 pods left, 2 held by PodDisruptionBudget shop/web (needs 2 healthy pods and has 2 currently), ' +
      '1 cannot be evicted: more than one PodDisruptionBudget selects this pod; ' +
      'deleted whatever budgets say from 2026-01-01T01:00:00Z on',
  );
  expect(drainText({ ...state, stage: 'Delete', held: [], left: 1 })).toBe(
    'draining: 1 pod left; ended by force from 2026-01-01T01:00:00Z on',
  );
});
