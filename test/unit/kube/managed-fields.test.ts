import { describe, expect, it, test } from '@jest/globals';

import { isFields } from '../../../src/lib/fields.ts';
import { parseObjects } from '../../../src/kube/managed-fields.ts';
import { fc } from '../../support/property.ts';

const FIELDS = {
  manager: 'kubectl',
  operation: 'Update',
  apiVersion: 'v1',
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } }, 'f:spec': { 'k:{"type":"a"}': {} } },
};
const METADATA = { name: 'a', uid: '1', managedFields: [FIELDS, { ...FIELDS, subresource: 'status' }] };
const POD = { kind: 'Pod', apiVersion: 'v1', metadata: METADATA, spec: { containers: [{ name: 'a' }] } };

/** What is left of `metadata.managedFields` after reading one object by itself: nothing, a mark, or all. */
const read = (object: unknown): unknown => {
  const value = parseObjects(JSON.stringify(object), (one) => [one]);
  return isFields(value) && isFields(value['metadata']) ? value['metadata']['managedFields'] : undefined;
};

const MARK = 0;

describe('managedFields are not read', () => {
  const inList = (metadata: object): unknown => {
    const text = JSON.stringify({
      kind: 'List',
      items: [{ metadata, spec: {} }, { metadata }, { metadata }],
    });
    const list = parseObjects(text, (value) => (value as { items: unknown[] }).items) as {
      items: { metadata: { managedFields: unknown } }[];
    };
    return list.items.map(({ metadata: { managedFields } }) => managedFields);
  };

  it.each<[string, unknown]>([
    ['of an object with a spec', read(POD)],
    ['as the last of all', read({ kind: 'PartialObjectMetadata', metadata: METADATA })],
    [
      'among other metadata, as in objects whose keys are sorted',
      read({ metadata: { ...METADATA, uid: '2', zone: 'b' } }),
    ],
    ['before a null', read({ metadata: { ...METADATA, x: null } })],
    ['before a key without a letter', read({ ...POD, _x: { a: [{}] }, status: {} })],
  ])('%s', (_what, found) => {
    expect(found).toBe(MARK);
  });

  it('of all objects of a list', () => {
    expect(inList(METADATA)).toStrictEqual([MARK, MARK, MARK]);
  });
});

describe('where it is not certain where they end, all is read:', () => {
  it.each<[string, object]>([
    ['brackets in a name', { manager: 'x}]},"spec":{' }],
    ['a name that ends like a list', { manager: 'x}]},' }],
    ['a key that ends like a list', { fieldsV1: { 'f:x}],': {} } }],
  ])('%s', (_what, fields) => {
    expect(read({ ...POD, metadata: { ...METADATA, managedFields: [fields] } })).toStrictEqual([fields]);
  });
});

describe('a field of that name elsewhere is read', () => {
  const own = { managedFields: [{ a: 'b' }] };

  it.each<[string, object]>([
    ['within', { ...POD, spec: { template: { metadata: own } } }],
    [
      'within, of an object that has none itself',
      { metadata: { name: 'a' }, spec: { template: { metadata: own } } },
    ],
    ['before metadata', { data: own, metadata: METADATA }],
    ['in a text', { data: { text: JSON.stringify(POD) }, metadata: { name: 'a' } }],
  ])('%s', (_what, object) => {
    expect(parseObjects(JSON.stringify(object), (one) => [one])).toStrictEqual(object);
  });
});

test.each(['', '{', '{"metadata":{"managedFields":[{', '{"metadata":{"managedFields":[{}]},"a"'])(
  'what is no JSON is refused: %s',
  (text) => {
    expect(() => parseObjects(text, (one) => [one])).toThrow(SyntaxError);
  },
);

/** Texts that look like the places where a list begins and ends. */
const odd = fc
  .array(
    fc.constantFrom('}', ']', '{', '[', ',', '"', ':', '\\', 'a', '"managedFields":[{', '}]},"spec":{'),
    {
      maxLength: 6,
    },
  )
  .map((parts) => parts.join(''));
const tree = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    odd,
    fc.integer(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(odd, fc.constantFrom('managedFields', 'metadata', 'spec')), tie('value'), {
      maxKeys: 3,
    }),
  ),
})).value;
/** Of FieldsV1: objects in objects. */
const managed = fc.array(
  fc.record({
    manager: odd,
    fieldsV1: fc.dictionary(odd, fc.dictionary(odd, fc.constant({}), { maxKeys: 2 }), { maxKeys: 3 }),
  }),
  { maxLength: 3 },
);
const object = fc
  .record(
    {
      before: tree,
      labels: tree,
      managedFields: managed,
      uid: odd,
      odds: fc.dictionary(odd, tree),
      after: tree,
    },
    { requiredKeys: [] },
  )
  .map(({ before, labels, managedFields, uid, odds, after }) => ({
    ...(before !== undefined && { data: before }),
    metadata: {
      ...(labels !== undefined && { labels }),
      ...(managedFields !== undefined && { managedFields }),
      ...(uid !== undefined && { uid }),
    },
    ...odds,
    ...(after !== undefined && { spec: after }),
  }));

const without = (value: unknown): unknown => {
  if (!isFields(value) || !isFields(value['metadata'])) return value;
  const { managedFields: _, ...metadata } = value['metadata'];
  return { ...value, metadata };
};

test('nothing else is lost, whatever the objects hold', () => {
  fc.assert(
    fc.property(fc.array(object, { maxLength: 3 }), (objects) => {
      const text = JSON.stringify(objects);
      const found = parseObjects(text, (value) => value as unknown[]) as unknown[];
      expect(found.map(without)).toStrictEqual((JSON.parse(text) as unknown[]).map(without));
    }),
    { numRuns: 2_000 },
  );
});
