import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';

import { conformanceDocument } from '../../../../lab/conformance/document.ts';
import { DIFFERENCES, LAB_FAILURES } from '../../../../lab/conformance/reasons.ts';
import { unexplained, type Result } from '../../../../lab/conformance/score.ts';
import { TENTH } from '../../../../lab/conformance/tenth.ts';

const RESULT = join(import.meta.dirname, '..', '..', '..', '..', 'lab', 'conformance', 'result.json');
const last = JSON.parse(readFileSync(RESULT, 'utf8')) as Result;

const result: Result = {
  kubernetes: 'v1.36.3',
  processes: 10,
  cores: 2,
  directly: 'all',
  minutes: { through: 18.5, direct: 12, total: 33 },
  passed: ['[sig-node] a', '[sig-node] b', '[sig-apps] c'],
  differences: [],
  betterThrough: [],
  failedBoth: [],
  skipped: [],
  again: [],
  leftOut: [],
};
const [explained = '', reason = ''] = Object.entries(DIFFERENCES)[0] ?? [];

describe('docs/conformance.md', () => {
  test('counts by area and in all', () => {
    const text = conformanceDocument(result);
    expect(text).toContain('| sig-node | 2 | 0 | 0 | 0 | 0 | 0 |');
    expect(text).toContain('| all | 3 | 0 | 0 | 0 | 0 | 0 |');
    expect(text).toContain('33 minutes');
  });

  test('gives each difference with its reason', () => {
    const text = conformanceDocument({ ...result, differences: [explained] });
    const rows = text.split('\n').filter((line) => line.startsWith('| \\[sig-'));
    expect(rows).toHaveLength(1);
    expect(rows[0]).toContain(reason);
  });

  test('names what is left out one by one, with the reason', () => {
    const leftOut = ['run', 'stop'].map((what) => `[sig-apps] Daemon set [Serial] should ${what}`);
    const text = conformanceDocument({ ...result, leftOut });
    expect(text.match(/^\| \\\[sig-apps\\\] Daemon set .*DaemonSets stay home/gm)).toHaveLength(2);
  });

  test('says when the direct run was not of all, and what needed a second run', () => {
    const text = conformanceDocument({ ...result, directly: 'failed', again: ['[sig-node] a*b'] });
    expect(text).toContain('only the specs that had failed through the virtual node ran directly');
    expect(text).toContain(String.raw`- \[sig-node\] a\*b`);
    expect(conformanceDocument(result)).not.toContain('only the specs that had failed');
  });
});

describe('the last run', () => {
  const known = new Set(
    [last.passed, last.differences, last.betterThrough, last.failedBoth, last.skipped].flat(),
  );

  test('has no difference that nobody has explained', () => {
    expect(unexplained(last, new Map(Object.entries(DIFFERENCES)))).toEqual([]);
  });

  test('knows every spec that has a reason', () => {
    expect(
      [...Object.keys(DIFFERENCES), ...Object.keys(LAB_FAILURES)].filter((name) => !known.has(name)),
    ).toEqual([]);
  });

  test('passed the tenth that is a test', () => {
    expect(TENTH.filter((name) => !last.passed.includes(name))).toEqual([]);
    expect(TENTH.length).toBeGreaterThanOrEqual(Math.floor(known.size / 10));
  });
});
