/**
 * What is expensive is made once and kept: binaries, images. An entry is a folder whose name carries the hash of
 * its inputs, so a changed input is another entry and nothing is ever updated in place.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { lockFile } from './lock.ts';

export type Progress = (line: string) => void;

/** `$TRIBUTARY_CACHE`, else `$XDG_CACHE_HOME/tributary`, else `~/.cache/tributary`. */
export function cacheDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env['TRIBUTARY_CACHE']) return resolve(env['TRIBUTARY_CACHE']);
  return join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'tributary');
}

/** The first 12 hex digits of the SHA-256 over all parts, one after the other. */
export function shortHash(...parts: (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex').slice(0, 12);
}

/** Whether the entry was made to its end: `.complete` is written last. */
export const isComplete = (entry: string): boolean => existsSync(join(entry, '.complete'));

/**
 * The entry at `path`, made by `make` where it is missing. `make` fills a temporary folder that becomes the entry
 * by a rename, so neither a crash nor a second run ever leaves or sees half an entry.
 */
export async function cached(
  path: string,
  make: (temporary: string) => Promise<void>,
  progress: Progress = () => {},
): Promise<string> {
  if (isComplete(path)) return path;
  await mkdir(dirname(path), { recursive: true });
  return locked(
    `${path}.lock`,
    async () => {
      if (isComplete(path)) return path;
      const temporary = `${path}.partial`;
      await rm(temporary, { recursive: true, force: true });
      await mkdir(temporary);
      try {
        await make(temporary);
        await writeFile(join(temporary, '.complete'), '');
        await rm(path, { recursive: true, force: true });
        await rename(temporary, path);
      } finally {
        await rm(temporary, { recursive: true, force: true });
      }
      return path;
    },
    progress,
  );
}

/** Runs `work` while holding an exclusive lock on `file`. */
export async function locked<T>(
  file: string,
  work: () => Promise<T>,
  progress: Progress = () => {},
): Promise<T> {
  const waiting = setTimeout(() => progress(`waiting for another run that holds ${file}`), 1000);
  const lock = await lockFile(file).finally(() => clearTimeout(waiting));
  try {
    return await work();
  } finally {
    await lock.release();
  }
}
