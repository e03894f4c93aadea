import { expect, test } from '@jest/globals';

import { isInstalled, type LockFile } from '../../../tools/installed.ts';

const manifest = { dependencies: { a: '^1.0.0' }, devDependencies: {} };
const a = { version: '1.0.1', integrity: 'sha512-a' };
const wanted: LockFile = {
  packages: {
    '': manifest,
    'node_modules/a': a,
    'node_modules/for-arm': { version: '1.0.0', integrity: 'sha512-b', optional: true },
  },
};

test.each<[string, LockFile, typeof manifest, boolean]>([
  ['what npm ci has installed', { packages: { 'node_modules/a': a } }, manifest, true],
  ['nothing', {}, manifest, false],
  ['another version', { packages: { 'node_modules/a': { ...a, version: '1.0.0' } } }, manifest, false],
  ['more', { packages: { 'node_modules/a': a, 'node_modules/c': a } }, manifest, false],
  [
    'for another package.json',
    { packages: { 'node_modules/a': a } },
    { ...manifest, dependencies: { a: '^2.0.0' } },
    false,
  ],
])('%s', (_what, installed, of, expected) => {
  expect(isInstalled(wanted, installed, of)).toBe(expected);
});
