/** The files of the page, read once at the start. Nothing else of the disk can be asked for. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';

import { TributaryError } from '../../lib/errors.ts';

export interface PageFile {
  readonly body: Buffer;
  readonly type: string;
  readonly tag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** By path, `/` for the page itself. Throws NotFound where it has not been built. */
export async function readPage(directory: string): Promise<ReadonlyMap<string, PageFile>> {
  const names = await readdir(directory).catch((cause: unknown) => {
    throw new TributaryError(
      'NotFound',
      `the dashboard's page is not in ${directory}; build it with: npm run build`,
      {
        cause,
      },
    );
  });
  const files = new Map<string, PageFile>();
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const body = await readFile(join(directory, name));
    const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    files.set(name === 'index.html' ? '/' : `/${name}`, { body, type, tag });
  }
  return files;
}
