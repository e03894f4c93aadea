/** How a program of this folder ends: what went wrong in words, and nothing left behind. */
// The lab's PKI stands on decorators.
import 'reflect-metadata';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

import { Lab } from '../../lab/lab.ts';
import { isMistake } from './arguments.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
type SignalName = (typeof SIGNALS)[number];

/** For work that hears of the interruption to put away what it has made. */
const LONGEST_END_MS = 30_000;
/** Who ends a program and then its group, as timeout(1) does, has asked once. */
const SAME_MS = 1_000;
/** A mistake of the caller, as with all commands of this repository. */
const USAGE_EXIT = 2;

/**
 * Runs a program. A mistake of its caller is told in one line, with exit code 2. If it is interrupted, its labs are taken down and
 * it ends as a shell expects it; asked twice, it ends at once.
 *
 * @param name how messages begin
 */
export async function runProgram(
  name: string,
  work: (signal: AbortSignal) => Promise<void> | void,
): Promise<void> {
  const interruption = new AbortController();
  const { promise: interrupted, resolve: interrupt } = Promise.withResolvers<SignalName>();
  let asked = Infinity;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (performance.now() - asked > SAME_MS) process.exit(exitCodeOf(signal));
      if (interruption.signal.aborted) return;
      asked = performance.now();
      interruption.abort(new Error(`interrupted by ${signal}`));
      interrupt(signal);
    });
  }
  const working = performing(name, work, interruption.signal);
  const signal = await Promise.race([working, interrupted]);
  if (signal === undefined) return;
  console.error(`${name}: interrupted by ${signal}: removing what was made; once more ends at once`);
  // What still asks the clusters that go now fails, and nobody waits for it.
  for (const event of ['unhandledRejection', 'uncaughtException'] as const)
    process.on(event, () => undefined);
  const labs = await Lab.downHeld();
  if (labs.length === 0) await Promise.race([working, sleep(LONGEST_END_MS)]);
  process.exit(exitCodeOf(signal));
}

async function performing(
  name: string,
  work: (signal: AbortSignal) => Promise<void> | void,
  signal: AbortSignal,
): Promise<undefined> {
  try {
    await work(signal);
  } catch (error) {
    if (!signal.aborted) report(name, error);
  }
}

function report(name: string, error: unknown): void {
  if (isMistake(error)) {
    console.error(`${name}: ${error.message}`);
    process.exitCode = USAGE_EXIT;
    return;
  }
  // Where it happened is of use to whoever mends it.
  console.error(`${name}:`, error);
  process.exitCode = 1;
}

const exitCodeOf = (signal: SignalName): number => 128 + constants.signals[signal];
