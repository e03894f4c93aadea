/** Where labs keep things, outside the source tree. */
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { cacheDir } from './cache.ts';

/** A unix socket's path has at most 107 bytes, and `NODE.sock` (up to 30) goes below the run directory. */
const LONGEST_RUN_DIRECTORY = 70;

export interface LabPaths {
  /** Sockets, namespaces and the journal; short. */
  readonly runDirectory: string;
  /** Data, keys and logs; on a disk. */
  readonly dataDirectory: string;
}

/**
 * Folder of all labs' run directories: `$TRIBUTARY_LAB_RUN`; else `/run/tributary-lab` for root; else
 * `tributary-lab` in `$XDG_RUNTIME_DIR`, else `tributary-lab-UID` in the system's temporary folder.
 */
export function runRoot(env: NodeJS.ProcessEnv = process.env, uid: number = process.getuid?.() ?? 0): string {
  if (env['TRIBUTARY_LAB_RUN']) return resolve(env['TRIBUTARY_LAB_RUN']);
  if (uid === 0) return '/run/tributary-lab';
  return env['XDG_RUNTIME_DIR']
    ? join(env['XDG_RUNTIME_DIR'], 'tributary-lab')
    : join(tmpdir(), `tributary-lab-${uid}`);
}

/** The folders of one lab; `directory` takes the place of the one in the cache. */
export function labPaths(name: string, directory?: string): LabPaths {
  const runDirectory = join(runRoot(), name);
  if (Buffer.byteLength(runDirectory) > LONGEST_RUN_DIRECTORY) {
    throw new Error(`${runDirectory} is too long for sockets: set TRIBUTARY_LAB_RUN to a shorter folder`);
  }
  return {
    runDirectory,
    dataDirectory: directory === undefined ? join(cacheDir(), 'labs', name) : resolve(directory, name),
  };
}
