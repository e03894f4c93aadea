/** One command of `make test`, with its time and its end. */
import { spawn, type ChildProcess } from 'node:child_process';

/** Time from SIGTERM to SIGKILL; in this time Jest's teardown removes labs. */
const GRACE_MS = 90_000;

const active = new Set<ChildProcess>();
/** Set by a signal: nothing new is started after it. */
let isInterrupted = false;

export function say(line: string): void {
  console.log(`\n==> ${line}`);
}

export const secondsSince = (start: number): string => ((performance.now() - start) / 1000).toFixed(1);

export interface StepOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Deadline (ms of the epoch). After it the command counts as hung, and its process group is ended. */
  readonly until?: number;
}

/** Runs a command to its end and returns whether it exited with 0. */
export async function step(
  name: string,
  command: string,
  args: readonly string[],
  { env = {}, until }: StepOptions = {},
): Promise<boolean> {
  if (isInterrupted) return false;
  say(name);
  const start = performance.now();
  // It gets its own process group, so that everything it has started can be ended with it.
  const child = spawn(command, args, { stdio: 'inherit', detached: true, env: { ...process.env, ...env } });
  active.add(child);
  const release = passSignals(child);
  const watch =
    until === undefined ? undefined : setTimeout(() => end(name, child), Math.max(0, until - Date.now()));
  const ok = await new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false));
    child.once('exit', (status) => resolve(status === 0));
  });
  clearTimeout(watch);
  release();
  active.delete(child);
  // We wait for the last one, because each removes its lab.
  if (isInterrupted && active.size === 0) process.exit(1);
  console.log(`    ${name}: ${ok ? 'ok' : 'FAILED'} in ${secondsSince(start)} s`);
  return ok;
}

function end(name: string, child: ChildProcess): void {
  console.log(`    ${name}: has not ended in time; ending it`);
  signal(child, 'SIGTERM');
  const kill = setTimeout(() => signal(child, 'SIGKILL'), GRACE_MS);
  child.once('exit', () => clearTimeout(kill));
}

/** Ctrl-C at the terminal reaches only our own group. */
function passSignals(child: ChildProcess): () => void {
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const pass = (name: NodeJS.Signals): void => {
    signal(child, name);
    isInterrupted = true;
  };
  for (const name of names) process.on(name, pass);
  return () => {
    for (const name of names) process.off(name, pass);
  };
}

function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, name);
  } catch {
    // It has ended already.
  }
}
