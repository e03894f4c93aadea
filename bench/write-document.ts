/**
 * Writes docs/benchmarks.md and its plots. With files of runs (`make bench JSON=FILE`), joins them into docs/benchmarks/run.json first.
 *
 *     node bench/write-document.ts [FILE]...
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { documentsOf, PLOT_FOLDER, type Documents } from './frame/document.ts';
import { readRuns, type Run } from './frame/run.ts';

const docs = join(import.meta.dirname, '..', 'docs');
const plots = join(docs, PLOT_FOLDER);
const stored = join(plots, 'run.json');

/** What is to stand in docs/ for the run that is stored there. */
export function storedDocuments(): Documents {
  return documentsFor(readRuns([stored]));
}

function documentsFor(run: Run): Documents {
  const files = globSync(join(import.meta.dirname, 'bounds', '*.md'));
  const bounds = new Map(files.map((file) => [basename(file, '.md'), readFileSync(file, 'utf8')]));
  const introduction = readFileSync(join(import.meta.dirname, 'introduction.md'), 'utf8');
  return documentsOf({ run, introduction, bounds });
}

function write(files: readonly string[]): void {
  const run = readRuns(files.length === 0 ? [stored] : files);
  const documents = documentsFor(run);
  mkdirSync(plots, { recursive: true });
  for (const old of globSync(join(plots, '*.svg'))) rmSync(old);
  writeFileSync(stored, `${JSON.stringify(run, undefined, 1)}\n`);
  writeFileSync(join(docs, 'benchmarks.md'), documents.markdown);
  for (const [name, svg] of documents.plots) writeFileSync(join(plots, name), svg);
}

if (import.meta.main) write(process.argv.slice(2));
