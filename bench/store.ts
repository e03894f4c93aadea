/**
 * Stores what runs have found (`make bench JSON=FILE`) as the figures of docs/benchmarks.md; later files take the place of earlier ones,
 * benchmark by benchmark. `npm run generate` then writes the document.
 *
 *     node bench/store.ts [--anew] FILE...
 *
 * `--anew` forgets what is stored.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { RESULT_FILE } from './frame/stored.ts';
import { readRuns } from './frame/run.ts';

const { values, positionals } = parseArgs({
  options: { anew: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const isKept = !values.anew && existsSync(RESULT_FILE);
const run = readRuns([...(isKept ? [RESULT_FILE] : []), ...positionals]);
writeFileSync(RESULT_FILE, `${JSON.stringify(run, undefined, 1)}\n`);
