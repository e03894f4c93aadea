import { expect, test } from '@jest/globals';
import { deepEqual } from '../../../src/lib/equality.ts';
import { mergePatchOf } from '../../../src/lib/merge-patch.ts';
import { mergePatch } from '../../support/fake-api/patch.ts';
import { fc } from '../../support/property.ts';

test.each([
  [{}, {}, undefined],
  [{ a: 1 }, { a: 1, b: undefined }, undefined],
  [{ a: 1 }, { a: 2 }, { a: 2 }],
  [{ a: 1 }, {}, { a: null }],
  [{ a: { b: 1, c: 2 } }, { a: { b: 1 } }, { a: { c: null } }],
  [{ a: [1, 2] }, { a: [1] }, { a: [1] }],
  [{}, { a: { b: undefined, c: 1 } }, { a: { c: 1 } }],
  [{ a: 'x' }, { a: { b: 1 } }, { a: { b: 1 } }],
])('from %j to %j: %j', (before, after, patch) => {
  expect(mergePatchOf(before, after)).toEqual(patch);
});

test('applied to what was, every patch makes what is wanted', () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
  const key = fc.constantFrom('a', 'b', 'constructor', 'toString');
  const tree = fc.dictionary(
    key,
    fc.oneof(leaf, fc.dictionary(key, fc.oneof(leaf, fc.dictionary(key, leaf)))),
  );
  fc.assert(
    fc.property(tree, tree, (before, after) => {
      const patch = mergePatchOf(before, after);
      const made = patch === undefined ? before : (mergePatch(before, patch) as object);
      expect(deepEqual(made, after)).toBe(true);
    }),
    { numRuns: 500 },
  );
});
