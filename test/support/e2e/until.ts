/** Waits on real clusters: a look every so often, and a message with what was seen last. */
import { restMs } from '../eventually.ts';

const POLL_MS = 100;
/** Each look often starts a program. */
const POLL = { least: 100, most: 500 };

/** Asks until the answer is neither undefined nor false, and returns it. Errors count as "not yet". */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  options: { seconds?: number; seen?: () => Promise<unknown> } = {},
): Promise<T> {
  const { seconds = 60, seen } = options;
  const began = performance.now();
  let problem: unknown;
  for (;;) {
    try {
      const answer = await ask();
      problem = undefined;
      if (answer !== undefined && answer !== false) return answer;
    } catch (error) {
      problem = error;
    }
    const waited = performance.now() - began;
    if (waited > seconds * 1000) break;
    await new Promise((resolve) => setTimeout(resolve, restMs(waited, POLL)));
  }
  const last = await seen?.().catch((error: unknown) => error);
  const details = [problem, last].filter((part) => part !== undefined).map(describe);
  throw new Error(`not within ${seconds} s: ${what}${details.map((text) => `; ${text}`).join('')}`);
}

/** Collects what is seen during some time, for tests of what must not happen. */
export async function during(seconds: number, look: () => Promise<void>): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    await look();
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

const describe = (part: unknown): string =>
  Error.isError(part) ? part.message : JSON.stringify(part, undefined, 1).slice(0, 3_000);
