/**
 * Builds what people install: the program as one file, as an npm package, with checksums and the list of what it is made of.
 *
 * Usage: node tools/release.ts [DIRECTORY]
 *   DIRECTORY is made anew; dist/release without it.
 */
import { join } from 'node:path';

import { buildRelease } from './release/release.ts';

const root = join(import.meta.dirname, '..');
const out = process.argv[2] ?? join(root, 'dist', 'release');
// oxlint-disable-next-line node/no-process-env
const files = await buildRelease(root, out, process.env['SOURCE_DATE_EPOCH']);
for (const { name, bytes } of files) console.log(`${(bytes / 1024).toFixed(0).padStart(6)} KiB  ${name}`);
