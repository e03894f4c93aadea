import { untilAborted } from '../../lib/deadline.ts';

/** One at a time, in the order of asking. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves when it is our turn, with what ends it. */
  async take(signal?: AbortSignal): Promise<() => void> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = before.then(async () => promise);
    try {
      await untilAborted(before, signal);
    } catch (error) {
      resolve();
      throw error;
    }
    return resolve;
  }

  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const end = await this.take(signal);
    try {
      return await work();
    } finally {
      end();
    }
  }
}
