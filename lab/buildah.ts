/** buildah(1) with a storage of the lab's own, so that nothing is shared with the machine's images. */
import { join } from 'node:path';

import { cacheDir, locked, type Progress } from './cache.ts';
import { run } from './run.ts';

/** The first build on a machine installs everything, perhaps over a slow network. */
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

/** Runs `work` while no other run builds. First unmounts what an interrupted build has left. */
export async function buildahLocked<T>(work: () => Promise<T>, progress: Progress): Promise<T> {
  return locked(
    join(cacheDir(), 'buildah.lock'),
    async () => {
      await buildah('rm', '--all');
      return work();
    },
    progress,
  );
}

/** Layers of older builds (a few megabytes each) make the next build quick. If there are more than this, all are removed. */
const layersKept = 80;

export async function pruneLayers(): Promise<void> {
  const images = await buildah('images', '--all', '--quiet');
  if (images.split('\n').length > layersKept) await buildah('rmi', '--prune', '--force');
}
