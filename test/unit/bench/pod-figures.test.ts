import { expect, test } from '@jest/globals';

import { percentile } from '../../../bench/frame/statistics.ts';
import { StartTimes } from '../../../bench/pods/latencies.ts';
import { requestTable } from '../../../bench/pods/report.ts';
import { hasLookedAt } from '../../../bench/pods/restart.ts';
import type { Burst } from '../../../bench/pods/burst.ts';

test('what a virtual node adds to the start of a pod: both ways, and not what the foreign cluster takes', () => {
  const times = new StartTimes();
  times.home('a', false, 100);
  times.remote('a', false, 130);
  times.remote('a', true, 1_130);
  times.remote('a', true, 1_200);
  times.home('a', true, 1_140);
  times.home('a', true, 1_500);
  // It is not known how this one went on.
  times.home('b', false, 200);
  times.remote('b', true, 250);
  expect(times.added()).toEqual([40]);
  expect(times.complete).toBe(1);
});

test('a pod that is seen over there before home shows it is of the same pair', () => {
  const times = new StartTimes();
  times.remote('a', true, 100);
  times.home('a', true, 105);
  expect(times.added()).toEqual([0]);
});

const HUNDRED = Array.from({ length: 100 }, (_, index) => 100 - index);

test.each([
  [0, 1],
  [0.5, 50],
  [0.99, 99],
  [0.999, 100],
  [1, 100],
])('share %d of the numbers from 1 to 100: %d', (share, expected) => {
  expect(percentile(HUNDRED, share)).toBe(expected);
});

test('of nothing there is no percentile', () => {
  expect(percentile([], 0.5)).toBeNaN();
});

const metrics = (reconciled: number, waiting: number): string =>
  [
    '# TYPE tributary_reconciles_total counter',
    `tributary_reconciles_total{controller="pods",outcome="ok"} ${reconciled}`,
    'tributary_reconciles_total{controller="pods",outcome="requeue"} 2',
    'tributary_reconciles_total{controller="tokens",outcome="ok"} 500',
    'tributary_queue_depth{controller="pods"} 0',
    `tributary_queue_depth{controller="tokens"} ${waiting}`,
  ].join('\n');

test.each([
  ['every pod, and nothing waits', metrics(98, 0), true],
  ['not every pod', metrics(97, 0), false],
  ['a key waits', metrics(98, 1), false],
  ['nothing yet', '', false],
])('looked at %s', (_, text, expected) => {
  expect(hasLookedAt(text, 100)).toBe(expected);
});

test('requests are compared by kind, what is asked more often first', () => {
  const burst = (counts: Record<string, number>): Burst[] => [
    { pods: 10, lifeRequests: new Map(Object.entries(counts)) } as unknown as Burst,
  ];
  const results = new Map([
    ['agent', burst({ 'POST pods (foreign)': 10, 'GET pods (foreign)': 20, 'LIST nodes (home)': 0.1 })],
    ['null mirror', burst({ 'POST pods (foreign)': 10 })],
  ]);
  expect(requestTable(results, ['agent', 'null mirror'])).toBe(
    [
      'requests per pod life  agent  null mirror  more',
      'GET pods (foreign)      2.00         0.00  2.00',
      'POST pods (foreign)     1.00         1.00  0.00',
      '',
    ].join('\n'),
  );
});
