/**
 * Waits, on the real clock, until the condition holds; fails after `deadlineMs` and says what was waited for. The
 * deadline is one that only a fault misses: other suites and their clusters keep both cores busy.
 */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  deadlineMs = 60_000,
): Promise<void> {
  const began = performance.now();
  while (!(await condition())) {
    const waited = performance.now() - began;
    if (waited > deadlineMs) throw new Error(`not within ${deadlineMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, restMs(waited, { least: 2, most: 100 })));
  }
}

/**
 * How long to rest before the next look, milliseconds: a tenth of what has been waited for, so that a wait is a tenth longer at most
 * and looks do not take the processor from what is waited for.
 */
export const restMs = (waitedMs: number, { least, most }: { least: number; most: number }): number =>
  Math.min(most, Math.max(least, waitedMs / 10));
