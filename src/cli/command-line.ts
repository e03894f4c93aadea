/** What all commands share: arguments, what is read from people, what is printed, and one line of complaint. */
import { createInterface } from 'node:readline/promises';
import type { ReadStream, WriteStream } from 'node:tty';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { stringify } from 'yaml';

import { errorMessage, hasCode, TributaryError } from '../lib/errors.ts';

/** Where a command writes; tests read it. */
export interface CommandIo {
  out(text: string): void;
  err(text: string): void;
  /** Absent where nothing can be read. */
  input?: CommandInput;
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
  /** Values of `--name value`, the last one counts. */
  values: Readonly<Record<string, string | undefined>>;
  /** Options without a value that are given. */
  flags: ReadonlySet<string>;
  positionals: readonly string[];
}

/** Somebody asks for the usage. */
class HelpWanted extends Error {}

/** The command line has another form than the usage says. A value of the wrong kind is no such mistake. */
class WrongForm extends TributaryError {
  constructor(message: string) {
    super('Invalid', message);
  }
}
export const wrongForm = (message: string): TributaryError => new WrongForm(message);

/** Options take a value, flags do not; an unknown one, or an option without its value, is an Invalid error. */
export function parseCommandLine(
  args: readonly string[],
  options: readonly string[],
  flags: readonly string[] = [],
): CommandLine {
  const config = {
    args: [...args],
    options: {
      ...Object.fromEntries(options.map((name) => [name, { type: 'string' as const }])),
      ...Object.fromEntries(flags.map((name) => [name, { type: 'boolean' as const }])),
    },
    allowPositionals: true,
  };
  try {
    const { values, positionals } = parseArgs(config);
    const given = Object.entries(values as Record<string, string | boolean | undefined>);
    return {
      values: Object.fromEntries(
        given.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
      ),
      flags: new Set(given.flatMap(([name, value]) => (value === true ? [name] : []))),
      positionals,
    };
  } catch (error) {
    if (args.includes('--help') || args.includes('-h')) throw new HelpWanted();
    // The parser's advice on how to pass odd values takes more than one line.
    throw (
      doubtfulValue(error, config) ?? wrongForm(errorMessage(error).split(/\. |\n/)[0] ?? 'bad arguments')
    );
  }
}

/** What is wrong, where the argument after an option begins with `-`: it is a value, or the value was forgotten. */
function doubtfulValue(error: unknown, config: ParseArgsConfig): TributaryError | undefined {
  if ((error as { code?: unknown }).code !== 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE') return undefined;
  const { tokens } = parseArgs({ ...config, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind !== 'option' || token.inlineValue !== false || !/^-./.test(token.value)) continue;
    const { name, value } = token;
    if (value.startsWith('--')) return wrongForm(`--${name} needs a value`);
    return new TributaryError(
      'Invalid',
      `--${name}: a value that begins with "-" must be joined to it: --${name}=${value}`,
    );
  }
  return undefined;
}

export function required(line: CommandLine, name: string): string {
  const value = line.values[name];
  if (value === undefined || value === '') throw wrongForm(`--${name} is required`);
  return value;
}

/** Exactly these positional arguments; else the form is wrong. */
export function positionals(line: CommandLine, names: readonly string[]): string[] {
  const missing = names[line.positionals.length];
  if (missing !== undefined) throw wrongForm(`${missing} is missing`);
  const extra = line.positionals[names.length];
  if (extra !== undefined) throw wrongForm(`unexpected argument "${extra}"`);
  return [...line.positionals];
}

/** `a,b` as a list; empty where the option is not given. */
export const listOf = (value: string | undefined): string[] =>
  (value ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** kubectl reads YAML 1.1, in which `on`, `no` and 1:30 are no strings: those are quoted. */
const YAML_OPTIONS = { aliasDuplicateObjects: false, lineWidth: 110, compat: 'yaml-1.1' } as const;

/** One YAML document an object, in their order; equal parts are written out, since kubectl users edit this. */
export const printYaml = (objects: readonly object[]): string =>
  objects.map((object) => stringify(object, YAML_OPTIONS)).join('---\n');

/** Runs a command; a mistake of the caller is told as by `reportFailure`, and ends with EXIT.usage. */
export async function runCommand(
  usage: string,
  io: CommandIo,
  command: () => string | Promise<string>,
): Promise<number> {
  try {
    io.out(await command());
    return EXIT.ok;
  } catch (error) {
    return reportFailure(error, { usage, io });
  }
}

/**
 * Says in one line why a command failed, and returns its exit code. The usage follows where the form is wrong; under a wrong
 * value it would hide the reason. `isParsed`: the command line was understood, so that neither would help.
 */
export function reportFailure(
  error: unknown,
  { usage, io, isParsed = false }: { usage: string; io: CommandIo; isParsed?: boolean },
): number {
  if (error instanceof HelpWanted) {
    io.out(`usage: ${usage}\n`);
    return EXIT.ok;
  }
  const isMistake = hasCode(error, 'Invalid');
  io.err(`${errorMessage(error)}\n`);
  if (isMistake && !isParsed) {
    io.err(error instanceof WrongForm ? `usage: ${usage}\n` : `see: ${nameOf(usage)} --help\n`);
  }
  return isMistake ? EXIT.usage : EXIT.failed;
}

/** `tributary token` of `tributary token create ...`. */
const nameOf = (usage: string): string => usage.split(/[\s|]/, 2).join(' ');

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
