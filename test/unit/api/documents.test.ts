import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { parseAllDocuments } from 'yaml';
import { API_VERSION } from '../../../src/api/virtual-node.ts';
import { DEFINITIONS } from '../../../src/api/crd/index.ts';
import type { Schema } from '../../../src/api/crd/schema.ts';

const text = readFileSync(new URL('../../../docs/peering.md', import.meta.url), 'utf8');
/** A piece without a kind is more of what a SharingPolicy may say. */
const examples = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)]
  .flatMap(([, yaml = '']) => parseAllDocuments(yaml))
  .map((document) => document.toJS() as { apiVersion?: string; kind?: string; spec: object })
  .filter(({ apiVersion = API_VERSION }) => apiVersion === API_VERSION)
  .map(({ kind = 'SharingPolicy', spec }) => ({ kind, spec }));

/** Paths that the schema does not know; the API server would drop them without a word. */
function unknownFields(value: unknown, schema: Schema | undefined, path: string): string[] {
  if (typeof value !== 'object' || value === null) return schema === undefined ? [path] : [];
  if (Array.isArray(value)) return value.flatMap((item) => unknownFields(item, schema?.items, `${path}[]`));
  const { properties, additionalProperties } = schema ?? {};
  return Object.entries(value).flatMap(([key, item]) =>
    unknownFields(item, properties?.[key] ?? additionalProperties, `${path}.${key}`),
  );
}

test('examples of documents have only fields that there are', () => {
  expect(examples.map(({ kind }) => kind)).toEqual([
    'SearchDomain',
    'SharingPolicy',
    'AcceptancePolicy',
    'SharingPolicy',
  ]);
  for (const { kind, spec } of examples) {
    const definition = DEFINITIONS.find(({ type }) => type.kind === kind);
    expect(unknownFields(spec, definition?.schema.properties?.['spec'], kind)).toEqual([]);
  }
  const { schema } = DEFINITIONS.find(({ type }) => type.kind === 'SharingPolicy') ?? {};
  expect(unknownFields({ peers: { all: true } }, schema?.properties?.['spec'], 'x')).toEqual(['x.peers.all']);
});
