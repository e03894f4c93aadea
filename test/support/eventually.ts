/** Waits for conditions, on the real clock. */
import { hasCode } from '../../src/lib/errors.ts';

export interface Wait {
  /** One that only a fault misses, on a machine where other suites and their clusters keep both cores busy. */
  deadlineMs?: number;
  /** The least and the longest rest between two looks, milliseconds. */
  rest?: { least: number; most: number };
  /** Which failures of a look mean "not yet"; others are thrown at once. */
  isLater?: (error: unknown) => boolean;
  /** What to add to the message when the deadline is missed. */
  seen?: () => Promise<unknown>;
}

/** An API server answers so while it starts, or while it takes a new kind. Whoever waits for something asks again. */
const isUnavailable = (error: unknown): boolean =>
  hasCode(error, 'Unavailable', 'Unreachable', 'TooManyRequests');

/**
 * Machines are that much slower in some hours than in others, and what is awaited is late by as much. Deadlines tell faults apart, not slow
 * machines: only a test that fails waits for them.
 */
const SLOWEST = 3;

/** Looks until the answer is neither undefined nor false, and returns it; fails with what was missed and seen last. */
export async function awaited<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  { deadlineMs = 120_000, rest = { least: 2, most: 100 }, isLater = isUnavailable, seen }: Wait = {},
): Promise<T> {
  const began = performance.now();
  const longestMs = deadlineMs * SLOWEST;
  for (;;) {
    let problem: unknown;
    try {
      const answer = await look();
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      if (!isLater(error)) throw error;
      problem = error;
    }
    const waited = performance.now() - began;
    if (waited > longestMs) {
      const last = await seen?.().catch((error: unknown) => error);
      const details = [problem, last]
        .filter((part) => part !== undefined)
        .map((part) => `; ${describe(part)}`);
      throw new Error(`not within ${longestMs} ms: ${what}${details.join('')}`);
    }
    await new Promise((resolve) => setTimeout(resolve, restMs(waited, rest)));
  }
}

/** Waits until the condition holds. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  deadlineMs?: number,
): Promise<void> {
  await awaited(what, condition, deadlineMs === undefined ? {} : { deadlineMs });
}

/**
 * How long to rest before the next look, milliseconds: a tenth of what has been waited for, so that a wait is a tenth longer at most
 * and looks do not take the processor from what is waited for.
 */
export const restMs = (waitedMs: number, { least, most }: { least: number; most: number }): number =>
  Math.min(most, Math.max(least, waitedMs / 10));

const describe = (part: unknown): string =>
  Error.isError(part) ? part.message : JSON.stringify(part, withoutManagers, 1).slice(0, 3_000);

/** Who has written what fills pages, and explains nothing. */
const withoutManagers = (key: string, value: unknown): unknown =>
  key === 'managedFields' ? undefined : value;
