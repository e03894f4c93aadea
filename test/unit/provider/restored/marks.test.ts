import { expect, test } from '@jest/globals';
import type { Lease } from '../../../../src/api/wire.ts';
import {
  holderText,
  isLost,
  markOf,
  markOfForeign,
  markText,
  parseHolder,
  parseMark,
} from '../../../../src/provider/restored/marks.ts';

const lease = (uid: string, annotations: Record<string, string>, leaseTransitions?: number): Lease =>
  ({
    metadata: { name: 'rome', uid, annotations },
    spec: { ...(leaseTransitions !== undefined && { leaseTransitions }) },
  }) as unknown as Lease;
const UID = '01234567-89ab-4000-8000-000000000000';

test.each([
  ['fewer than known', { uid: 'a', count: 5 }, { uid: 'a', count: 4 }, true],
  ['as many', { uid: 'a', count: 5 }, { uid: 'a', count: 5 }, false],
  ['more, as when another process renews it', { uid: 'a', count: 5 }, { uid: 'a', count: 9 }, false],
  ['of a Lease that was made anew', { uid: 'a', count: 5 }, { uid: 'b', count: 1 }, false],
  ['nothing was known', undefined, { uid: 'a', count: 1 }, false],
  ['nothing is there', { uid: 'a', count: 5 }, undefined, false],
])('lost: %s', (_what, known, found, expected) => {
  expect(isLost(known, found)).toBe(expected);
});

test('marks of both Leases, and of those of earlier versions', () => {
  expect(markOf(lease(UID, { 'tributary.dev/renewals': '57' }))).toEqual({ uid: '01234567', count: 57 });
  expect(markOf(lease(UID, {}))).toEqual({ uid: '01234567', count: 0 });
  expect(markOf(lease(UID, { 'tributary.dev/renewals': 'many' }))).toEqual({ uid: '01234567', count: 0 });
  expect(markOfForeign(lease(UID, {}, 3))).toEqual({ uid: '01234567', count: 3 });
  expect(markOfForeign(lease(UID, {}))).toEqual({ uid: '01234567', count: 0 });
});

test('what is written is read again, and nothing else is', () => {
  const mark = { uid: '01234567', count: 57 };
  expect(parseMark(markText(mark))).toEqual(mark);
  expect(parseHolder(holderText('rome', mark))).toEqual({ node: 'rome', ...mark });
  expect(holderText('rome', undefined)).toBe('rome');
  for (const text of [
    undefined,
    '',
    'rome',
    'rome 57',
    'rome 01234567.-1',
    'rome 01234567.57 more',
    ' 01234567.57',
  ]) {
    expect(parseHolder(text)).toBeUndefined();
  }
});
