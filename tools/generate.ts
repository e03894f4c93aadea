/**
 * Writes files that are made from the sources and also committed, so that people can read and apply them without running anything: deploy/crds, deploy/*.yaml, deploy/examples, docs/rights.md,
 * docs/conformance.md, docs/benchmarks.md, docs/reference, deploy/chart.
 *
 * Usage: node tools/generate.ts [--check]
 *   --check writes nothing; it fails with one line that names what is stale.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { format } from 'prettier';

import { conformanceDocument } from '../lab/conformance/document.ts';
import type { Result } from '../lab/conformance/score.ts';
import { benchmarkFiles } from './generate/benchmark-files.ts';
import { chartFiles } from './generate/chart-files.ts';
import { commandsDocument } from './generate/commands-document.ts';
import { definitionFiles } from './generate/definitions.ts';
import { errorsDocument } from './generate/errors-document.ts';
import { exampleFiles } from './generate/examples.ts';
import { monitoringFiles } from './generate/monitoring-files.ts';
import { optionsDocument } from './generate/options-document.ts';
import { kindsDocument } from './generate/kinds-document.ts';
import { metricsDocument } from './generate/metrics-document.ts';
import { reasonsDocument } from './generate/reasons-document.ts';
import { rightsDocument } from './generate/rights-document.ts';

const ROOT = join(import.meta.dirname, '..');

/** What the last whole `make conformance` has found. */
const conformance = JSON.parse(
  readFileSync(join(ROOT, 'lab', 'conformance', 'result.json'), 'utf8'),
) as Result;

/** Path from the root of the repository -> whole text. */
const files: Record<string, string> = {
  ...definitionFiles(),
  ...exampleFiles(),
  ...chartFiles(),
  'docs/rights.md': rightsDocument(),
  ...monitoringFiles(),
  'docs/reference/errors.md': errorsDocument(),
  'docs/reference/kinds.md': kindsDocument(),
  'docs/reference/options.md': optionsDocument(),
  'docs/reference/reasons.md': reasonsDocument(),
  'docs/reference/metrics.md': metricsDocument(),
  'docs/reference/commands.md': commandsDocument(),
  'docs/conformance.md': conformanceDocument(conformance),
  ...benchmarkFiles(),
};

function current(path: string): string | undefined {
  try {
    return readFileSync(join(ROOT, path), 'utf8');
  } catch {
    return undefined;
  }
}

const PARSERS: Readonly<Record<string, string>> = { '.md': 'markdown', '.json': 'json' };

const stale: string[] = [];
for (const [path, text] of Object.entries(files)) {
  const parser = PARSERS[extname(path)] ?? 'yaml';
  // Templates are no YAML yet, and pictures are taken as they are.
  const wanted =
    path.includes('/templates/') || path.endsWith('.svg')
      ? text
      : await format(text, { parser, printWidth: 110, singleQuote: true, trailingComma: 'all' });
  if (current(path) === wanted) continue;
  stale.push(path);
  if (process.argv.includes('--check')) continue;
  mkdirSync(dirname(join(ROOT, path)), { recursive: true });
  writeFileSync(join(ROOT, path), wanted);
}

if (process.argv.includes('--check')) {
  if (stale.length > 0) console.error(`stale: ${stale.join(', ')}; run npm run generate`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
  console.log(stale.length > 0 ? `wrote ${stale.join(', ')}` : 'nothing was stale');
}
