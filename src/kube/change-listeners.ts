import { errorMessage } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { ChangeListener } from './store.ts';

/** Those who follow the objects of one kind, in the order in which they came. */
export class ChangeListeners<T> {
  readonly #listeners = new Set<ChangeListener<T>>();
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  add(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  tell(key: string, current: T | undefined, previous: T | undefined): void {
    // A listener that is added during this loop has already seen the new state.
    for (const listener of Array.from(this.#listeners)) {
      if (!this.#listeners.has(listener)) continue;
      try {
        listener(key, current, previous);
      } catch (error) {
        // This is a bug of ours; the other listeners must still be called, and the watch must go on.
        this.#log.error('a listener failed', { key, error: errorMessage(error) });
      }
    }
  }
}
