/** The product as a process: compiled from a checkout, with the flags of its image, started and killed at will. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';

import { MARK } from '../lab/process.ts';
import type { LabSpec } from '../lab/spec.ts';

const repository = join(import.meta.dirname, '..');

/** A change of one source file, made before it is compiled. */
export interface Edit {
  /** In the checkout: `src/provider/pods/decide.ts`. */
  readonly file: string;
  /** Occurs once in it. */
  readonly find: string;
  readonly replace: string;
}

/** Compiles a copy of a checkout, with edits, into `directory`; returns the path of its main module. */
export function compileProgram(
  directory: string,
  { checkout = repository, edits = [] }: { checkout?: string; edits?: readonly Edit[] } = {},
): string {
  mkdirSync(directory, { recursive: true });
  for (const name of ['src', 'package.json', 'tsconfig.json', 'tsconfig.build.json'])
    cpSync(join(checkout, name), join(directory, name), { recursive: true });
  const modules = join(directory, 'node_modules');
  if (!existsSync(modules)) symlinkSync(join(checkout, 'node_modules'), modules);
  for (const edit of edits) {
    const path = join(directory, edit.file);
    writeFileSync(path, edited(readFileSync(path, 'utf8'), edit));
  }
  const tsc = join(modules, '.bin', 'tsc');
  const { status, stdout, stderr } = spawnSync(tsc, ['-p', 'tsconfig.build.json'], {
    cwd: directory,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${checkout} cannot be compiled: ${stdout}${stderr}`);
  return join(directory, 'dist', 'main.js');
}

/** The text with the edit made; fails unless what is to be replaced occurs exactly once. */
export function edited(text: string, { file, find, replace }: Edit): string {
  const count = find === '' ? 0 : text.split(find).length - 1;
  if (count !== 1) throw new Error(`${file} has ${count} times, not once, what an edit replaces: ${find}`);
  return text.replace(find, () => replace);
}

/** Node's flags as in the image, and a bounded heap. */
export function imageFlags(): string[] {
  const text = readFileSync(join(repository, 'Dockerfile'), 'utf8');
  const entry = /^ENTRYPOINT (\[.*\])$/mu.exec(text)?.[1];
  if (entry === undefined) throw new Error('the Dockerfile has no ENTRYPOINT in the form of a list');
  const command = JSON.parse(entry) as string[];
  return ['--max-old-space-size=256', ...command.slice(1, -1)];
}

/** Runs one command of the program to its end, and returns what it printed. */
export function tributary(main: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
    env: environment(),
  });
  if (status !== 0) throw new Error(`tributary ${args.join(' ')}: ${stderr}${stdout}`);
  return stdout;
}

export interface ProgramOptions {
  /** Main module. */
  readonly main: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly logFile: string;
  /** Its processes end with it, also when this process dies first. */
  readonly lab: LabSpec;
  /** Name of the network namespace to run in; default: ours. */
  readonly netns?: string;
}

/** One program that comes and goes; its log goes on in the same file. */
export class Program {
  readonly #options: ProgramOptions;
  #child: ChildProcess | undefined;

  constructor(options: ProgramOptions) {
    this.#options = options;
    mkdirSync(dirname(options.logFile), { recursive: true });
  }

  get logFile(): string {
    return this.#options.logFile;
  }

  /** Undefined unless it runs. */
  get pid(): number | undefined {
    const child = this.#child;
    return child === undefined || child.exitCode !== null || child.signalCode !== null
      ? undefined
      : child.pid;
  }

  /** Returns its process ID. */
  start(): number {
    const { main, args, env, logFile, lab, netns } = this.#options;
    if (this.pid !== undefined) throw new Error(`${logFile}: it runs already`);
    const log = openSync(logFile, 'a');
    const command = [process.execPath, ...imageFlags(), main, ...args];
    const [program = '', ...rest] =
      netns === undefined ? command : ['nsenter', `--net=/run/netns/${netns}`, '--', ...command];
    try {
      const child = spawn(program, rest, {
        stdio: ['ignore', log, log],
        env: { ...environment(), ...env, [MARK]: lab.runDirectory },
        cwd: dirname(logFile),
      });
      this.#child = child;
      // Without a listener a missing program would end this process; its missing process ID says it better.
      child.on('error', () => undefined);
      if (child.pid === undefined) throw new Error(`${logFile}: cannot start ${program}`);
      return child.pid;
    } finally {
      closeSync(log);
    }
  }

  /** kill -9, without waiting; returns the process ID of what was killed. */
  kill(): number | undefined {
    const pid = this.pid;
    if (pid !== undefined) this.#child?.kill('SIGKILL');
    return pid;
  }

  /** Resolves when the process has gone. */
  async gone(): Promise<void> {
    if (this.pid !== undefined && this.#child !== undefined) await once(this.#child, 'exit');
  }

  signal(signal: NodeJS.Signals): void {
    if (this.pid !== undefined) this.#child?.kill(signal);
  }

  /** The end of its log. */
  tail(characters = 3_000): string {
    return existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8').slice(-characters) : '';
  }
}

/** Without the caller's cluster. */
function environment(): NodeJS.ProcessEnv {
  // oxlint-disable-next-line node/no-process-env -- a child needs the PATH and the like
  const { KUBECONFIG: _kubeconfig, NODE_OPTIONS: _options, ...rest } = process.env;
  return { ...rest, NODE_ENV: 'production' };
}
