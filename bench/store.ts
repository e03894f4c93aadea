/**
 * Stores what runs have found (`make bench JSON=FILE`) as the figures of docs/benchmarks.md; later files take the place of earlier ones,
 * benchmark by benchmark. `npm run generate` then writes the document.
 */
import { existsSync, writeFileSync } from 'node:fs';

import { mistake, parsedOptions } from './frame/arguments.ts';
import { runProgram } from './frame/interruption.ts';
import { RESULT_FILE } from './frame/result-file.ts';
import { readRuns } from './frame/run.ts';

const USAGE = `usage: node bench/store.ts [--anew] FILE...

Stores what \`make bench JSON=FILE\` has written in bench/result.json. A benchmark takes the place of an earlier run of it.

  --anew  forgets what is stored
`;

const OPTIONS = {
  anew: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

function store(files: readonly string[], isKept: boolean): void {
  if (files.length === 0) throw mistake('name the file of a run, as make bench JSON=FILE has written it');
  const missing = files.find((file) => !existsSync(file));
  if (missing !== undefined) throw mistake(`there is no file ${missing}`);
  const run = readRuns([...(isKept && existsSync(RESULT_FILE) ? [RESULT_FILE] : []), ...files]);
  writeFileSync(RESULT_FILE, `${JSON.stringify(run, undefined, 1)}\n`);
}

await runProgram('store', () => {
  const { values, positionals } = parsedOptions(process.argv.slice(2), OPTIONS);
  if (values.help) process.stdout.write(USAGE);
  else store(positionals, !values.anew);
});
