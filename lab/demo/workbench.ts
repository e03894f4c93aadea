/**
 * The environment of a person at work: `kubectl` and `tributary` on the PATH, contexts `home` and `foreign`, a folder
 * with the manifests. It is in the lab's own folder and is removed with it.
 */
import { chmodSync, cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { binaries } from '../binaries.ts';
import { cacheDir } from '../cache.ts';
import type { Lab } from '../lab.ts';
import { mainModule } from '../own-program.ts';
import { onTerminal, Program, runProgram, type Ended, type ProgramOptions } from './program.ts';

export interface ShellOptions extends Omit<ProgramOptions, 'env' | 'cwd'> {
  /** Give the command a terminal of this size. */
  readonly terminal?: { rows: number; columns: number };
}

export class Workbench {
  readonly lab: Lab;
  readonly directory: string;
  /** What every command is run with. */
  readonly env: Readonly<Record<string, string>>;
  readonly kubectl: string;
  readonly #signal: AbortSignal | undefined;

  private constructor(lab: Lab, kubectl: string, signal: AbortSignal | undefined) {
    this.lab = lab;
    this.kubectl = kubectl;
    this.directory = join(lab.spec.dataDirectory, 'workbench');
    this.env = {
      PATH: `${join(this.directory, 'bin')}:${process.env['PATH'] ?? ''}`,
      KUBECONFIG: lab.clusters.map(({ kubeconfig }) => kubeconfig).join(':'),
      // kubectl's discovery cache would stay in the caller's home otherwise.
      KUBECACHEDIR: join(this.directory, 'kube-cache'),
      HOME: this.directory,
    };
    this.#signal = signal;
  }

  /** Makes a new folder, with a copy of `files` in it. `main`: of another version of the program. */
  static async create(
    lab: Lab,
    options: { files?: string; main?: string; signal?: AbortSignal } = {},
  ): Promise<Workbench> {
    const { kubectl } = await binaries(undefined, ['kubectl']);
    const bench = new Workbench(lab, kubectl, options.signal);
    const bin = join(bench.directory, 'bin');
    rmSync(bench.directory, { recursive: true, force: true });
    mkdirSync(bin, { recursive: true });
    if (options.files !== undefined) cpSync(options.files, bench.directory, { recursive: true });
    symlinkSync(kubectl, join(bin, 'kubectl'));
    const tributary = join(bin, 'tributary');
    // With cached compiled code a start takes a third of the time.
    const cache = `NODE_COMPILE_CACHE='${join(cacheDir(), 'compiled')}'`;
    writeFileSync(
      tributary,
      `#!/bin/sh\n${cache} exec '${process.execPath}' '${options.main ?? mainModule()}' "$@"\n`,
    );
    chmodSync(tributary, 0o755);
    return bench;
  }

  /** Runs a shell command to its end. */
  async run(command: string, options: ShellOptions = {}): Promise<Ended> {
    return runProgram(argumentsOf(command, options), this.#options(options));
  }

  /** Starts a shell command. */
  start(command: string, options: ShellOptions = {}): Program {
    return Program.start(argumentsOf(command, options), this.#options(options));
  }

  #options(options: ShellOptions): ProgramOptions {
    const { env, directory: cwd } = this;
    return { signal: this.#signal, keepStdin: options.terminal !== undefined, ...options, env, cwd };
  }
}

const argumentsOf = (command: string, { terminal }: ShellOptions): [string, ...string[]] =>
  // exec: the shell becomes a single command, and a signal reaches that.
  terminal === undefined ? ['sh', '-c', command] : onTerminal(command, terminal);
