/** A child process of a benchmark, and the product as its image runs it: compiled, with the image's own flags. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { closeSync, copyFileSync, mkdirSync, openSync, readFileSync, symlinkSync } from 'node:fs';
import { once } from 'node:events';
import { dirname, join } from 'node:path';

import { MARK } from '../lab/process.ts';
import type { LabSpec } from '../lab/spec.ts';
import { processFigures, type ProcessFigures } from './process-figures.ts';

const repository = join(import.meta.dirname, '..');

/** Runs until it is stopped, or until its lab is taken down. */
export class Program {
  readonly logFile: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, logFile: string) {
    this.#child = child;
    this.logFile = logFile;
  }

  static start(name: string, args: readonly string[], lab: LabSpec): Program {
    const logFile = join(lab.dataDirectory, 'log', `${name}.log`);
    mkdirSync(dirname(logFile), { recursive: true });
    const log = openSync(logFile, 'a');
    try {
      const child = spawn(process.execPath, args, {
        stdio: ['ignore', log, log],
        // If this process dies first, this program is found and ended with the lab.
        env: { ...environment(), [MARK]: lab.runDirectory },
        cwd: dirname(logFile),
      });
      return new Program(child, logFile);
    } finally {
      closeSync(log);
    }
  }

  get figures(): ProcessFigures {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) {
      throw new Error(`${this.logFile}: ended too early: ${readFileSync(this.logFile, 'utf8').slice(-2000)}`);
    }
    return processFigures(pid);
  }

  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }
}

/** The product's program, compiled into `directory`; returns the path of its main module. */
export function compile(directory: string): string {
  mkdirSync(directory, { recursive: true });
  const outDir = join(directory, 'dist');
  run(join(repository, 'node_modules', '.bin', 'tsc'), ['-p', 'tsconfig.build.json', '--outDir', outDir]);
  copyFileSync(join(repository, 'package.json'), join(directory, 'package.json'));
  symlinkSync(join(repository, 'node_modules'), join(directory, 'node_modules'));
  return join(outDir, 'main.js');
}

/**
 * Node's flags as in the image, and the sizes of the heap that Node.js chooses by itself in a container of 512 MiB,
 * the limit in the agent's manifest. Without a limit Node.js assumes that it can use all memory, and collects garbage
 * less often.
 */
export function imageFlags(): string[] {
  const text = readFileSync(join(repository, 'Dockerfile'), 'utf8');
  const command = JSON.parse(/^ENTRYPOINT (\[.*\])$/mu.exec(text)?.[1] ?? '[]') as string[];
  return ['--max-old-space-size=256', '--max-semi-space-size=4', ...command.slice(1, -1)];
}

/** Runs a program to its end and returns what it printed. */
export function run(program: string, args: readonly string[], input = ''): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: repository,
    encoding: 'utf8',
    input,
    env: environment(),
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}${stdout}`);
  return stdout;
}

/** Without the caller's cluster. */
function environment(): NodeJS.ProcessEnv {
  // oxlint-disable-next-line node/no-process-env -- a child needs the PATH and the like
  const { KUBECONFIG: _kubeconfig, NODE_OPTIONS: _options, ...rest } = process.env;
  return { ...rest, NODE_ENV: 'production' };
}
