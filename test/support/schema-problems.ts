import type { Schema } from '../../src/api/crd/schema.ts';

/**
 * What an API server would refuse in an object of ours, or drop without a word, as `path: why`. Rules in CEL and bounds of sizes
 * are left to real API servers.
 */
export function schemaProblems(value: unknown, schema: Schema | undefined, path: string): string[] {
  if (schema === undefined) return [`${path}: no such field`];
  if (schema.type !== undefined && typeOf(value, schema.type) !== schema.type) {
    return [`${path}: not of type ${schema.type}`];
  }
  if (Array.isArray(value)) return value.flatMap((item) => schemaProblems(item, schema.items, `${path}[]`));
  if (typeof value === 'object' && value !== null) return problemsOfFields(value, schema, path);
  if (schema.enum?.includes(String(value)) === false)
    return [`${path}: not one of ${schema.enum.join(', ')}`];
  const isMatch = schema.pattern === undefined || new RegExp(schema.pattern, 'u').test(String(value));
  return isMatch ? [] : [`${path}: does not match ${schema.pattern}`];
}

function problemsOfFields(value: object, schema: Schema, path: string): string[] {
  const { properties, additionalProperties, required = [] } = schema;
  return [
    ...required.filter((key) => !Object.hasOwn(value, key)).map((key) => `${path}.${key}: required`),
    ...Object.entries(value).flatMap(([key, item]) =>
      schemaProblems(item, properties?.[key] ?? additionalProperties, `${path}.${key}`),
    ),
  ];
}

function typeOf(value: unknown, wanted: Schema['type']): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value !== 'number') return value === null ? 'null' : typeof value;
  return wanted === 'integer' && Number.isInteger(value) ? 'integer' : 'number';
}
