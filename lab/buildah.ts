/** buildah(1) with a storage of the lab's own, so that nothing is shared with the machine's images. */
import { join } from 'node:path';

import { cacheDir } from './cache.ts';
import { run } from './run.ts';

/** The first build on a machine installs everything, on whatever network there is. */
const timeoutMs = 30 * 60_000;

/** Standard output, trimmed: the names that buildah gives. */
export async function buildah(command: string, ...args: readonly string[]): Promise<string> {
  const storage = join(cacheDir(), 'buildah');
  const global = [
    `--root=${join(storage, 'root')}`,
    `--runroot=${join(storage, 'run')}`,
    `--storage-driver=${process.env['STORAGE_DRIVER'] || 'overlay'}`,
  ];
  return (await run(['buildah', ...global, command, ...args], { timeoutMs })).trim();
}
