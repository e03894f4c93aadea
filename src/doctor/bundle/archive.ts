import { createGzip } from 'node:zlib';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';

/** One file of the archive. */
export interface Entry {
  path: string;
  text: string;
}

/** Writes the entries as .tar.gz, each as it comes, so that no more than one is held. */
export async function writeArchive(
  entries: AsyncIterable<Entry>,
  { folder, mtimeMs, to }: { folder: string; mtimeMs: number; to: Writable },
): Promise<void> {
  const archive = pack();
  const written = pipeline(archive, createGzip(), to);
  const fill = async (): Promise<void> => {
    for await (const { path, text } of entries) {
      archive.entry({ name: `${folder}/${path}`, mode: 0o600, mtime: new Date(mtimeMs) }, text);
    }
    archive.finalize();
  };
  try {
    await Promise.all([written, fill()]);
  } catch (error) {
    archive.destroy();
    throw error;
  }
}
