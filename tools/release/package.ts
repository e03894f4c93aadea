/** The npm package for people: the bundle, and a launcher that keeps its compiled form. No dependencies, no native code. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { OLDEST_NODE } from './bundle.ts';

/** Node.js keeps what it has compiled for the next start, in the user's directory for temporary files. */
const LAUNCHER = `#!/usr/bin/env node
'use strict';
require('node:module').enableCompileCache?.();
require('./program.cjs');
`;

const COPIED = ['README.md', 'LICENSE'];

function manifestOf(root: string): object {
  const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;
  const { name, version, description, license } = own;
  return {
    name,
    version,
    description,
    license,
    type: 'commonjs',
    engines: { node: `>=${OLDEST_NODE}` },
    bin: { tributary: 'tributary.cjs', 'kubectl-tributary': 'tributary.cjs' },
    files: ['tributary.cjs', 'program.cjs'],
  };
}

/** Writes the tarball into `out`, and returns its name. npm gives all files the same time and owner. */
export function packPackage(root: string, program: string, out: string): string {
  const stage = mkdtempSync(join(tmpdir(), 'tributary-package-'));
  try {
    writeFileSync(join(stage, 'package.json'), `${JSON.stringify(manifestOf(root), undefined, 2)}\n`);
    writeFileSync(join(stage, 'tributary.cjs'), LAUNCHER, { mode: 0o755 });
    writeFileSync(join(stage, 'program.cjs'), program);
    for (const name of COPIED) copyFileSync(join(root, name), join(stage, name));
    const printed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', `--pack-destination=${out}`], {
      cwd: stage,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [packed] = JSON.parse(printed) as { filename: string }[];
    if (packed === undefined) throw new Error('npm pack wrote nothing');
    return packed.filename;
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}
