/** The product as a process with the flags of its image, started and killed at will. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { imageFlags, programEnvironment } from '../lab/compiled-program.ts';
import { MARK } from '../lab/process.ts';
import type { LabSpec } from '../lab/spec.ts';

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
        env: { ...programEnvironment(), ...env, [MARK]: lab.runDirectory },
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
