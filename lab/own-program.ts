/** This checkout's program, built as its image has it: a start takes a third of what the sources take. */
import { existsSync, globSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { cacheDir, cached, shortHash } from './cache.ts';
import { compileProgram } from './compiled-program.ts';

const repository = join(import.meta.dirname, '..');

/** Where processes of this checkout, and those that they start, find what was built. */
const VARIABLE = 'TRIBUTARY_BUILT_PROGRAM';

/** What the program is made from. */
const INPUTS = [
  'src/**/*.ts',
  'package-lock.json',
  'tsconfig.json',
  'tools/{build-program,without-models}.ts',
];

/** Programs of earlier states of the sources are removed after this: by then nothing runs them. */
const KEEP_MS = 24 * 3_600_000;

/** The main module: what was built, after `useBuiltProgram`, else the sources. */
export const mainModule = (): string => process.env[VARIABLE] ?? join(repository, 'src/main.ts');

/** Builds the program, once for each state of the sources; from now on it is what `mainModule` returns. */
export async function useBuiltProgram(): Promise<void> {
  const paths = globSync(INPUTS, { cwd: repository }).toSorted();
  const state = shortHash(...paths.flatMap((path) => [path, readFileSync(join(repository, path))]));
  const programs = join(cacheDir(), 'programs-built');
  // An entry leads to the packages of its checkout.
  const entry = join(programs, `${shortHash(repository)}-${state}`);
  await cached(entry, async (folder) => {
    removeOld(programs);
    const page = join(dirname(compileProgram(folder)), 'page');
    if (!existsSync(page)) symlinkSync(join(repository, 'dist/page'), page);
    rmSync(join(folder, 'src'), { recursive: true });
  });
  process.env[VARIABLE] = join(entry, 'dist/main.js');
}

function removeOld(programs: string): void {
  for (const complete of globSync(join(programs, '*', '.complete'))) {
    const age = Date.now() - statSync(complete).mtimeMs;
    if (age > KEEP_MS) rmSync(dirname(complete), { recursive: true, force: true });
  }
}
