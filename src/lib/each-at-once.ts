import { throwFirst } from './errors.ts';

/**
 * Does the work for each item, for at most so many of them at a time, and returns the results in the order of the items.
 * A failure keeps no other item from being worked on. The first one rejects when all work has ended: what went on in the
 * background could undo what the caller does next.
 */
export async function eachAtOnce<T, R>(
  items: readonly T[],
  most: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const failures: unknown[] = [];
  const left = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of left) {
      try {
        results[index] = await work(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, worker));
  throwFirst(failures);
  return results;
}
