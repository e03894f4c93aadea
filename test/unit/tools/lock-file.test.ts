import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';

interface Locked {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

// `npm ci` refuses a lock file without them, and npm writes such a file where a registry lacks some of them.
test('package-lock.json names the optional packages of every platform', () => {
  const file = join(import.meta.dirname, '..', '..', '..', 'package-lock.json');
  const { packages } = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Locked> };
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies }]) =>
    Object.keys(optionalDependencies ?? {}).filter(
      (name) => !(`node_modules/${name}` in packages) && !(`${path}/node_modules/${name}` in packages),
    ),
  );
  expect(missing).toEqual([]);
});
