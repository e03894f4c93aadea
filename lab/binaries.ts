/**
 * Where each program of the lab is found. In this order:
 *
 * 1. `$TRIBUTARY_BIN_<NAME>` (as in TRIBUTARY_BIN_KUBE_APISERVER): this very file, whatever its version;
 * 2. `$TRIBUTARY_BIN_DIR/<name>`, where that file exists: likewise;
 * 3. the cache, `<cache>/bin/<module>-<hash of go.mod and go.sum>/<name>`, where an earlier run built it;
 * 4. the PATH, only where the program itself states exactly the pinned version (an old kubectl is never used in silence);
 * 5. built now from the pinned Go module, into the cache.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';

import {
  moduleDir,
  moduleKey,
  modules,
  pinnedVersion,
  programNames,
  standardPrograms,
  statesVersion,
  type BinaryModule,
  type BinaryName,
} from './binary-table.ts';
import { cacheDir, cached, isComplete, type Progress } from './cache.ts';
import { goBuild } from './go-build.ts';

export type { BinaryName } from './binary-table.ts';

const run = promisify(execFile);

/** Absolute paths of the wanted programs (default: of all but the optional ones). Only modules with a wanted program are built. */
export async function binaries<Name extends BinaryName = BinaryName>(
  progress: Progress = () => {},
  wanted?: readonly Name[],
): Promise<Record<Name, string>> {
  const names = wanted ?? (standardPrograms() as Name[]);
  const found = new Map<BinaryName, string>();
  for (const module of modules) {
    const needed = programNames(module).filter((name) => (names as readonly string[]).includes(name));
    for (const [name, path] of await fromModule(module, needed, progress)) found.set(name, path);
  }
  return Object.fromEntries(found) as Record<Name, string>;
}

async function fromModule(
  module: BinaryModule,
  needed: BinaryName[],
  progress: Progress,
): Promise<Map<BinaryName, string>> {
  const found = new Map<BinaryName, string>();
  for (const name of needed) {
    const given = fromEnvironment(name);
    if (given !== undefined) found.set(name, given);
  }
  const missing = needed.filter((name) => !found.has(name));
  if (missing.length === 0) return found;

  const entry = join(cacheDir(), 'bin', moduleKey(moduleDir(module), module.name));
  const ready = isComplete(entry) ? undefined : await fromPath(module, missing);
  if (ready !== undefined) return new Map([...found, ...ready]);
  await cached(entry, async (out) => goBuild(module, out, progress), progress);
  for (const name of missing) found.set(name, join(entry, name));
  return found;
}

/** What the environment names for a program; a name that leads nowhere is an error, not a reason to build. */
export function fromEnvironment(name: BinaryName, env: NodeJS.ProcessEnv = process.env): string | undefined {
  const variable = `TRIBUTARY_BIN_${name.toUpperCase().replaceAll('-', '_')}`;
  const named = env[variable];
  if (named) {
    if (!isExecutable(named)) throw new Error(`${variable}=${named} is not an executable file`);
    return resolve(named);
  }
  const dir = env['TRIBUTARY_BIN_DIR'];
  if (!dir) return undefined;
  const path = resolve(dir, name);
  return isExecutable(path) ? path : undefined;
}

/** All the programs from the PATH, or none of them: a module is built as a whole anyway. */
async function fromPath(
  module: BinaryModule,
  names: BinaryName[],
): Promise<Map<BinaryName, string> | undefined> {
  if (module.versionArguments === undefined) return undefined;
  const pinned = pinnedVersion(readFileSync(join(moduleDir(module), 'go.mod'), 'utf8'));
  const found = new Map<BinaryName, string>();
  for (const name of names) {
    const path = (process.env['PATH'] ?? '')
      .split(delimiter)
      .map((dir) => join(dir, name))
      .find(isExecutable);
    if (path === undefined) return undefined;
    const said = await run(path, [...module.versionArguments(name)], { timeout: 10_000 }).catch(
      () => undefined,
    );
    if (said === undefined || !statesVersion(said.stdout, pinned)) return undefined;
    found.set(name, path);
  }
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
