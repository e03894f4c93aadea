/** A child process of a benchmark. */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { once } from 'node:events';
import { dirname, join } from 'node:path';

import { programEnvironment } from '../../lab/compiled-program.ts';
import { MARK } from '../../lab/process.ts';
import type { LabSpec } from '../../lab/spec.ts';
import { processFigures, type ProcessFigures } from './process-figures.ts';

/** Runs until it is stopped, or until its lab is taken down. */
export class Program {
  readonly logFile: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, logFile: string) {
    this.#child = child;
    this.logFile = logFile;
  }

  /** @param environment further variables, or undefined for those that it is not to have */
  static start(
    name: string,
    [command = '', ...args]: readonly string[],
    lab: LabSpec,
    environment: Readonly<Record<string, string | undefined>> = {},
  ): Program {
    const logFile = join(lab.dataDirectory, 'log', `${name}.log`);
    mkdirSync(dirname(logFile), { recursive: true });
    const log = openSync(logFile, 'a');
    try {
      const child = spawn(command, args, {
        stdio: ['ignore', log, log],
        // If this process dies first, this program is found and ended with the lab.
        env: { ...programEnvironment(), ...environment, [MARK]: lab.runDirectory },
        cwd: dirname(logFile),
      });
      return new Program(child, logFile);
    } finally {
      closeSync(log);
    }
  }

  /** @throws if it has ended */
  get pid(): number {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) {
      throw new Error(`${this.logFile}: ended too early: ${readFileSync(this.logFile, 'utf8').slice(-2000)}`);
    }
    return pid;
  }

  get figures(): ProcessFigures {
    return processFigures(this.pid);
  }

  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode !== null || signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await ended;
  }
}
