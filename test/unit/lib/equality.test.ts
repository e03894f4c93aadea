import { expect, test } from '@jest/globals';
import { deepEqual, jsonContains } from '../../../src/lib/equality.ts';

const hostile: unknown = JSON.parse('{"__proto__":{"a":1}}');

test.each<[string, unknown, unknown, boolean]>([
  ['scalars', 1, 1, true],
  ['a string and its number', '1', 1, false],
  ['null and absent', { a: null }, {}, false],
  ['undefined and absent', { a: undefined, b: 1 }, { b: 1 }, true],
  ['absent and undefined', {}, { a: undefined }, true],
  ['undefined in place of another key', { a: undefined, b: 1 }, { a: 1, b: undefined }, false],
  ['another order of keys', { a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 2 }, a: 1 }, true],
  ['another order of items', [1, 2], [2, 1], false],
  ['a longer list', [1], [1, 2], false],
  ['a list and an object', [], {}, false],
  ['null and an object', null, {}, false],
  ['deep difference', { a: [{ b: 1 }] }, { a: [{ b: 2 }] }, false],
  ['an own __proto__ and none', hostile, {}, false],
  ['a key of the prototype', { constructor: Object }, {}, false],
  ['an extra key', { a: 1 }, { a: 1, b: 2 }, false],
])('%s', (_name, a, b, equal) => {
  expect(deepEqual(a, b)).toBe(equal);
  expect(deepEqual(b, a)).toBe(equal);
});

test('an object that has all of the manifest is as wanted, whatever else it has', () => {
  const wanted = { spec: { hard: { cpu: '1' }, list: [{ a: 1 }] } };
  expect(
    jsonContains({ spec: { hard: { cpu: '1', more: '2' }, list: [{ a: 1, b: 2 }] }, status: {} }, wanted),
  ).toBe(true);
  for (const other of [
    undefined,
    null,
    'x',
    {},
    { spec: { hard: { cpu: '2' }, list: [{ a: 1 }] } },
    { spec: { hard: { cpu: '1' }, list: [] } },
    { spec: { hard: { cpu: '1' }, list: [{ a: 1 }, { a: 1 }] } },
    { spec: { hard: [], list: [{ a: 1 }] } },
  ]) {
    expect(jsonContains(other, wanted)).toBe(false);
  }
  expect(jsonContains({}, { constructor: {} })).toBe(false);
});
