/**
 * Runs `nft` and `wg`: no shell, a bare environment, a time limit.
 *
 * Secrets go in through `input` (standard input) or through `secrets`, of which each becomes a file without a name in
 * memory that the program opens as `/dev/fd/3`, `/dev/fd/4`, ... Node's own pipes are sockets, which Linux refuses to
 * open by such a path.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, openSync, writeSync } from 'node:fs';

import { TributaryError } from '../../lib/errors.ts';

export interface ToolOptions {
  input?: string;
  secrets?: readonly string[];
  signal?: AbortSignal;
}

export interface ToolResult {
  code: number;
  output: string;
  /** One line, for people. */
  complaint: string;
}

/** A change of some thousand rules takes much less than a second. */
const TIME_LIMIT_MS = 20_000;
const LARGEST_OUTPUT = 256 * 2 ** 20;
const LONGEST_COMPLAINT = 400;
/** Messages must be the same everywhere, and the program must not see secrets in our environment. */
const ENVIRONMENT = { LC_ALL: 'C', PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };
/** A directory in which Linux keeps files in memory only. */
const MEMORY = '/dev/shm';
/** O_TMPFILE of Linux, which Node does not name: a file that never has a path. */
const NAMELESS = 0o20_000_000 | constants.O_DIRECTORY | constants.O_RDWR;
/** 32 bytes in base64. A program may quote a bad key, which must not get into our messages. */
const ANY_KEY = /[A-Za-z0-9+/]{40,}=*/g;

/**
 * Resolves whatever the exit code is.
 *
 * @throws Unavailable when the program is missing or takes too long, Aborted by the signal.
 */
export async function runTool(
  program: string,
  args: readonly string[],
  options: ToolOptions = {},
): Promise<ToolResult> {
  const files: number[] = [];
  try {
    for (const secret of options.secrets ?? []) files.push(hide(secret));
    return await finish(program, start(program, args, options, files), options.input);
  } finally {
    for (const file of files) closeSync(file);
  }
}

function hide(secret: string): number {
  try {
    const file = openSync(MEMORY, NAMELESS, 0o600);
    writeSync(file, secret);
    return file;
  } catch (error) {
    throw new TributaryError('Unavailable', `no secret can be handed over without ${MEMORY}; mount it`, {
      cause: error,
    });
  }
}

function start(
  program: string,
  args: readonly string[],
  { signal }: ToolOptions,
  files: readonly number[],
): ChildProcess {
  if (signal?.aborted === true) throw new TributaryError('Aborted', `${program} was not run: stopping`);
  return spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe', ...files],
    env: ENVIRONMENT,
    timeout: TIME_LIMIT_MS,
    killSignal: 'SIGKILL',
    ...(signal !== undefined && { signal }),
  });
}

async function finish(program: string, child: ChildProcess, input = ''): Promise<ToolResult> {
  const { promise, resolve, reject } = Promise.withResolvers<ToolResult>();
  const output = gather(child.stdout, () => child.kill('SIGKILL'));
  const errors = gather(child.stderr, () => child.kill('SIGKILL'));
  child.on('error', (error) => reject(failure(program, error)));
  child.on('close', (code, signal) => {
    if (code !== null) resolve({ code, output: output(), complaint: oneLine(errors()) });
    else
      reject(
        new TributaryError(
          'Unavailable',
          `${program} was ended by ${signal ?? 'a signal'}; it took too long`,
        ),
      );
  });
  // A program that ends before it has read all of its input says why by its exit code.
  child.stdin?.on('error', () => {});
  child.stdin?.end(input);
  return promise;
}

function gather(stream: ChildProcess['stdout'], tooMuch: () => void): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream?.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size > LARGEST_OUTPUT) tooMuch();
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

function failure(program: string, error: NodeJS.ErrnoException): TributaryError {
  if (error.name === 'AbortError') return new TributaryError('Aborted', `${program} was stopped`);
  const why =
    error.code === 'ENOENT' ? 'it is not installed; use the image of Tributary or install it' : error.message;
  return new TributaryError('Unavailable', `${program} cannot be run: ${why}`);
}

function oneLine(text: string): string {
  const line = text
    .replaceAll(ANY_KEY, '(key)')
    .replaceAll(/[\s^~]+/g, ' ')
    .trim();
  return line.length > LONGEST_COMPLAINT ? `${line.slice(0, LONGEST_COMPLAINT)} ...` : line;
}
