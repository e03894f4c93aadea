import { expect, test } from '@jest/globals';

import type { RunResult } from '../../../faults/campaign.ts';
import { failure, Report } from '../../../faults/report.ts';

const VIOLATION = { invariant: 'I1', what: 'two bodies' };

const result = (name: string, more: Partial<RunResult> = {}): RunResult => ({
  name,
  violations: [],
  kills: 0,
  faults: new Map(),
  reached: true,
  seconds: 1,
  ...more,
});

test('the sum of all runs, the most frequent fault first', () => {
  const report = new Report();
  report.add(result('a', { kills: 1, faults: new Map([['kill', 1]]) }));
  const faults = new Map([
    ['kill', 2],
    ['delay', 7],
    ['cut', 0],
  ]);
  report.add(result('b', { kills: 2, faults, violations: [VIOLATION] }));
  report.add(result('c', { faults: new Map([['cut', 0]]) }));
  expect(report.summary(61.6).split('\n')).toEqual([
    '3 runs, 3 kills, 10 faults, 1 runs with violations, in 62 s',
    'faults: 7 delay, 3 kill; 1 runs met none',
  ]);
  expect(report.runs).toBe(3);
  expect(report.failed.map(({ name }) => name)).toEqual(['b']);
});

test('nothing was tried', () => {
  expect(new Report().summary(0).split('\n')).toEqual([
    '0 runs, 0 kills, 0 faults, 0 runs with violations, in 0 s',
    'faults: none; 0 runs met none',
  ]);
});

test('a failure says each violation, and how to repeat it', () => {
  const violations = [VIOLATION, { invariant: 'I7', what: 'no rest' }];
  expect(failure({ name: 'random:7', violations }, 'make faults RUN=random:7').split('\n')).toEqual([
    'FAILED random:7',
    '    I1: two bodies',
    '    I7: no rest',
    '    repeated by: make faults RUN=random:7',
  ]);
});
