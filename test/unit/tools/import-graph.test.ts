import { expect, test } from '@jest/globals';

import { circlesOf, importsIn, reachedFrom, type Import } from '../../../tools/import-graph.ts';

const text = `
/** import { no } from './in-a-comment.ts'; */
import { readFileSync } from 'node:fs';
import './for-its-effect.ts';
import { a, type B } from '../lib/mixed.ts';
import type {
  C,
  D,
} from './types.ts';
import { type E, type F } from './only-types.ts';
import * as all from './all.ts';
export { g } from './passed-on.ts';
export type { H } from '../../api/passed-on-type.ts';

export const from = 'nowhere';
const later = await import('./later.ts');
`;

test('imports are read with their targets, and imports of types are told apart', () => {
  const found = importsIn('src/room/file.ts', text).map(({ from, to, isType }) => [from, to, isType]);
  expect(found).toEqual(
    [
      ['src/room/for-its-effect.ts', false],
      ['src/lib/mixed.ts', false],
      ['src/room/types.ts', true],
      ['src/room/only-types.ts', true],
      ['src/room/all.ts', false],
      ['src/room/passed-on.ts', false],
      ['api/passed-on-type.ts', true],
      ['src/room/later.ts', false],
    ].map((rest) => ['src/room/file.ts', ...rest]),
  );
});

const arrows = (...pairs: string[]): Import[] =>
  pairs.map((pair) => ({ from: pair.charAt(0), to: pair.charAt(1), isType: false }));

test.each([
  ['a chain has none', ['ab', 'bc', 'ac'], []],
  ['two files', ['ab', 'ba', 'bc'], [['a', 'b']]],
  ['a file that imports itself', ['aa', 'ab'], [['a']]],
  ['one of three, reached from outside', ['xa', 'ab', 'bc', 'ca', 'cd'], [['a', 'b', 'c']]],
  [
    'two that are joined one way',
    ['ab', 'ba', 'bc', 'cd', 'dc'],
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  ],
  ['two that share a file are one', ['ab', 'ba', 'bc', 'cb'], [['a', 'b', 'c']]],
])('circles: %s', (_name, pairs, expected) => {
  expect(circlesOf(arrows(...pairs))).toEqual(expected);
});

test('a circle of types is a circle', () => {
  expect(circlesOf(arrows('ab', 'ba').map((arrow) => ({ ...arrow, isType: true })))).toEqual([['a', 'b']]);
});

test('what is reached goes through each file once and not through what is left out', () => {
  const imports = arrows('ab', 'bc', 'ca', 'cx', 'xy', 'dz');
  expect(reachedFrom('a', imports)).toEqual(['a', 'b', 'c', 'x', 'y']);
  expect(reachedFrom('a', imports, (path) => path === 'x')).toEqual(['a', 'b', 'c']);
});
