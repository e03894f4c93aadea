/** docs/reference/kinds.md: the fields of our kinds, from the schemas that the API server enforces. */
import { DEFINITIONS } from '../../src/api/crd/index.ts';
import type { Definition } from '../../src/api/crd/definition.ts';
import type { Schema } from '../../src/api/crd/schema.ts';

const cell = (text: string): string =>
  text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;');

function typeOf(schema: Schema): string {
  if (schema['x-kubernetes-int-or-string'] === true || schema.anyOf !== undefined) return 'integer or string';
  if (schema.type === 'array' && schema.items) return `list of ${typeOf(schema.items)}`;
  if (schema.type === 'object' && schema.additionalProperties)
    return `map of ${typeOf(schema.additionalProperties)}`;
  return schema.format === 'date-time' ? 'time' : (schema.type ?? 'any');
}

/** What the API server checks besides the type. */
function boundsOf(schema: Schema): string {
  const { minimum, maximum, maxItems, maxLength, maxProperties } = schema;
  return [
    ...(schema.enum ? [schema.enum.map((word) => `\`${word}\``).join(', ')] : []),
    ...(schema.default === undefined ? [] : [`default \`${JSON.stringify(schema.default)}\``]),
    ...(minimum === undefined ? [] : [`from ${minimum}`]),
    ...(maximum === undefined ? [] : [`to ${maximum}`]),
    ...(maxItems === undefined ? [] : [`at most ${maxItems} items`]),
    ...(maxProperties === undefined ? [] : [`at most ${maxProperties} keys`]),
    ...(maxLength === undefined ? [] : [`at most ${maxLength} characters`]),
  ].join('; ');
}

interface Field {
  path: string;
  schema: Schema;
  isRequired: boolean;
}

/** Conditions are alike everywhere: one line is enough. */
function fieldsOf(schema: Schema, path: string): Field[] {
  const required = schema.required ?? [];
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, child]) => [
    { path: `${path}.${name}`, schema: child, isRequired: required.includes(name) },
    ...(name === 'conditions' ? [] : fieldsOf(child, `${path}.${name}`)),
  ]);
  const { items, additionalProperties } = schema;
  return [
    ...own,
    ...(items ? fieldsOf(items, `${path}[]`) : []),
    ...(additionalProperties ? fieldsOf(additionalProperties, `${path}.*`) : []),
  ];
}

const row = ({ path, schema, isRequired }: Field): string =>
  `| \`${path}\`${isRequired ? ' (required)' : ''} | ${typeOf(schema)} | ${cell(boundsOf(schema))} | ${cell(schema.description)} |`;

function rulesOf(schema: Schema): string[] {
  const children = [...Object.values(schema.properties ?? {}), schema.items, schema.additionalProperties];
  return [
    ...(schema['x-kubernetes-validations'] ?? []).map(({ message }) => message),
    ...children.flatMap((child) => (child ? rulesOf(child) : [])),
  ];
}

function section({ type, shortNames, schema, columns }: Definition): string {
  const parts = (['spec', 'status'] as const).flatMap((part) => {
    const child = schema.properties?.[part];
    if (child === undefined) return [];
    const rows = fieldsOf(child, part).map(row);
    return [
      `${cell(child.description)}\n\n| field | type | bounds | meaning |\n| --- | --- | --- | --- |\n${rows.join('\n')}`,
    ];
  });
  const rules = rulesOf(schema);
  const names =
    shortNames.length === 0 ? '' : `, short ${shortNames.map((name) => `\`${name}\``).join(', ')}`;
  return `## ${type.kind}

\`${type.group}/${type.version}\`, ${type.namespaced ? 'in a namespace' : 'for the whole cluster'}: \`kubectl get ${type.plural}\`${names}.

${cell(schema.description)}

Columns of \`kubectl get\`: ${columns.map(({ name }) => name).join(', ')}.

${parts.join('\n\n')}
${rules.length === 0 ? '' : `\nThe API server also refuses what breaks one of these:\n\n${rules.map((message) => `- ${cell(message)}`).join('\n')}\n`}`;
}

export const kindsDocument = (): string => `<!-- Made by tools/generate.ts from src/api/crd. -->

# Kinds

The kinds of Tributary with all their fields, as \`kubectl explain KIND --recursive\` shows them. People write \`spec\`; the
program writes \`status\`. [Objects](../objects.md) says who writes which object.

${DEFINITIONS.map(({ type: { kind } }) => `- [${kind}](#${kind.toLowerCase()})`).join('\n')}

${DEFINITIONS.map(section).join('\n')}`;
