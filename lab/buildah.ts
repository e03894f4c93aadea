/** buildah(1) with a storage of the lab's own, so that nothing is shared with the machine's images. */
import { join } from 'node:path';

import { cacheDir } from './cache.ts';
import { run, type CommandOptions } from './command.ts';

export async function buildah(args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const storage = join(cacheDir(), 'buildah');
  return run(
    'buildah',
    [
      `--root=${join(storage, 'root')}`,
      `--runroot=${join(storage, 'run')}`,
      `--storage-driver=${process.env['STORAGE_DRIVER'] || 'overlay'}`,
      ...args,
    ],
    options,
  );
}
