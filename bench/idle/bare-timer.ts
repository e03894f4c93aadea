/** A process that only wakes: the reference for what a wake-up costs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

export const BARE_TIMER = 'bare timer';
/** About as often as a role at rest. */
const WAKE_MS = 250;
/** What a start leaves to be done. */
const SETTLE_MS = 5000;

/** The flags of Node.js in a command line: what stands before the program. */
export const flagsIn = ([, ...rest]: readonly string[]): string[] =>
  rest.slice(
    0,
    Math.max(
      0,
      rest.findIndex((part) => !part.startsWith('-')),
    ),
  );

export async function startBareTimer(
  flags: readonly string[],
): Promise<{ readonly pid: number } & Disposable> {
  const child = spawn(
    process.execPath,
    [...flags, '--eval', `setInterval(() => undefined, ${WAKE_MS}); console.log('ready')`],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await once(child.stdout, 'data');
  await sleep(SETTLE_MS);
  const { pid = 0 } = child;
  return { pid, [Symbol.dispose]: () => void child.kill() };
}
