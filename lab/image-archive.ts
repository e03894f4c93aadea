/** `npm run lab -- load-image`: where the archive of an image comes from, and where it goes. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { run } from './run.ts';

const SAVE_MS = 300_000;

/** Programs that keep images on this host, and how each writes one into an archive. */
const KEEPERS: readonly (readonly [program: string, save: (image: string, archive: string) => string[]])[] = [
  ['buildah', (image, archive) => ['push', '--quiet', image, `docker-archive:${archive}:${image}`]],
  ['podman', (image, archive) => ['save', '--quiet', '--output', archive, image]],
  ['docker', (image, archive) => ['save', '--output', archive, image]],
];

/** Calls back with an archive: the file itself, or one that is made of an image of that name and removed afterwards. Throws what to do. */
export async function withArchive(image: string, use: (archive: string) => Promise<void>): Promise<void> {
  if (existsSync(image)) return use(image);
  const folder = mkdtempSync(join(tmpdir(), 'tributary-image-'));
  try {
    await use(await saved(image, join(folder, 'image.tar')));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function saved(image: string, archive: string): Promise<string> {
  const problems: string[] = [];
  for (const [program, save] of KEEPERS) {
    try {
      await run([program, ...save(image, archive)], { timeoutMs: SAVE_MS });
      return archive;
    } catch (error) {
      problems.push(
        `${program}: ${Error.isError(error) ? (error.message.split('\n')[0] ?? '') : String(error)}`,
      );
    }
  }
  throw new Error(
    `there is no file ${image}, and nobody here has an image of that name (${problems.join('; ')}). ` +
      'make image builds that of Tributary',
  );
}

/** Those of these names, or all. Throws for a name that none has. */
export function clustersOf<Cluster extends { readonly name: string }>(
  clusters: readonly Cluster[],
  names: readonly string[] | undefined,
): readonly Cluster[] {
  const unknown = names?.find((name) => clusters.every((cluster) => cluster.name !== name));
  if (unknown !== undefined) {
    throw new Error(
      `no cluster ${unknown} in this lab; it has: ${clusters.map(({ name }) => name).join(', ')}`,
    );
  }
  return names === undefined ? clusters : clusters.filter(({ name }) => names.includes(name));
}
