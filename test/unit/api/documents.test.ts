import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { API_VERSION } from '../../../src/api/virtual-node.ts';
import { DEFINITIONS } from '../../../src/api/crd/index.ts';
import type { Schema } from '../../../src/api/crd/schema.ts';
import { schemaProblems } from '../../support/schema-problems.ts';

const text = readFileSync(new URL('../../../docs/peering.md', import.meta.url), 'utf8');
/** A piece without a kind is more of what a SharingPolicy may say. */
const examples = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)]
  .flatMap(([, yaml = '']) => parseAllDocuments(yaml))
  .map((document) => document.toJS() as { apiVersion?: string; kind?: string; spec: object })
  .filter(({ apiVersion = API_VERSION }) => apiVersion === API_VERSION)
  .map(({ kind = 'SharingPolicy', spec }) => ({ kind, spec }));

/** A piece says only a part. */
const problems = (spec: unknown, schema: Schema | undefined, path: string): string[] =>
  schemaProblems(spec, schema, path).filter((problem) => !problem.endsWith(': required'));

test('examples of documents have only fields and values that there are', () => {
  expect(examples.map(({ kind }) => kind)).toEqual([
    'SearchDomain',
    'SharingPolicy',
    'AcceptancePolicy',
    'SharingPolicy',
    'AcceptancePolicy',
  ]);
  for (const { kind, spec } of examples) {
    const definition = DEFINITIONS.find(({ type }) => type.kind === kind);
    expect(problems(spec, definition?.schema.properties?.['spec'], kind)).toEqual([]);
  }
  const { schema } = DEFINITIONS.find(({ type }) => type.kind === 'SharingPolicy') ?? {};
  expect(problems({ peers: { all: true } }, schema?.properties?.['spec'], 'x')).toEqual([
    'x.peers.all: no such field',
  ]);
});
