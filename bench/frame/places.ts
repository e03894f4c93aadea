/** Files and folders that a person names: whether they can be used, before anything else begins. */
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { getSystemErrorMessage } from 'node:util';

import { mistake } from './arguments.ts';

/** What a checkout needs to take part. */
const PARTS = ['package.json', 'src', 'node_modules'];

/** @throws if nothing can be written there. What is there stays, and nothing is made. */
export function checkWritable(file: string): void {
  const isNew = !existsSync(file);
  try {
    closeSync(openSync(file, 'a'));
  } catch (error) {
    const { code, errno = 0 } = error as NodeJS.ErrnoException;
    const why = code === 'ENOENT' ? `there is no folder ${dirname(file)}` : getSystemErrorMessage(errno);
    throw mistake(`${file} cannot be written: ${why}`);
  }
  if (isNew) rmSync(file);
}

/** Its absolute path, since it is built from elsewhere. @throws if it is not another version of this repository that can be built */
export function checkCheckout(folder: string): string {
  const missing = PARTS.find((part) => !existsSync(join(folder, part)));
  if (missing !== undefined)
    throw mistake(`${folder} cannot take part as the version before: it has no ${missing}`);
  return resolve(folder);
}

/** Of a checkout; undefined where git knows none. */
export function commitOf(folder: string): string | undefined {
  try {
    const args = ['-C', folder, 'rev-parse', '--short=8', 'HEAD'];
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}
