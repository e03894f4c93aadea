/**
 * Exclusive locks on files. flock(1) holds one in a child that ends with our end of its pipe: however this process dies, the
 * kernel frees the lock, and nobody has to guess whether a process id is stale.
 */
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

export interface FileLock {
  release(): Promise<void>;
  /** It no longer keeps this process alive. */
  unref(): void;
}

/** The exit code of flock(1) if somebody else has the lock; no shell uses it. */
const BUSY = 75;

/** Waits for the lock; aborting the signal ends the wait. */
export async function lockFile(file: string, signal?: AbortSignal): Promise<FileLock> {
  const lock = await acquire([file], signal);
  if (lock === undefined) throw new Error(`could not lock ${file}`);
  return lock;
}

/** The lock; undefined if somebody else has it. */
export const tryLockFile = async (file: string): Promise<FileLock | undefined> =>
  acquire(['-n', '-E', String(BUSY), file]);

/**
 * An interrupt at the terminal, or a signal to the whole process group, also reaches this child. While it waits, that
 * ends the wait. Once it holds the lock, it must stay, because we still have to clean up under it.
 */
const HOLD = 'trap "" HUP INT TERM; echo held; exec cat <&3 >/dev/null';

async function acquire(args: readonly string[], signal?: AbortSignal): Promise<FileLock | undefined> {
  signal?.throwIfAborted();
  const holder = spawn('flock', [...args, 'sh', '-c', HOLD], { stdio: ['ignore', 'pipe', 'ignore', 'pipe'] });
  // Not its standard input: Node.js closes that when flock(1) itself ends.
  const [, printed, , life] = holder.stdio as unknown as [null, Socket, null, Socket];
  // Whoever kills that child resets its end.
  life.on('error', () => undefined);
  const abort = (): boolean => holder.kill();
  signal?.addEventListener('abort', abort, { once: true });
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  holder.once('close', () => end());
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  holder.once('error', (cause) =>
    reject(new Error('flock is missing: install the package util-linux', { cause })),
  );
  holder.once('close', (code) => {
    if (code === BUSY) resolve(false);
    else reject(signal?.aborted === true ? signal.reason : new Error(`could not lock ${args.at(-1) ?? ''}`));
  });
  printed.once('data', () => resolve(true));
  try {
    if (!(await promise)) return undefined;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
  return {
    release: async () => {
      life.destroy();
      // We also wait for the end of a child that was released.
      holder.ref();
      await ended;
    },
    unref: () => {
      holder.unref();
      for (const stream of [life, printed]) stream.unref();
    },
  };
}
