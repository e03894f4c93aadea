import { expect, test } from '@jest/globals';

import { addTally, closingLine, failedFiles, readTallies, suiteResult, sumOf } from '../../../tools/tally.ts';

test('counts are read, added and printed', () => {
  const sum = ['3 0 1 a\n', '2 1 0 b\n4 0 0 c d\n'].map((text) =>
    suiteResult(sumOf(readTallies(text)), true),
  );
  expect(closingLine(sum.reduce((a, b) => addTally(a, b)))).toBe('9 passed, 1 failed, 1 skipped');
});

test.each([
  ['no count and a failure', '', false, '0 passed, 1 failed, 0 skipped'],
  ['no count and success: there were no tests', '', true, '0 passed, 0 failed, 0 skipped'],
  ['all passed, and yet the suite failed', '5 0 0 a\n', false, '5 passed, 1 failed, 0 skipped'],
  ['failed tests count as they are', '5 2 0 a\n', false, '5 passed, 2 failed, 0 skipped'],
])('%s', (_, text, ok, expected) => {
  expect(closingLine(suiteResult(sumOf(readTallies(text)), ok))).toBe(expected);
});

test('of a file that ran twice the last count counts', () => {
  const first = '5 1 0 /a\n7 0 0 /b\n';
  expect(failedFiles(readTallies(first))).toEqual(['/a']);
  const both = readTallies(`${first}6 0 0 /a\n`);
  expect(failedFiles(both)).toEqual([]);
  expect(sumOf(both)).toEqual({ passed: 13, failed: 0, skipped: 0 });
});
