import { expect, test } from '@jest/globals';

import {
  addTally,
  closingLine,
  readTallies,
  slowest,
  suiteResult,
  sumOf,
  type Tally,
} from '../../../tools/tally.ts';

test('counts are read, added and printed', () => {
  const sum = ['3 0 1 70 a\n', '2 1 0 5 b\n4 0 0 9 c d\n'].map((text) =>
    suiteResult(sumOf(readTallies(text)), true),
  );
  expect(closingLine(sum.reduce<Tally>((a, b) => addTally(a, b), { passed: 0, failed: 0, skipped: 0 }))).toBe(
    '9 passed, 1 failed, 1 skipped',
  );
});

test.each([
  ['no count and a failure', '', false, '0 passed, 1 failed, 0 skipped'],
  ['no count and success: there were no tests', '', true, '0 passed, 0 failed, 0 skipped'],
  ['all passed, and yet the suite failed', '5 0 0 1 a\n', false, '5 passed, 1 failed, 0 skipped'],
  ['failed tests count as they are', '5 2 0 1 a\n', false, '5 passed, 2 failed, 0 skipped'],
])('%s', (_, text, ok, expected) => {
  expect(closingLine(suiteResult(sumOf(readTallies(text)), ok))).toBe(expected);
});

test('the slowest files of all suites, the slowest first', () => {
  const suites = ['1 0 0 70 a\n1 0 0 900 b\n', '1 0 0 80 c d\n'].map(readTallies);
  expect(slowest(suites, 2)).toEqual([
    { path: 'b', ms: 900 },
    { path: 'c d', ms: 80 },
  ]);
});
