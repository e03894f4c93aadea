/** What all commands share: arguments, what is read from people, what is printed, and one line of complaint. */
import type { ReadStream, WriteStream } from 'node:tty';

import { errorMessage, hasCode, TributaryError } from '../lib/errors.ts';

/** Where a command writes; tests read it. */
export interface CommandIo {
  out(text: string): void;
  err(text: string): void;
  /** Absent where nothing can be read. */
  input?: CommandInput;
  /** Width of the terminal that `out` writes to; absent: it is none. */
  columns?: number;
  /** That terminal shows colours, and its owner wants them (https://no-color.org). */
  hasColours?: boolean;
}

interface CommandInput {
  /** A person is there to be asked. */
  readonly isTerminal: boolean;
  /** One line, without its end; rejects when the signal fires. */
  ask(question: string, signal: AbortSignal): Promise<string>;
  /** All there is, up to 64 KiB. */
  readAll(): Promise<string>;
}

/** Exit codes, as of most Unix tools: 2 is a mistake in the command line. Pending: a person has to decide. */
export const EXIT = { ok: 0, failed: 1, usage: 2, pending: 3 } as const;

export interface CommandLine {
  /** Values of `--name VALUE`; the last one counts. */
  values: Readonly<Record<string, string | undefined>>;
  /** Options without a value that are given. */
  flags: ReadonlySet<string>;
  positionals: readonly string[];
}

/** A mistake of the caller in the command line itself. */
export const wrongForm = (message: string): TributaryError => new TributaryError('Invalid', message);

export function required(line: CommandLine, name: string): string {
  const value = line.values[name];
  if (value === undefined || value === '') throw wrongForm(`--${name} is required`);
  return value;
}

/** The value of an option with choices, as a field of a spec; the parser has checked the choice. */
export const chosen = <Spec>(value: string | undefined, field: keyof Spec): Partial<Spec> =>
  value === undefined ? {} : ({ [field]: value } as Partial<Spec>);

/** `a,b` as a list; empty where the option is not given. */
export const listOf = (value: string | undefined): string[] =>
  (value ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/**
 * Says in one line why a command failed, and returns its exit code. `command`: how people call it, for a mistake in the command
 * line; absent where the line was understood, so that its help would not help.
 */
export function reportFailure(error: unknown, { command, io }: { command?: string; io: CommandIo }): number {
  const isMistake = hasCode(error, 'Invalid');
  io.err(`${errorMessage(error)}\n`);
  if (isMistake && command !== undefined) io.err(`see: ${command} --help\n`);
  return isMistake ? EXIT.usage : EXIT.failed;
}

const MAX_BYTES = 65_536;

/** What a person types or a pipe brings. Nothing is read before somebody asks. */
export function commandInput(
  stdin: Pick<ReadStream, 'isTTY'> & NodeJS.ReadableStream,
  stdout: Pick<WriteStream, 'isTTY'> & NodeJS.WritableStream,
): CommandInput {
  return {
    get isTerminal() {
      return stdin.isTTY && stdout.isTTY;
    },
    async ask(question, signal) {
      const { createInterface } = await import('node:readline/promises');
      const reader = createInterface({ input: stdin, output: stdout });
      try {
        return await reader.question(question, { signal });
      } finally {
        reader.close();
      }
    },
    async readAll() {
      const chunks: Buffer[] = [];
      let size = 0;
      for await (const chunk of stdin) {
        const bytes = Buffer.from(chunk);
        size += bytes.length;
        if (size > MAX_BYTES) throw new TributaryError('Invalid', 'standard input is longer than 64 KiB');
        chunks.push(bytes);
      }
      return Buffer.concat(chunks).toString('utf8');
    },
  };
}

/** What is known of the terminal at `stdout`, if it is one. */
export const terminalOf = (
  stdout: Pick<WriteStream, 'isTTY' | 'columns'>,
  env: Readonly<Record<string, string | undefined>>,
): Pick<CommandIo, 'columns' | 'hasColours'> =>
  stdout.isTTY
    ? { columns: stdout.columns, hasColours: (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb' }
    : {};
