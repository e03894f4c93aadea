/** Runs a program to its end, in namespaces of a node where wanted. */
import { execFile } from 'node:child_process';

import { inNamespaces, type DaemonSpec } from './daemon.ts';

export interface RunOptions extends Partial<Pick<DaemonSpec, 'netns' | 'mountNamespace'>> {
  readonly stdin?: string;
  readonly signal?: AbortSignal | undefined;
  /** Default 60 s. */
  readonly timeoutMs?: number;
}

/** A program ended with an error, or does not exist. */
export class RunError extends Error {
  /** All it said, standard error last. */
  readonly printed: string;

  constructor(message: string, details: { readonly printed: string; readonly cause?: unknown }) {
    super(message, { cause: details.cause });
    this.printed = details.printed;
  }
}

const DEFAULT_TIMEOUT_MS = 60_000;
/** Bytes: the manifests of hundreds of tenants are some megabytes. */
export const MAX_OUTPUT: number = 64 * 1024 * 1024;

/** Standard output; throws with standard error when the program fails. */
export async function run(
  command: readonly [string, ...string[]],
  options: RunOptions = {},
): Promise<string> {
  const [program, ...args] = inNamespaces(command, options);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = execFile(
    program,
    args,
    {
      signal: options.signal,
      timeout: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      killSignal: 'SIGKILL',
      maxBuffer: MAX_OUTPUT,
    },
    (error, stdout, stderr) => {
      if (!error) resolve(stdout);
      else if (options.signal?.aborted) reject(error);
      else if (error.code === 'ENOENT') reject(new RunError(`${program} is missing`, { printed: '' }));
      else {
        const message = `${command.join(' ')}: ${stderr.trim() || error.message}`;
        reject(new RunError(message, { printed: `${stdout}\n${stderr}`, cause: error }));
      }
    },
  );
  // A program that ends without reading its input closes the pipe; its exit status shows whether that was an error.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(options.stdin ?? '');
  return promise;
}
