import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { changedFiles, partsFor, WHOLE } from '../../../tools/check-plan.ts';

const partsByName = (changed: readonly string[]): Record<string, readonly string[]> =>
  Object.fromEntries(partsFor(changed).map(({ name, args }) => [name, args]));

test('changed files are formatted, changed code is linted, the rest is looked at everywhere', () => {
  const parts = partsByName(['docs/a.md', 'src/a.ts']);
  expect(parts['format']?.slice(-2)).toEqual(['docs/a.md', 'src/a.ts']);
  expect(parts['lint']).toContain('--type-aware');
  expect(parts['lint']?.slice(-1)).toEqual(['src/a.ts']);
  expect(Object.keys(parts)).toEqual([
    'format',
    'lint',
    'types',
    'types of the page',
    'generated files',
    'rooms',
  ]);
});

test('without a change no file is named to a tool, which would take that for all files', () => {
  expect(Object.keys(partsByName([]))).toEqual(['types', 'types of the page', 'generated files', 'rooms']);
  expect(Object.keys(partsByName(['docs/a.md']))).toEqual([
    'format',
    'types',
    'types of the page',
    'generated files',
    'rooms',
  ]);
});

test.each(['.oxlintrc.json', '.prettierrc.json', '.prettierignore', 'tsconfig.json', 'package-lock.json'])(
  'a change of %s concerns all files',
  (path) => {
    expect(partsFor(['src/a.ts', path])).toBe(WHOLE);
  },
);

test('the whole check remembers nothing', () => {
  const args = WHOLE.flatMap((part) => part.args);
  expect(args.filter((word) => /cache|incremental|buildinfo/i.test(word))).toEqual([]);
});

describe('what has changed', () => {
  let root: string;
  const git = (...args: string[]): void => {
    const who = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'commit.gpgsign=false'];
    execFileSync('git', [...who, ...args], { cwd: root, stdio: 'ignore' });
  };
  const write = (name: string, text: string): void => writeFileSync(join(root, name), text);

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'tributary-check-'));
    git('init', '-b', 'main');
    for (const name of ['same', 'committed', 'edited', 'gone', 'moved']) write(name, `${name}\n`);
    write('.gitignore', 'ignored\n');
    git('add', '.');
    git('commit', '-m', 'first');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  test('is what was committed, edited, moved or made since the branch began, and nothing else', () => {
    git('checkout', '-b', 'branch');
    write('committed', 'other\n');
    git('commit', '-am', 'second');
    write('edited', 'other\n');
    git('rm', 'gone');
    git('mv', 'moved', 'elsewhere');
    write('new one.ts', '');
    write('ignored', '');
    expect(changedFiles(root)).toEqual(['committed', 'edited', 'elsewhere', 'new one.ts']);
  });

  test('leaves out what others have done on the main branch since', () => {
    git('checkout', '-b', 'branch');
    write('committed', 'other\n');
    git('commit', '-am', 'second');
    git('checkout', 'main');
    write('edited', 'other\n');
    git('commit', '-am', 'third');
    git('checkout', 'branch');
    expect(changedFiles(root)).toEqual(['committed']);
  });

  test('is not known without a main branch, nor outside of a repository', () => {
    git('branch', '-m', 'trunk');
    expect(changedFiles(root)).toBeUndefined();
    rmSync(join(root, '.git'), { recursive: true });
    expect(changedFiles(root)).toBeUndefined();
  });
});
