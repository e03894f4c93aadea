import { expect, test } from '@jest/globals';
import { customResourceDefinitions, DEFINITIONS } from '../../../src/api/crd/index.ts';
import { labelSelector } from '../../../src/api/crd/label-selector.ts';
import type { Schema } from '../../../src/api/crd/schema.ts';
import { virtualNodeDefinition } from '../../../src/api/crd/virtual-node.ts';

/** Every schema with its path. */
function* walk(schema: Schema, path = ''): Generator<[string, Schema]> {
  yield [path, schema];
  for (const [key, child] of Object.entries(schema.properties ?? {})) yield* walk(child, `${path}.${key}`);
  if (schema.items) yield* walk(schema.items, `${path}[]`);
  if (schema.additionalProperties) yield* walk(schema.additionalProperties, `${path}{}`);
}
const all = DEFINITIONS.flatMap(({ type, schema }) => [...walk(schema, type.kind)]);

test('every field has a description in whole sentences', () => {
  const without = all.filter(([, { description }]) => !/^[A-Z].*[.]$/s.test(description));
  expect(without.map(([path]) => path)).toEqual([]);
});

test('every list and map is bounded, and so the cost of the rules on them', () => {
  const unbounded = all.filter(
    ([, schema]) =>
      (schema.items !== undefined && schema.maxItems === undefined) ||
      (schema.additionalProperties !== undefined && schema.maxProperties === undefined),
  );
  expect(unbounded.map(([path]) => path)).toEqual([]);
});

test('every required field exists', () => {
  for (const [path, { required = [], properties = {} }] of all) {
    expect({ path, missing: required.filter((name) => !(name in properties)) }).toEqual({
      path,
      missing: [],
    });
  }
});

test.each([
  ['4', true],
  ['3500m', true],
  ['8Gi', true],
  ['1e3', true],
  ['.5', true],
  ['-1', false],
  ['+1', false],
  ['1GiB', false],
  ['NaN', false],
  ['', false],
  ['1 ', false],
  ['__proto__', false],
])('quantity %j: %s', (text, good) => {
  const pattern =
    virtualNodeDefinition.schema.properties?.['spec']?.properties?.['resources']?.additionalProperties
      ?.pattern;
  expect(new RegExp(pattern ?? '').test(text)).toBe(good);
});

test.each([
  ['region', true],
  ['tributary.dev/cluster', true],
  ['beta.kubernetes.io/arch', true],
  ['_x', false],
  ['bad key', false],
  ['a/b/c', false],
  ['/b', false],
  ['Upper.case/b', false],
  ["it's", false],
  ['', false],
])('key of a label in a selector %j: %s', (text, good) => {
  const { matchLabels, matchExpressions } = labelSelector('Which.').properties ?? {};
  const pattern = matchExpressions?.items?.properties?.['key']?.pattern ?? '';
  expect(new RegExp(pattern).test(text)).toBe(good);
  const [rule] = matchLabels?.['x-kubernetes-validations'] ?? [];
  expect(rule?.rule).toBe(`self.all(key, key.matches(r'${pattern}'))`);
});

test('every text that rules or people look at is bounded', () => {
  const unbounded = all.filter(
    ([, { type, maxLength, enum: values, format }]) =>
      type === 'string' && maxLength === undefined && values === undefined && format === undefined,
  );
  expect(unbounded.map(([path]) => path)).toEqual([]);
});

test('every manifest serves status as a subresource, under its short name', () => {
  const manifest = (plural: string, kind: string, shortName: string, scope = 'Cluster'): object => ({
    metadata: { name: `${plural}.tributary.dev` },
    spec: {
      scope,
      names: { kind, plural, shortNames: [shortName], categories: ['tributary'] },
      versions: [{ name: 'v1alpha1', served: true, storage: true, subresources: { status: {} } }],
    },
  });
  expect(customResourceDefinitions()).toMatchObject([
    manifest('virtualnodes', 'VirtualNode', 'vn'),
    manifest('foreignclusters', 'ForeignCluster', 'fc'),
    manifest('searchdomains', 'SearchDomain', 'sd'),
    manifest('sharingpolicies', 'SharingPolicy', 'sp'),
    manifest('acceptancepolicies', 'AcceptancePolicy', 'ap'),
    manifest('peeringrequests', 'PeeringRequest', 'pr'),
    manifest('advertisements', 'Advertisement', 'adv'),
    manifest('tunnels', 'Tunnel', 'tun'),
    manifest('namespaceoffloadings', 'NamespaceOffloading', 'nso', 'Namespaced'),
    manifest('clustermodes', 'ClusterMode', 'cmode'),
    manifest('guestnetworkpolicies', 'GuestNetworkPolicy', 'gnp', 'Namespaced'),
  ]);
});
