import { expect, test } from '@jest/globals';

import type { PeeringRequest, Suspension } from '../../../../src/api/peering-request.ts';
import { lastsMs, suspend, Suspensions } from '../../../../src/peering/lending/suspension.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOW = Date.UTC(2026, 0, 1);
const ROME = 'r'.repeat(26);

const request = (suspension?: Suspension, annotations: Record<string, string> = {}): PeeringRequest => ({
  metadata: { name: ROME, uid: 'u', resourceVersion: '1', creationTimestamp: '', annotations },
  spec: { clusterID: ROME, namespaces: [] },
  status: suspension === undefined ? {} : { suspension },
});

test('each is twice as long as the one before, up to a day', () => {
  let last: Suspension | undefined;
  const minutes = Array.from({ length: 10 }, () => {
    last = suspend(last, 'it floods', NOW);
    return lastsMs(last, NOW) / MINUTE;
  });
  expect(minutes).toEqual([10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]);
});

test('no time that somebody has written makes it longer than a day', () => {
  expect(lastsMs({ since: '', until: '2099-01-01T00:00:00Z', count: 1, why: '' }, NOW)).toBe(24 * HOUR);
  expect(lastsMs({ since: '', until: 'nonsense', count: 1, why: '' }, NOW)).toBe(0);
});

test('is made once for each word, goes on after a restart, and ends by itself', () => {
  const suspensions = new Suspensions();
  expect(suspensions.of(request(), NOW)).toBeUndefined();
  suspensions.note(ROME, 'it floods');
  const first = suspensions.of(request(), NOW);
  expect(first).toMatchObject({ count: 1, why: 'it floods', until: '2026-01-01T00:10:00Z' });
  suspensions.note(ROME, 'it floods on');
  expect(suspensions.of(request(first), NOW + MINUTE)).toEqual(first);

  const restarted = new Suspensions();
  expect(restarted.of(request(first), NOW + 5 * MINUTE)).toEqual(first);
  const ended = restarted.of(request(first), NOW + 11 * MINUTE);
  expect(ended && lastsMs(ended, NOW + 11 * MINUTE)).toBe(0);
  restarted.note(ROME, 'again');
  expect(restarted.of(request(first), NOW + 11 * MINUTE)).toMatchObject({ count: 2 });
});

test('a request that was taken back and made again is no way out', () => {
  const suspensions = new Suspensions();
  suspensions.note(ROME, 'it floods');
  const first = suspensions.of(request(), NOW);
  expect(suspensions.of(request(), NOW + MINUTE)).toEqual(first);
});

test('is forgotten a day after its end, and at once where a person says so', () => {
  const first = suspend(undefined, 'it floods', NOW);
  const later = new Suspensions();
  expect(later.of(request(first), NOW + 25 * HOUR)).toBeUndefined();
  const lifted = new Suspensions();
  expect(lifted.of(request(first), NOW)).toEqual(first);
  expect(lifted.of(request(first, { 'tributary.dev/resume': 'true' }), NOW)).toBeUndefined();
  expect(lifted.of(request(), NOW)).toBeUndefined();
});
