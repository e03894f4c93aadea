import { expect, test } from '@jest/globals';

import {
  addTally,
  byFolder,
  closingLine,
  failuresOf,
  readTallies,
  slowest,
  suiteResult,
  sumOf,
  type Tally,
} from '../../../tools/tally.ts';

/** A line as the reporter writes it. */
const line = (path: string, ms: number, [passed, failed, skipped]: [number, number, number]): string =>
  `${JSON.stringify({ passed, failed, skipped, ms, path, failures: [] })}\n`;

test('counts are read, added and printed', () => {
  const sum = [line('a', 70, [3, 0, 1]), line('b', 5, [2, 1, 0]) + line('c d', 9, [4, 0, 0])].map((text) =>
    suiteResult(sumOf(readTallies(text)), true),
  );
  expect(closingLine(sum.reduce<Tally>((a, b) => addTally(a, b), { passed: 0, failed: 0, skipped: 0 }))).toBe(
    '9 passed, 1 failed, 1 skipped',
  );
});

test.each([
  ['no count and a failure', '', false, '0 passed, 1 failed, 0 skipped'],
  ['no count and success: there were no tests', '', true, '0 passed, 0 failed, 0 skipped'],
  ['all passed, and yet the suite failed', line('a', 1, [5, 0, 0]), false, '5 passed, 1 failed, 0 skipped'],
  ['failed tests count as they are', line('a', 1, [5, 2, 0]), false, '5 passed, 2 failed, 0 skipped'],
])('%s', (_, text, ok, expected) => {
  expect(closingLine(suiteResult(sumOf(readTallies(text)), ok))).toBe(expected);
});

test('the slowest files of all suites, the slowest first', () => {
  const files = readTallies(
    line('a', 70, [1, 0, 0]) + line('b', 900, [1, 0, 0]) + line('c d', 80, [1, 0, 0]),
  );
  expect(slowest(files, 2)).toMatchObject([
    { path: 'b', ms: 900 },
    { path: 'c d', ms: 80 },
  ]);
});

test('the sum of each folder, whatever lies below it', () => {
  const files = readTallies(
    line('test/unit/kube/a.test.ts', 70, [1, 0, 0]) +
      line('test/integration/b.test.ts', 900, [1, 2, 0]) +
      line('test/unit/kube/deep/c.test.ts', 30, [4, 0, 1]),
  );
  expect(byFolder(files)).toEqual([
    { folder: 'test/integration', passed: 1, failed: 2, skipped: 0, ms: 900 },
    { folder: 'test/unit/kube', passed: 5, failed: 0, skipped: 1, ms: 100 },
  ]);
});

test('each failed test, with its file', () => {
  const failures = [{ test: 'a lock is taken', message: 'expected true' }];
  const broken = { passed: 1, failed: 1, skipped: 0, ms: 3, path: 'b', failures };
  expect(failuresOf(readTallies(`${line('a', 70, [1, 0, 0])}${JSON.stringify(broken)}\n`))).toEqual([
    { path: 'b', test: 'a lock is taken', message: 'expected true' },
  ]);
});
