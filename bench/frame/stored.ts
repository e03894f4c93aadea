/** What docs/benchmarks.md is made of. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import type { DocumentParts } from './document.ts';
import { RESULT_FILE } from './result-file.ts';
import { readRuns } from './run.ts';

const bench = join(import.meta.dirname, '..');

export function storedParts(): DocumentParts {
  const files = globSync(join(bench, 'bounds', '*.md'));
  return {
    run: readRuns([RESULT_FILE]),
    introduction: readFileSync(join(bench, 'introduction.md'), 'utf8'),
    bounds: new Map(files.map((file) => [basename(file, '.md'), readFileSync(file, 'utf8')])),
  };
}
