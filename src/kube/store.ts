import type { KubeObject } from '../api/wire.ts';

/** What changed under a key. With two different UIDs, the old object was deleted and another took its name. */
export type ChangeListener<T> = (key: string, current: T | undefined, previous: T | undefined) => void;

/** "namespace/name", or "name" for what has no namespace. */
export function keyOf({ metadata }: { metadata: { name: string; namespace?: string } }): string {
  const { name, namespace } = metadata;
  return namespace === undefined ? name : `${namespace}/${name}`;
}

export function refOf(key: string): { name: string; namespace?: string } {
  const slash = key.indexOf('/');
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/**
 * Objects by key, with indexes. Pure memory: it knows nothing of watches.
 *
 * Objects are frozen at their top only. That catches the usual slip (`pod.status = …` on what everybody reads)
 * at no cost, while freezing a pod to its leaves takes about as long as parsing it.
 */
export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #keyFunctions: [index: string, keys: (object: T) => string[]][] = [];
  readonly #indexes = new Map<string, Map<string, Map<string, T>>>();

  constructor(indexes: Record<string, (object: T) => string[]> = {}) {
    for (const [index, keys] of Object.entries(indexes)) this.addIndex(index, keys);
  }

  /** The index contains existing objects from the start. */
  addIndex(index: string, keys: (object: T) => string[]): void {
    this.#keyFunctions.push([index, keys]);
    this.#indexes.set(index, new Map());
    for (const [key, object] of this.#objects) this.#enter(key, object, [index, keys]);
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** What is there at the time of each walk. A bare Map iterator could be walked but once, and be empty for the next. */
  list(): Iterable<T> {
    return { [Symbol.iterator]: () => this.#objects.values() };
  }

  keys(): Iterable<string> {
    return this.#objects.keys();
  }

  get size(): number {
    return this.#objects.size;
  }

  byIndex(index: string, value: string): readonly T[] {
    return [...(this.#valuesOf(index).get(value)?.values() ?? [])];
  }

  /** Whether `byIndex` would find anything, in constant time. */
  hasIndexed(index: string, value: string): boolean {
    return this.#valuesOf(index).has(value);
  }

  /** Returns the object that was there. */
  set(key: string, object: T | undefined): T | undefined {
    const previous = this.#objects.get(key);
    if (previous !== undefined) this.#unindex(key, previous);
    if (object === undefined) {
      this.#objects.delete(key);
    } else {
      this.#objects.set(key, Object.freeze(object));
      this.#index(key, object);
    }
    return previous;
  }

  #valuesOf(index: string): Map<string, Map<string, T>> {
    const values = this.#indexes.get(index);
    if (values === undefined) throw new Error(`no such index: ${index}`);
    return values;
  }

  #index(key: string, object: T): void {
    for (const keyFunction of this.#keyFunctions) this.#enter(key, object, keyFunction);
  }

  #enter(key: string, object: T, [index, keys]: [string, (object: T) => string[]]): void {
    const values = this.#indexes.get(index);
    for (const value of keys(object)) {
      const members = values?.get(value);
      if (members === undefined) values?.set(value, new Map([[key, object]]));
      else members.set(key, object);
    }
  }

  #unindex(key: string, object: T): void {
    for (const [index, keys] of this.#keyFunctions) {
      const values = this.#indexes.get(index);
      for (const value of keys(object)) {
        const members = values?.get(value);
        members?.delete(key);
        if (members?.size === 0) values?.delete(value);
      }
    }
  }
}
