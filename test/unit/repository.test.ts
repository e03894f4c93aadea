/** What is agreed on for the whole repository and no tool checks. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { expect, test } from '@jest/globals';

import { VERSION } from '../../src/version.ts';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const find = (...patterns: string[]): string[] => globSync(patterns, { cwd: root }).toSorted();

const sources = find('src/**/*.ts');
const allCode = [
  ...sources,
  ...find('{test,lab,tools,bench,faults}/**/*.{ts,mjs,sh}', 'Makefile', 'Dockerfile'),
];
const documents = find('*.md', '{docs,examples,src,test,lab,faults}/**/*.md');

/** The lines, as `path:number`, that match. */
const linesWith = (paths: readonly string[], pattern: RegExp): string[] =>
  paths.flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}`] : [])),
  );

test('the version is the same everywhere', () => {
  expect((JSON.parse(read('package.json')) as { version: string }).version).toBe(VERSION);
  expect((JSON.parse(read('package-lock.json')) as { version: string }).version).toBe(VERSION);
});

test('entry points begin by saying what they are', () => {
  const entries = find(
    'src/main.ts',
    'src/agent/roles.ts',
    'src/**/index.ts',
    '{lab,tools,faults}/**/main.ts',
  );
  const silent = entries.filter((path) => !/^(#!.*\n)?\/\*\*/.test(read(path)));
  expect(silent).toEqual([]);
});

test('no source file is longer than 400 lines', () => {
  const long = sources.filter((path) => read(path).split('\n').length > 400);
  expect(long).toEqual([]);
});

test('errors are told apart by code, not by text', () => {
  expect(linesWith(sources, /\.message\.(includes|startsWith|match)\(/)).toEqual([]);
});

test('what is to be done has an issue', () => {
  const word = new RegExp(
    `\\b(${['TO', 'FIX'].map((start, at) => start + ['DO', 'ME'][at]).join('|')})\\b(?!\\(#\\d+\\))`,
  );
  expect(linesWith([...allCode, ...documents], word)).toEqual([]);
});

test('links between documents lead somewhere', () => {
  const broken = documents.flatMap((path) =>
    [...read(path).matchAll(/(?:\]\(|src(?:set)?=")([^)"\s#]+)(?:#[^)"]*)?[)"]/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(root, dirname(path), target)))
      .map((target) => `${path}: ${target}`),
  );
  expect(broken).toEqual([]);
});

/** The names of its sections, as links use them. */
function sectionsOf(path: string): ReadonlySet<string> {
  const found = new Map<string, number>();
  const titles = read(path)
    .replaceAll(/^\s*```.*?^\s*```/gms, '')
    .matchAll(/^#+\s+(.*)$/gm);
  const names = [...titles].map(([, title = '']) => {
    const text = title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .trim()
      .toLowerCase();
    const name = text.replaceAll(/[^\w\- ]/g, '').replaceAll(' ', '-');
    const before = found.get(name) ?? 0;
    found.set(name, before + 1);
    return before === 0 ? name : `${name}-${before}`;
  });
  return new Set(names);
}

test('links between documents lead to sections that there are', () => {
  const broken = documents.flatMap((path) =>
    [...read(path).matchAll(/\]\((?![a-z]+:)([^)\s#]*)#([^)\s]+)\)/g)]
      .map(([, target = '', section = '']) => ({
        target: target === '' ? path : join(dirname(path), target),
        section,
      }))
      .filter(({ target, section }) => target.endsWith('.md') && !sectionsOf(target).has(section))
      .map(({ target, section }) => `${path}: ${target}#${section}`),
  );
  expect(broken).toEqual([]);
});

test('files that documents name exist', () => {
  const named = documents.flatMap((path) =>
    [
      ...read(path).matchAll(
        /(?<![\w./-])(?:src|lab|bench|faults|test|tools|docs|deploy|examples)\/[\w./-]*[\w/]/g,
      ),
    ]
      .map(([target]) => target)
      .filter((target) => !existsSync(join(root, target)))
      .map((target) => `${path}: ${target}`),
  );
  expect(named).toEqual([]);
});

test('files that the README of a room names are in that room, or named from the root', () => {
  const isThere = (folder: string, target: string): boolean =>
    existsSync(join(root, target)) || find(join(folder, '**', target)).length > 0;
  const named = find('{src,test,lab,faults}/**/README.md').flatMap((path) =>
    [...read(path).matchAll(/`((?!tributary\.dev)[\w./-]+(?:\.ts|\.txt|\/))`/g)]
      .map(([, target = '']) => target)
      .filter((target) => !isThere(dirname(path), target))
      .map((target) => `${path}: ${target}`),
  );
  expect(named).toEqual([]);
});

test('decisions are numbered without a gap and listed', () => {
  const files = find('docs/decisions/0*.md').map((path) => path.slice('docs/decisions/'.length));
  expect(files.map((file) => Number(file.slice(0, 4)))).toEqual(files.map((_file, index) => index + 1));
  const list = read('docs/decisions/README.md');
  expect(files.filter((file) => !list.includes(`](${file})`))).toEqual([]);
});
