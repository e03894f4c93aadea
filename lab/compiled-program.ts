/** The product as its image has it: built from a checkout, and the flags with which it runs. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { MAX_OUTPUT } from './run.ts';

const repository = join(import.meta.dirname, '..');

/** A change of one source file, made before it is compiled. */
export interface Edit {
  /** In the checkout: `src/provider/pods/decide.ts`. */
  readonly file: string;
  /** Occurs once in it. */
  readonly find: string;
  readonly replace: string;
}

/** Builds a copy of a checkout, with edits, in `directory`; returns the path of its main module. */
export function compileProgram(
  directory: string,
  { checkout = repository, edits = [] }: { checkout?: string; edits?: readonly Edit[] } = {},
): string {
  mkdirSync(directory, { recursive: true });
  const builder = join(checkout, 'tools/build-program.ts');
  // A version of before that program is compiled file by file.
  const isBuilt = existsSync(builder);
  const configurations = ['tsconfig.json', ...(isBuilt ? [] : ['tsconfig.build.json'])];
  for (const name of ['src', 'package.json', ...configurations])
    cpSync(join(checkout, name), join(directory, name), { recursive: true });
  const modules = join(directory, 'node_modules');
  if (!existsSync(modules)) symlinkSync(join(checkout, 'node_modules'), modules);
  for (const edit of edits) {
    const path = join(directory, edit.file);
    writeFileSync(path, edited(readFileSync(path, 'utf8'), edit));
  }
  const [command, args] = isBuilt
    ? [process.execPath, [builder, directory]]
    : [join(modules, '.bin', 'tsc'), ['-p', 'tsconfig.build.json']];
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: directory, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${checkout} cannot be built: ${stdout}${stderr}`);
  return join(directory, 'dist', 'main.js');
}

/** The text with the edit made; fails unless what is to be replaced occurs exactly once. */
export function edited(text: string, { file, find, replace }: Edit): string {
  const count = find === '' ? 0 : text.split(find).length - 1;
  if (count !== 1) throw new Error(`${file} has ${count} times, not once, what an edit replaces: ${find}`);
  return text.replace(find, () => replace);
}

/**
 * Node's flags as in the image, and the sizes of the heap that Node.js chooses by itself in a container of 512 MiB, the limit in the agent's
 * manifest. Without a limit Node.js assumes that it can use all memory, and collects garbage less often.
 */
export function imageFlags(checkout: string = repository): string[] {
  const text = readFileSync(join(checkout, 'Dockerfile'), 'utf8');
  const entry = /^ENTRYPOINT (\[.*\])$/mu.exec(text)?.[1];
  if (entry === undefined) throw new Error('the Dockerfile has no ENTRYPOINT in the form of a list');
  const command = JSON.parse(entry) as string[];
  return ['--max-old-space-size=256', '--max-semi-space-size=4', ...command.slice(1, -1)];
}

/** Runs a program of the repository to its end, without the caller's cluster, and returns what it printed. */
export function runToEnd(program: string, args: readonly string[], input = ''): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: repository,
    encoding: 'utf8',
    input,
    env: programEnvironment(),
    maxBuffer: MAX_OUTPUT,
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}${stdout}`);
  return stdout;
}

/** Variables that the image sets. */
export function imageEnvironment(checkout: string = repository): Record<string, string> {
  const text = readFileSync(join(checkout, 'Dockerfile'), 'utf8');
  // Of the last stage, as the entry point.
  const variables = /^ENV (.*)$/gmu.exec(text.slice(text.lastIndexOf('\nFROM ')))?.[1] ?? '';
  return Object.fromEntries(
    Array.from(variables.matchAll(/(\w+)=(\S+)/gu), ([, name = '', value = '']) => [name, value]),
  );
}

/** That of the image, without the caller's cluster. */
export function programEnvironment(): NodeJS.ProcessEnv {
  // oxlint-disable-next-line node/no-process-env -- a child needs the PATH and the like
  const { KUBECONFIG: _kubeconfig, NODE_OPTIONS: _options, ...rest } = process.env;
  return { ...rest, ...imageEnvironment() };
}
