import type { Breath } from './breath.ts';
import type { Clock } from './clock.ts';

/** What begins again soon would fill the memory anew. */
const CALM_MS = 5_000;
/** A program that computes for more of the time than this is at work, in short turns: a collection would hold it up, and find little. */
const BUSY_SHARE = 0.1;
/** Over less time the share says nothing. */
const LEAST_WAIT_MS = 1_000;
/** A collection stops the program for a millisecond or more for each MiB. A larger heap is left to V8, which does it bit by bit. */
const MOST_MIB = 96;
/**
 * What is to be had at least. On a busy machine a turn of the event loop is long because other programs had the core, also in a process at rest:
 * each collection wakes it and its threads a dozen times.
 */
const LEAST_MIB = 8;

interface SpareMemoryOptions {
  clock: Pick<Clock, 'monotonic' | 'after'>;
  breath: Pick<Breath, 'onLong'>;
  /** Of the heap, with its garbage. */
  usedMiB: () => number;
  /** CPU time of the process so far. */
  cpuSeconds: () => number;
  /** Collects all garbage, in one go. */
  collect: () => void;
}

/**
 * Gives back the memory that long work has needed, some seconds after it. V8 by itself does so only where a program allocates nearly
 * nothing for half a minute, and ours hears of something each second: an agent that had begun anew with 6,000 pods held 85 MiB for
 * minutes, and 52 after one collection of 19 ms. Nothing is awaited while there is no such work, and nothing collected unless the program
 * rests and the heap has grown since the last time.
 *
 * @returns what ends it
 */
export function giveBackAfterWork({
  clock,
  breath,
  usedMiB,
  cpuSeconds,
  collect,
}: SpareMemoryOptions): () => void {
  let workedAt = -Infinity;
  let leastMiB = 0;
  let cancel: (() => void) | undefined;
  const lookAfter = (delayMs: number): void => {
    const waitMs = Math.max(delayMs, LEAST_WAIT_MS);
    const before = cpuSeconds();
    cancel = clock.after(waitMs, () => look(cpuSeconds() - before > (BUSY_SHARE * waitMs) / 1_000));
  };
  const look = (isBusy: boolean): void => {
    const leftMs = workedAt + CALM_MS - clock.monotonic();
    if (leftMs > 0 || isBusy) {
      lookAfter(leftMs > 0 ? leftMs : CALM_MS);
      return;
    }
    cancel = undefined;
    const used = usedMiB();
    if (used > MOST_MIB || used < leastMiB + LEAST_MIB) return;
    collect();
    leastMiB = usedMiB();
  };
  const end = breath.onLong(() => {
    workedAt = clock.monotonic();
    if (cancel === undefined) lookAfter(CALM_MS);
  });
  return () => {
    end();
    cancel?.();
  };
}
