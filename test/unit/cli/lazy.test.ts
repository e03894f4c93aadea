import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..', '..', '..');

/** What takes long to load, and few commands need: they import it when they act. */
const HEAVY = [
  'node:http2',
  'node:https',
  '@kubernetes/client-node',
  'netlink',
  '@peculiar/x509',
  'express',
  'ws',
];

test('what is heavy is not loaded before a command acts', async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['src/cli/cli.ts'],
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  /** Each file that is loaded at once, with the one that imports it. */
  const importer = new Map([['src/cli/cli.ts', '']]);
  for (const [file] of importer) {
    for (const { path, kind } of metafile.inputs[file]?.imports ?? []) {
      if (kind !== 'dynamic-import' && !importer.has(path)) importer.set(path, file);
    }
  }
  expect(importer.size).toBeGreaterThan(50);
  const loaded = HEAVY.filter((name) => importer.has(name)).map(
    (name) => `${importer.get(name)} imports ${name}`,
  );
  expect(loaded).toEqual([]);
});
