import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

const ROOT = join(import.meta.dirname, '../..');
const ROW = /\| `(?<file>test\/[^`]+)`: "(?<name>[^"]+)"\s*\|$/u;

const rows = readFileSync(join(ROOT, 'docs/security.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| (?:Stranger|Guests?|Peer|Provider|Pod|Anybody) /u.test(line));

test('the table of threats is there', () => {
  expect(rows.length).toBeGreaterThan(35);
});

test.each(rows)('a test that exists shows: %s', (row) => {
  const { file = '', name = '' } = ROW.exec(row)?.groups ?? {};
  expect({ row, names: file !== '' && name !== '' }).toEqual({ row, names: true });
  expect({ file, exists: existsSync(join(ROOT, file)) }).toEqual({ file, exists: true });
  expect(readFileSync(join(ROOT, file), 'utf8')).toContain(`'${name}'`);
});
