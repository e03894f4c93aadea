/** What docs/benchmarks.md is made of. */
// The lab's PKI, which some benchmarks import, stands on decorators.
import 'reflect-metadata';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { BENCHES } from '../benches.ts';
import type { DocumentParts } from './document.ts';
import { RESULT_FILE } from './result-file.ts';
import { readRuns } from './run.ts';

const bench = join(import.meta.dirname, '..');

export function storedParts(): DocumentParts {
  const files = globSync(join(bench, 'bounds', '*.md'));
  return {
    run: readRuns([RESULT_FILE]),
    defaults: new Map(BENCHES.map(({ name, parameters }) => [name, parameters])),
    introduction: readFileSync(join(bench, 'introduction.md'), 'utf8'),
    bounds: new Map(files.map((file) => [basename(file, '.md'), readFileSync(file, 'utf8')])),
  };
}
