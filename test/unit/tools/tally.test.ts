import { expect, test } from '@jest/globals';

import { addTally, closingLine, readTally, suiteResult } from '../../../tools/tally.ts';

test('counts are read, added and printed', () => {
  const sum = [readTally('3 0 1\n'), readTally('2 1 0\n4 0 0\n')].map((tally) => suiteResult(tally, true));
  expect(closingLine(sum.reduce((a, b) => addTally(a, b)))).toBe('9 passed, 1 failed, 1 skipped');
});

test.each([
  ['no count and a failure', '', false, '0 passed, 1 failed, 0 skipped'],
  ['no count and success: there were no tests', '', true, '0 passed, 0 failed, 0 skipped'],
  ['all passed, and yet the suite failed', '5 0 0\n', false, '5 passed, 1 failed, 0 skipped'],
  ['failed tests count as they are', '5 2 0\n', false, '5 passed, 2 failed, 0 skipped'],
])('%s', (_, text, ok, expected) => {
  expect(closingLine(suiteResult(readTally(text), ok))).toBe(expected);
});
