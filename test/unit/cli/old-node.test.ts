import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

import { oldNodeMessage } from '../../../src/cli/old-node.ts';

test.each(['20.20.2', '24.11.1', '18.0.0'])(
  'Node.js %s is too old, and the message says what to do',
  (version) => {
    expect(oldNodeMessage(version, '/usr/bin/node')).toBe(
      `tributary needs Node.js 24.12 or newer, and /usr/bin/node is ${version}. Install a newer one, or put it first in PATH.\n`,
    );
  },
);

test.each(['24.12.0', '24.20.1', '26.0.0', process.versions.node])('Node.js %s will do', (version) => {
  expect(oldNodeMessage(version, '/usr/bin/node')).toBeUndefined();
});

test('the package asks for the same', () => {
  const manifest = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8')) as {
    engines: { node: string };
  };
  const [, least = ''] = /^>=(\d+\.\d+)$/u.exec(manifest.engines.node) ?? [];
  const [major = 0, minor = 0] = least.split('.').map(Number);
  expect(oldNodeMessage(`${least}.0`, '')).toBeUndefined();
  expect(oldNodeMessage(`${major}.${minor - 1}.9`, '')).toContain(least);
});
