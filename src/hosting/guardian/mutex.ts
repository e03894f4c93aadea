import { untilAborted } from '../../lib/deadline.ts';

/** Lets one caller work at a time, in the order in which they asked. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves when nobody else works, with what unlocks. */
  async lock(signal?: AbortSignal): Promise<() => void> {
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
    const unlock = await this.lock(signal);
    try {
      return await work();
    } finally {
      unlock();
    }
  }
}
