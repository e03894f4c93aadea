/**
 * Where each program of the lab is found. In this order:
 *
 * 1. `$TRIBUTARY_BIN_<NAME>` (as in TRIBUTARY_BIN_KUBE_APISERVER): this very file, whatever its version;
 * 2. `$TRIBUTARY_BIN_DIR/<name>`, where that file exists: likewise;
 * 3. the cache, `<cache>/bin/<module>-<hash of go.mod and go.sum>/<name>`, where an earlier run built it;
 * 4. the PATH, only where the program itself states exactly the pinned version (an old kubectl is never used in silence);
 * 5. built now from the pinned Go module, into the cache: only what is wanted and not there.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
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
import { cacheDir, locked, type Progress } from './cache.ts';
import { goBuild } from './go-build.ts';

export type { BinaryName } from './binary-table.ts';

const run = promisify(execFile);

/** Absolute paths of the wanted programs (default: of all but the optional ones). */
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
  needed: readonly BinaryName[],
  progress: Progress,
): Promise<Map<BinaryName, string>> {
  const found = new Map<BinaryName, string>();
  const directory = join(cacheDir(), 'bin', moduleKey(module));
  const toBuild: BinaryName[] = [];
  for (const name of needed) {
    const built = join(directory, name);
    const path = fromEnvironment(name) ?? (existsSync(built) ? built : await fromPath(module, name));
    if (path === undefined) toBuild.push(name);
    found.set(name, path ?? built);
  }
  if (toBuild.length > 0) await build(module, { directory, names: toBuild }, progress);
  return found;
}

/** A program is put into the cache by one rename. What another run has built meanwhile is not built again. */
async function build(
  module: BinaryModule,
  { directory, names }: { readonly directory: string; readonly names: readonly BinaryName[] },
  progress: Progress,
): Promise<void> {
  await mkdir(directory, { recursive: true });
  await locked(
    `${directory}.lock`,
    async () => {
      const missing = names.filter((name) => !existsSync(join(directory, name)));
      if (missing.length === 0) return;
      const temporary = `${directory}.partial`;
      await rm(temporary, { recursive: true, force: true });
      await mkdir(temporary);
      try {
        const built = await goBuild(module, { names: missing, out: temporary }, progress);
        for (const [name, path] of built) await rename(path, join(directory, name));
      } finally {
        await rm(temporary, { recursive: true, force: true });
      }
    },
    progress,
  );
}

/** The file that the environment names for a program; a missing file is an error, not a reason to build. */
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

async function fromPath(module: BinaryModule, name: BinaryName): Promise<string | undefined> {
  const source = module.programs[name]?.fromPath;
  const path = (process.env['PATH'] ?? '')
    .split(delimiter)
    .map((dir) => join(dir, name))
    .find(isExecutable);
  if (source === undefined || path === undefined) return undefined;
  const pinned = pinnedVersion(readFileSync(join(moduleDir(module), 'go.mod'), 'utf8'), source.module);
  const said = await run(path, [...source.versionArguments], { timeout: 10_000 }).catch(() => undefined);
  return said !== undefined && statesVersion(said.stdout, pinned) ? path : undefined;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
