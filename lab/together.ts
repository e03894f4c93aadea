/**
 * Runs tasks in parallel under one signal. The first failure aborts the others, and is thrown only when all have
 * ended, so that a clean-up does not race with a task that still makes things.
 */
export async function together<T>(
  signal: AbortSignal | undefined,
  tasks: readonly ((signal: AbortSignal) => Promise<T>)[],
): Promise<T[]> {
  const failure = new AbortController();
  const joint = signal ? AbortSignal.any([signal, failure.signal]) : failure.signal;
  const results = await Promise.allSettled(
    tasks.map(async (task) => {
      try {
        return await task(joint);
      } catch (error) {
        if (!failure.signal.aborted) failure.abort(error);
        throw error;
      }
    }),
  );
  signal?.throwIfAborted();
  if (failure.signal.aborted) throw failure.signal.reason as Error;
  return results.map((result) => (result as PromiseFulfilledResult<Awaited<T>>).value);
}
