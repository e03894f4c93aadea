import type { KubeObject } from '../../../src/api/wire.ts';
import type { ChangeListener } from '../../../src/kube/store.ts';
import { Store, keyOf } from '../../../src/kube/store.ts';

/** Stands for an Informer, without an API server behind it. */
export class FakeCollection<T extends KubeObject> {
  readonly #store: Store<T>;
  readonly #listeners = new Set<ChangeListener<T>>();

  constructor(indexes: Record<string, (object: T) => string[]> = {}) {
    this.#store = new Store(indexes);
  }

  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  list(): Iterable<T> {
    return this.#store.list();
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.#store.byIndex(index, value);
  }

  onChange(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(object: T): void {
    const previous = this.#store.set(keyOf(object), object);
    for (const listener of this.#listeners) listener(keyOf(object), object, previous);
  }

  delete(key: string): void {
    const previous = this.#store.set(key, undefined);
    for (const listener of this.#listeners) listener(key, undefined, previous);
  }
}
