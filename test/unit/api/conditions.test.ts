import { expect, test } from '@jest/globals';
import { isConditionTrue, withCondition, withoutCondition } from '../../../src/api/conditions.ts';
import type { Condition } from '../../../src/api/wire.ts';

const NOON = Date.UTC(2026, 0, 1, 12, 0, 0, 123);
const before: Condition[] = [
  { type: 'Ready', status: 'True', reason: 'Up', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
  { type: 'Seen', status: 'True', reason: 'Yes', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' },
];

test('nothing differs: the same list', () => {
  const wanted = { type: 'Ready', status: 'True', reason: 'Up', message: '' } as const;
  expect(withCondition(before, wanted, NOON)).toBe(before);
});

test('another reason or message keeps the time of the transition, another status does not', () => {
  const renamed = withCondition(
    before,
    { type: 'Ready', status: 'True', reason: 'Still', message: 'x' },
    NOON,
  );
  expect(renamed[0]).toMatchObject({ reason: 'Still', lastTransitionTime: '2026-01-01T00:00:00Z' });
  const turned = withCondition(before, { type: 'Ready', status: 'False', reason: 'Down', message: '' }, NOON);
  expect(turned[0]).toMatchObject({ status: 'False', lastTransitionTime: '2026-01-01T12:00:00Z' });
  expect(turned[1]).toBe(before[1]);
});

test('a new one goes to the end; one taken out is gone', () => {
  const more = withCondition(before, { type: 'New', status: 'Unknown', reason: 'Why', message: '' }, NOON);
  expect(more.map(({ type }) => type)).toEqual(['Ready', 'Seen', 'New']);
  expect(withoutCondition(more, 'Seen').map(({ type }) => type)).toEqual(['Ready', 'New']);
  expect(withoutCondition(before, 'None')).toBe(before);
});

test('whether it is true', () => {
  expect(isConditionTrue(before, 'Ready')).toBe(true);
  expect(isConditionTrue(before, 'None')).toBe(false);
  expect(isConditionTrue(undefined, 'Ready')).toBe(false);
});
