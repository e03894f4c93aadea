/** A program of the caller: run to its end, or started and watched; always with a time limit. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Written at once; standard input is closed after it unless `keepStdin` says otherwise. */
  readonly stdin?: string | Buffer;
  readonly keepStdin?: boolean;
  /** The program is killed after this; default 30 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Ended {
  /** Exit code; 128 and more where a signal ended it, as in a shell. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const POLL_MS = 20;
const KILL_AFTER_MS = 2_000;
const SIGNAL_EXIT = 128;

export class Program {
  readonly command: readonly [string, ...string[]];
  /** Resolves when it has ended and its output is complete; rejects when it could not be started. */
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  #isEnded = false;
  #timedOut = false;

  private constructor(command: readonly [string, ...string[]], options: ProgramOptions) {
    this.command = command;
    const [name, ...args] = command;
    // It gets its own process group: everything that it starts is killed with it, and an interrupt at the terminal
    // does not reach it.
    this.#child = spawn(name, args, {
      detached: true,
      stdio: 'pipe',
      env: { ...process.env, ...options.env },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    const { stdin, stdout, stderr } = this.#child;
    stdout.on('data', (chunk: Buffer) => this.#output.stdout.push(chunk));
    stderr.on('data', (chunk: Buffer) => this.#output.stderr.push(chunk));
    // If a program ends without reading its input, its exit code shows whether that was an error.
    stdin.on('error', () => undefined);
    if (options.stdin !== undefined) stdin.write(options.stdin);
    if (options.keepStdin !== true) stdin.end();
    this.ended = this.#end(options);
    // A caller that waits for it sees the failure. A caller that does not wait must not end because of it.
    this.ended.catch(() => undefined);
  }

  static start(command: readonly [string, ...string[]], options: ProgramOptions = {}): Program {
    return new Program(command, options);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get stdout(): string {
    return Buffer.concat(this.#output.stdout).toString();
  }

  get stderr(): string {
    return Buffer.concat(this.#output.stderr).toString();
  }

  write(text: string): void {
    this.#child.stdin.write(text);
  }

  closeInput(): void {
    this.#child.stdin.end();
  }

  /** Waits until standard output and error together match; the match. */
  async waitFor(pattern: RegExp, timeoutMs: number = DEFAULT_TIMEOUT_MS): Promise<RegExpExecArray> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const isLast = this.#isEnded || performance.now() > deadline;
      const match = pattern.exec(`${this.stdout}\n${this.stderr}`);
      if (match !== null) return match;
      if (isLast) throw new Error(`${this.#describe()} has not printed ${pattern}: ${this.#printed()}`);
      await sleep(POLL_MS);
    }
  }

  /** SIGTERM, then SIGKILL, to the program and what it has started. */
  async stop(): Promise<void> {
    this.#signal('SIGTERM');
    const gone = this.ended.catch(() => undefined);
    const killer = setTimeout(() => this.#signal('SIGKILL'), KILL_AFTER_MS);
    await gone;
    clearTimeout(killer);
  }

  async #end({ timeoutMs = DEFAULT_TIMEOUT_MS, signal }: ProgramOptions): Promise<Ended> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const kill = (): void => this.#signal('SIGKILL');
    const timer = setTimeout(() => {
      this.#timedOut = true;
      kill();
    }, timeoutMs);
    signal?.addEventListener('abort', kill, { once: true });
    this.#child.once('error', reject);
    this.#child.once('close', (code, name) =>
      resolve(code ?? SIGNAL_EXIT + (SIGNAL_NUMBERS[name ?? ''] ?? 0)),
    );
    try {
      const code = await promise;
      signal?.throwIfAborted();
      if (this.#timedOut) {
        throw new Error(
          `${this.#describe()} has not ended in ${Math.round(timeoutMs / 1000)} s: ${this.#printed()}`,
        );
      }
      return { code, stdout: this.stdout, stderr: this.stderr };
    } finally {
      this.#isEnded = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', kill);
    }
  }

  #signal(name: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined || this.#isEnded) return;
    try {
      process.kill(-pid, name);
    } catch {
      // Ended in this very moment.
    }
  }

  #describe(): string {
    return this.command.join(' ');
  }

  #printed(): string {
    const text = `${this.stdout}${this.stderr}`.trim();
    return text === '' ? '(it has printed nothing)' : text.slice(-1_500);
  }
}

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };

/** Runs a program to its end, whatever its exit code. */
export async function runProgram(
  command: readonly [string, ...string[]],
  options: ProgramOptions = {},
): Promise<Ended> {
  return Program.start(command, options).ended;
}

/** The same command with a terminal of that size as its standard input and output (script(1) of util-linux). */
export function onTerminal(command: string, size: { rows: number; columns: number }): [string, ...string[]] {
  const { rows, columns } = size;
  return ['script', '-qec', `stty rows ${rows} cols ${columns}; ${command}`, '/dev/null'];
}
