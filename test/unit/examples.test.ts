import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { expect, test } from '@jest/globals';

import { DEFINITIONS } from '../../src/api/crd/index.ts';
import { API_VERSION } from '../../src/api/virtual-node.ts';
import { EXAMPLES, ROOT } from '../support/examples.ts';
import { schemaProblems } from '../support/schema-problems.ts';
import { commandsIn, shellLines } from './cli/support/shell-lines.ts';

/** What can be said of `examples/` without a cluster; test/integration/examples.test.ts applies them. */

const paths = EXAMPLES.map(({ path }) => path);
const readmes = globSync('examples/**/README.md', { cwd: ROOT }).toSorted();
const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** Everything of that name, however deep. */
function valuesOf(name: string, value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [
    ...(key === name ? [item] : []),
    ...valuesOf(name, item),
  ]);
}

const imagesOf = (objects: unknown): string[] =>
  valuesOf('image', objects).filter((image) => typeof image === 'string');

/** What its README tells people to run. */
const imagesTyped = (readme: string): string[] =>
  readmes.includes(readme)
    ? shellLines(text(readme)).flatMap(({ line }) =>
        [...line.matchAll(/--image[ =](\S+)/g)].map(([, image = '']) => image),
      )
    : [];

test('the examples are those that documents speak of', () => {
  const folders = ['edge-site', 'gpu-queue', 'laptop', 'stateful-set', 'web-shop'];
  expect(paths.filter((path) => path.split('/').length === 2)).toEqual(
    folders.map((name) => `examples/${name}`),
  );
});

test.each(EXAMPLES)('$path lists the files of its folder, and no others', ({ kustomization, files }) => {
  expect(kustomization.resources.toSorted()).toEqual(files);
});

test.each(EXAMPLES)('$path has only objects that our definitions take', ({ objects }) => {
  const problems = objects
    .filter(({ apiVersion }) => apiVersion === API_VERSION)
    .flatMap(({ kind, spec }) => {
      const schema = DEFINITIONS.find(({ type }) => type.kind === kind)?.schema;
      return schemaProblems(spec, schema?.properties?.['spec'], kind);
    });
  expect(problems).toEqual([]);
});

test('images are public, have a version, and are listed', () => {
  const used = EXAMPLES.flatMap(({ path, objects }) =>
    [...imagesOf(objects), ...imagesTyped(`${path}/README.md`)].map((image) => ({
      image,
      path: path.slice('examples/'.length),
    })),
  );
  const isPinned = /^(?:docker\.io|registry\.k8s\.io)\/[a-z0-9/-]+:\d[\w.-]*$/;
  expect(used.filter(({ image }) => !isPinned.test(image))).toEqual([]);
  const folders = Map.groupBy(used, ({ image }) => image.slice(0, image.lastIndexOf(':')));
  const listed = text('examples/README.md').matchAll(/^\| `(\S+\/\S+)` +\| (.*?) +\|$/gm);
  expect(new Map(listed.map(([, image, users]) => [image, users]))).toEqual(
    new Map([...folders].map(([image, of]) => [image, [...new Set(of.map(({ path }) => path))].join(', ')])),
  );
});

test('the index leads to each folder, which says what it is', () => {
  const index = text('examples/README.md');
  const folders = readmes.map((path) => dirname(path)).filter((folder) => folder !== 'examples');
  expect(folders).toEqual(paths.filter((path) => path.split('/').length === 2));
  const missing = folders.filter((folder) => !index.includes(`](${folder.slice('examples/'.length)})`));
  expect(missing).toEqual([]);
});

/** The folders that documents tell people to give to `kubectl VERB -k`. */
function kustomized(verb: string, documents: readonly string[]): string[] {
  const calls = documents.flatMap((path) => shellLines(text(path)).flatMap(({ line }) => commandsIn(line)));
  const folders = calls
    .filter(([program, ...words]) => program === 'kubectl' && words.includes(verb) && words.includes('-k'))
    .map((words) => words[words.indexOf('-k') + 1] ?? '');
  return [...new Set(folders)].toSorted();
}

test('documents apply and delete each example, and name no folder that is not there', () => {
  expect(kustomized('apply', readmes)).toEqual(paths);
  expect(kustomized('delete', readmes)).toEqual(paths);
  const others = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT });
  const named = ['apply', 'delete'].flatMap((verb) => kustomized(verb, others));
  expect(named.filter((path) => !existsSync(join(ROOT, path, 'kustomization.yaml')))).toEqual([]);
});

test('what is wrong with an object would be found', () => {
  const { schema } = DEFINITIONS.find(({ type }) => type.kind === 'SharingPolicy') ?? {};
  const spec = { peers: { all: true }, approval: 'Perhaps', sharePercent: '5', limits: { cpu: 'much' } };
  expect(schemaProblems({ spec }, schema, 'x')).toEqual([
    'x.spec.peers.all: no such field',
    'x.spec.approval: not one of Automatic, Manual, Token',
    'x.spec.sharePercent: not of type integer',
    expect.stringContaining('x.spec.limits.cpu: does not match'),
  ]);
  expect(schemaProblems({ spec: {} }, schema, 'x')).toEqual(['x.spec.peers: required']);
});
