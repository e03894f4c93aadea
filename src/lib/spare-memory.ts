import type { Breath } from './breath.ts';
import type { Clock } from './clock.ts';

/** What begins again soon would fill the memory anew. */
const CALM_MS = 5_000;
/** A collection stops the program for a millisecond or more for each MiB. A larger heap is left to V8, which does it bit by bit. */
const MOST_MIB = 96;

interface SpareMemoryOptions {
  clock: Pick<Clock, 'monotonic' | 'after'>;
  breath: Pick<Breath, 'onLong'>;
  /** Of the heap, with its garbage. */
  usedMiB: () => number;
  /** Collects all garbage, in one go. */
  collect: () => void;
}

/**
 * Gives back the memory that long work has needed, some seconds after it. V8 by itself does so only where a program allocates nearly
 * nothing for half a minute, and ours hears of something each second: an agent that had begun anew with 6,000 pods held 85 MiB for
 * minutes, and 52 after one collection of 19 ms. Nothing is awaited while there is no such work.
 *
 * @returns what ends it
 */
export function giveBackAfterWork({ clock, breath, usedMiB, collect }: SpareMemoryOptions): () => void {
  let workedAt = -Infinity;
  let cancel: (() => void) | undefined;
  const look = (): void => {
    const leftMs = workedAt + CALM_MS - clock.monotonic();
    cancel = leftMs > 0 ? clock.after(leftMs, look) : undefined;
    if (leftMs <= 0 && usedMiB() <= MOST_MIB) collect();
  };
  const end = breath.onLong(() => {
    workedAt = clock.monotonic();
    cancel ??= clock.after(CALM_MS, look);
  });
  return () => {
    end();
    cancel?.();
  };
}
