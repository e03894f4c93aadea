/** Builds the dashboard's page, web/, into dist/page: one script, one style sheet, nothing from elsewhere. */
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');

export async function buildPage(): Promise<void> {
  const out = join(root, 'dist/page');
  mkdirSync(out, { recursive: true });
  await build({
    entryPoints: { page: join(root, 'web/main.tsx') },
    outdir: out,
    bundle: true,
    minify: true,
    format: 'iife',
    target: ['chrome120', 'firefox120', 'safari17'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'eof',
    logLevel: 'warning',
  });
  await build({ entryPoints: [join(root, 'web/page.css')], outdir: out, minify: true, logLevel: 'warning' });
  for (const name of ['index.html', 'icon.svg']) cpSync(join(root, 'web', name), join(out, name));
}

if (import.meta.main) await buildPage();
