/**
 * The images of an application that nobody wrote for Tributary: nginx, webdis (Redis over HTTP) and Redis, as Debian
 * packages them. One file tree, three names.
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { buildah, buildahLocked } from './buildah.ts';
import { cacheDir, cached, shortHash, type Progress } from './cache.ts';
import { debianRoot } from './debian-root.ts';
import { RunError } from './run.ts';

const packages = ['libc6', 'busybox-static', 'nginx', 'redis-server', 'webdis'] as const;
/** What each image runs when nothing else is said. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  'lab.local/nginx:1': ['nginx', '-g', 'daemon off;'],
  'lab.local/webdis:1': ['webdis', '/etc/webdis/webdis.json'],
  'lab.local/redis:1': ['redis-server'],
};
const hook = join(import.meta.dirname, 'images', 'shop-hook.sh');

/** Paths of the OCI archives, made once. */
export async function shopImages(progress: Progress = () => {}): Promise<string[]> {
  const key = shortHash(
    packages.join(' '),
    ...[hook, import.meta.filename, join(import.meta.dirname, 'debian-root.ts')].map((path) =>
      readFileSync(path),
    ),
  );
  const entry = join(cacheDir(), 'images', `shop-${key}`);
  await cached(
    entry,
    async (out) => {
      progress('making the images of nginx, webdis and redis');
      try {
        await debianRoot({ packages, hook, archive: join(out, 'root.tar') });
        await buildahLocked(async () => build(out), progress);
      } catch (cause) {
        const [message, printed] =
          cause instanceof RunError ? [cause.message, cause.printed] : [String(cause), ''];
        const reason = printed.trim().split('\n').at(-1) || message;
        throw new Error(
          `making the shop's images failed: ${reason} (it needs buildah, mmdebstrap and a Debian mirror)`,
          {
            cause,
          },
        );
      }
      rmSync(join(out, 'root.tar'));
    },
    progress,
  );
  return Object.keys(COMMANDS).map((name) => join(entry, archiveOf(name)));
}

async function build(out: string): Promise<void> {
  const base = await buildah('from', 'scratch');
  await buildah('add', '--quiet', base, join(out, 'root.tar'), '/');
  for (const [name, command] of Object.entries(COMMANDS)) {
    await buildah('config', '--cmd', JSON.stringify(command), base);
    await buildah('commit', '--quiet', base, name);
    await buildah(
      'push',
      '--quiet',
      '--compression-format=zstd',
      name,
      `oci-archive:${join(out, archiveOf(name))}:${name}`,
    );
    await buildah('rmi', '--force', name);
  }
  await buildah('rm', base);
}

const archiveOf = (name: string): string => `${/\/(\w+):/.exec(name)?.[1]}.tar`;
