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
    // Of those who come while this is told, each has learnt it from what is there.
    for (const listener of Array.from(this.#listeners)) {
      if (!this.#listeners.has(listener)) continue;
      try {
        listener(key, current, previous);
      } catch (error) {
        // A bug of ours; it must not cost the other listeners their news, nor us the watch.
        this.#log.error('a listener failed', { key, error: errorMessage(error) });
      }
    }
  }
}
