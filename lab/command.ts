/** Runs a command to its end; what it printed, or one line that says why not. */
import { spawn } from 'node:child_process';

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** A command that ended with an error; `printed` is all it said, standard error last. */
export class CommandError extends Error {
  readonly printed: string;

  constructor(message: string, printed = '') {
    super(message);
    this.printed = printed;
  }
}

/** Which Debian package brings a command that may be missing. */
const packages: Readonly<Record<string, string>> = {
  buildah: 'buildah',
  mmdebstrap: 'mmdebstrap',
  npm: 'npm',
};

/** Standard output, trimmed. */
export async function run(
  program: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const [output, errors] = [text(child.stdout), text(child.stderr)];
  const status = await new Promise<number | string | null>((ended, failed) => {
    child.once('error', (cause: NodeJS.ErrnoException) => {
      failed(cause.code === 'ENOENT' ? new CommandError(missing(program)) : cause);
    });
    child.once('close', (code, signal) => ended(code ?? signal));
  });
  if (status === 0) return output().trim();
  const reason = errors().trim().split('\n').at(-1) ?? '';
  throw new CommandError(
    `${program} ${args[0] ?? ''} failed (${status}): ${reason}`,
    `${output()}\n${errors()}`,
  );
}

function missing(program: string): string {
  const name = packages[program];
  return `${program} is missing${name === undefined ? '' : `: apt-get install ${name}`}`;
}

/** Collects a stream. */
function text(stream: NodeJS.ReadableStream): () => string {
  let all = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    all += chunk;
  });
  return () => all;
}
