import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { cacheDir } from '../../lab/cache.ts';

/** Bytes of the newest image that was built on this machine, an archive of compressed layers; undefined: none was. */
export function imageBytes(): number | undefined {
  const built = globSync(join(cacheDir(), 'images', 'agent-*', 'tributary.tar')).map((path) =>
    statSync(path),
  );
  return built.toSorted((a, b) => b.mtimeMs - a.mtimeMs)[0]?.size;
}
