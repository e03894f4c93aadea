/** How long the event loop of a program stood still, as `pods/loop-probe.ts` measures it from within. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';

import type { LabSpec } from '../../lab/spec.ts';
import { Program } from './program.ts';

export interface Stall {
  /** From the start of the process until it listens: it loads its code, and nothing of this counts as a stall. */
  readonly startMs: number;
  readonly p999Ms: number;
  readonly longestMs: number;
}

const TIMEOUT_MS = 300_000;
const POLL_MS = 50;

/** What Node.js is to import into the program, so that `stallOf` can ask. */
export function probeModule(file: string): string {
  const url = pathToFileURL(join(import.meta.dirname, '..', 'pods', 'loop-probe.ts'));
  url.searchParams.set('into', file);
  return url.href;
}

/**
 * A process that does nothing, and is sampled in the same way: its stalls are what the machine makes every process wait. Ask for them
 * when it has run for some seconds.
 */
export const startIdle = (lab: LabSpec, file: string): Program =>
  Program.start(
    'idle',
    [
      process.execPath,
      '--import',
      probeModule(file),
      '--eval',
      "require('node:net').createServer().listen(0, '127.0.0.1')",
    ],
    lab,
  );

/** Since it was asked the last time, or began. @param file as `probeModule` was given it */
export async function stallOf(pid: number, file: string): Promise<Stall> {
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  const end = performance.now() + TIMEOUT_MS;
  for (;;) {
    try {
      return JSON.parse(readFileSync(file, 'utf8')) as Stall;
    } catch (error) {
      if (performance.now() > end) throw new Error(`${file} is not written`, { cause: error });
      await sleep(POLL_MS);
    }
  }
}
