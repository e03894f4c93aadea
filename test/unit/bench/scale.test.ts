import { expect, test } from '@jest/globals';

import { freeMemoryProblem } from '../../../bench/frame/machine.ts';
import { copyOf, pairsOf } from '../../../bench/scale/copies.ts';
import { found } from '../../../bench/scale/found.ts';
import type { Step } from '../../../bench/scale/measure.ts';
import type { Pod } from '../../../src/api/wire.ts';

const pod = (name: string, uid: string, more: { homeUid?: string; podIP?: string } = {}): Pod => ({
  metadata: {
    name,
    namespace: 'agent',
    uid,
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...(more.homeUid !== undefined && { labels: { 'tributary.dev/home-uid': more.homeUid } }),
    annotations: { fields: `{"k:{\\"ip\\":\\"${more.podIP ?? ''}\\"}":{}}` },
  },
  status: {
    ...(more.podIP !== undefined && { podIP: more.podIP, podIPs: [{ ip: more.podIP }, { ip: '10.1.0.77' }] }),
  },
});

const HOME = pod('seed-1', 'uid-at-home', { podIP: '10.1.0.7' });
const BODY = pod('seed-1', 'uid-over-there', { homeUid: 'uid-at-home', podIP: '10.1.0.7' });

test('a copy and its body belong together as the pods do that they were copied of', () => {
  const [pair] = pairsOf([HOME], [pod('seed-2', 'x', { homeUid: 'y' }), BODY]);
  if (pair === undefined) throw new Error('no pair');
  const texts = copyOf(pair, 'copy-000009', 65_538);
  const [home, foreign] = [JSON.parse(texts.home) as Pod, JSON.parse(texts.foreign) as Pod];
  expect(home.metadata.name).toBe('copy-000009');
  expect(foreign.metadata.name).toBe('copy-000009');
  expect(foreign.metadata.labels?.['tributary.dev/home-uid']).toBe(home.metadata.uid);
  expect(new Set([home.metadata.uid, foreign.metadata.uid, 'uid-at-home', 'uid-over-there']).size).toBe(4);
  expect(home.status?.podIP).toBe('10.129.0.2');
  expect(home.metadata.annotations).toEqual({ fields: '{"k:{\\"ip\\":\\"10.129.0.2\\"}":{}}' });
  // Only the whole address is another one.
  expect(foreign.status?.podIPs).toEqual([{ ip: '10.129.0.2' }, { ip: '10.1.0.77' }]);
});

test('a pod without its body cannot be copied', () => {
  expect(() => pairsOf([HOME], [])).toThrow('pod seed-1 has no body of that name over there');
});

const step = (pods: number, cost: number): Step => ({
  pods,
  oneByOneMs: cost,
  oneByOneCpuMs: cost,
  serversCpuMs: cost,
  atOnceMs: cost,
  writes: 0,
  requests: new Map(),
  stall: { startMs: 1, p999Ms: 1, longestMs: 1 },
  stallAtOnce: { startMs: 1, p999Ms: 1, longestMs: 1 },
  privateMiB: cost,
  restCpuPercent: 1,
  statusMs: 1,
  deletionMs: 1,
  statusRequests: 2,
  deletionRequests: 3,
});

test('a cost that grows with the square of the pods misses the goals', () => {
  const { goals } = found([[step(10, 100), step(30, 900), step(100, 10_000)]]);
  const of = (id: string): number | undefined => goals.find((goal) => goal.id === id)?.values[0];
  expect(of('scale-pods-time')).toBe(10);
  expect(of('scale-pods-memory')).toBeGreaterThan(1.25);
  expect(of('scale-pods-requests')).toBe(1);
});

test('a run that needs more memory than there is says how much', () => {
  expect(freeMemoryProblem(1000, 'MemTotal: 9 kB\nMemAvailable:    1024000 kB\n')).toBeUndefined();
  expect(freeMemoryProblem(1001, 'MemAvailable:    1024000 kB\n')).toBe(
    'about 1001 MiB are needed, and 1000 MiB are available',
  );
});
