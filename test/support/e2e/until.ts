/** Waits on real clusters: a look every so often, and a message with what was seen last. */
import { awaited } from '../eventually.ts';

const POLL_MS = 100;
/** Each look often starts a program. */
const REST = { least: 100, most: 500 };

/** Asks until the answer is neither undefined nor false, and returns it. Errors count as "not yet". */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  { seconds = 120, ...options }: { seconds?: number; seen?: () => Promise<unknown> } = {},
): Promise<T> {
  return awaited(what, ask, { ...options, deadlineMs: seconds * 1000, rest: REST, isLater: () => true });
}

/** Collects what is seen during some time, for tests of what must not happen. */
export async function during(seconds: number, look: () => Promise<void>): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    await look();
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
