/** All files of a release. */
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { bundle } from './bundle.ts';
import { packPackage } from './package.ts';
import { npmSbom, sbomOf } from './sbom.ts';
import { stampOf } from './stamp.ts';

export interface ReleaseFile {
  readonly name: string;
  readonly bytes: number;
}

/** kubectl calls it for what may follow `kubectl tributary` (KEP-3638: kubectl_complete-PLUGIN on the PATH). */
const KUBECTL_COMPLETE = `#!/bin/sh
exec tributary __complete "$@"
`;

/** It runs as a CommonJS module and as an ES module: which of them a file without an ending is depends on the package.json above it. */
const HEAD = `#!/usr/bin/env node
var require = typeof require === 'function' ? require : process.getBuiltinModule;
`;

/** Writes a release into the directory `out`, which is made anew. Two releases of one commit are equal, byte by byte. */
export async function buildRelease(
  root: string,
  out: string,
  epoch: string | undefined,
): Promise<ReleaseFile[]> {
  const stamp = stampOf(root, epoch);
  const { text, inputs } = await bundle(root, stamp);
  const native = inputs.filter((path) => path.endsWith('.node') || path.includes('node_modules/netlink/'));
  if (native.length > 0) throw new Error(`the program for people would hold native code: ${native[0]}`);
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const program = text.replace(/^#!.*\n/, '');
  const write = (name: string, content: string, mode = 0o644): string => {
    writeFileSync(join(out, name), content);
    // Whatever the umask is.
    chmodSync(join(out, name), mode);
    return name;
  };
  const sbom = sbomOf(npmSbom(root), inputs, stamp);
  const names = [
    write('tributary', `${HEAD}${program}`, 0o755),
    write('kubectl_complete-tributary', KUBECTL_COMPLETE, 0o755),
    packPackage(root, program, out),
    write('tributary.cdx.json', `${JSON.stringify(sbom, undefined, 2)}\n`),
  ];
  symlinkSync('tributary', join(out, 'kubectl-tributary'));
  const sums = names.map((name) => `${sha256(join(out, name))}  ${name}\n`);
  write('SHA256SUMS', sums.join(''));
  return [...names, 'SHA256SUMS'].map((name) => ({ name, bytes: readFileSync(join(out, name)).length }));
}

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
