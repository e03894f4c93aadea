import type { KubeObject } from '../api/wire.ts';
import { type Held, Packed, type Packer, unpacked } from './packed.ts';

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

/** So many of the objects that were changed last are held as they are: what has just changed is looked at again and again. */
const MOST_LOOSE = 512;

/**
 * Objects by key, with indexes. Pure memory: it knows nothing of watches.
 *
 * Objects are frozen at their top only. That catches the usual slip (`pod.status = …` on what everybody reads)
 * at no cost, while freezing a pod to its leaves takes about as long as parsing it.
 *
 * With a packer, what has not changed for long is held packed, and unpacked anew (some 4 µs for a pod) for each look at it.
 */
export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, Held<T>>();
  readonly #indexes = new Map<string, Index<T>>();
  readonly #packer: Packer<T> | undefined;
  /** Keys of what is not packed, the oldest change first. */
  readonly #loose = new Set<string>();

  constructor(indexes: Record<string, (object: T) => string[]> = {}, packer?: Packer<T>) {
    this.#packer = packer;
    for (const [index, keys] of Object.entries(indexes)) this.addIndex(index, keys);
  }

  /** The index contains existing objects from the start. */
  addIndex(index: string, keys: (object: T) => string[]): void {
    const made = new Index(keys);
    this.#indexes.set(index, made);
    for (const [key, held] of this.#objects) made.change(key, undefined, unpacked(held));
  }

  get(key: string): T | undefined {
    const held = this.#objects.get(key);
    return held && unpacked(held);
  }

  /** What is there at the time of each walk. A bare Map iterator could be walked but once, and be empty for the next. */
  list(): Iterable<T> {
    const held = this.#objects;
    return { [Symbol.iterator]: () => held.values().map(unpacked<T>) };
  }

  keys(): Iterable<string> {
    return this.#objects.keys();
  }

  get size(): number {
    return this.#objects.size;
  }

  byIndex(index: string, value: string): readonly T[] {
    const found: T[] = [];
    for (const key of this.keysByIndex(index, value)) {
      const object = this.get(key);
      if (object !== undefined) found.push(object);
    }
    return found;
  }

  /** Keys of what `byIndex` would find. What is only named is not unpacked. */
  keysByIndex(index: string, value: string): Iterable<string> {
    return this.#index(index).keysOf(value);
  }

  /** Whether `byIndex` would find anything, in constant time. */
  hasIndexed(index: string, value: string): boolean {
    return this.#index(index).has(value);
  }

  /** All values of an index, each once. */
  valuesOf(index: string): Iterable<string> {
    return this.#index(index).values();
  }

  /**
   * Returns the object that was there.
   *
   * @param object undefined: it is gone
   * @param options `held`: the same object, if it is to be held packed from the start. `previous`: what `get` has just returned, so that
   *   it is not unpacked once more
   */
  set(
    key: string,
    object: T | undefined,
    options: { held?: Held<T>; previous?: T | undefined } = {},
  ): T | undefined {
    const previous = 'previous' in options ? options.previous : this.get(key);
    this.#loose.delete(key);
    if (object === undefined) this.#objects.delete(key);
    else {
      const { held = object } = options;
      Object.freeze(object);
      this.#objects.set(key, held);
      if (!(held instanceof Packed)) this.#touch(key);
    }
    for (const index of this.#indexes.values()) index.change(key, previous, object);
    return previous;
  }

  #touch(key: string): void {
    if (this.#packer === undefined) return;
    this.#loose.add(key);
    if (this.#loose.size <= MOST_LOOSE) return;
    for (const oldest of this.#loose) {
      this.#loose.delete(oldest);
      const object = this.get(oldest);
      if (object !== undefined) this.#objects.set(oldest, this.#packer.pack(object));
      return;
    }
  }

  #index(name: string): Index<T> {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new Error(`no such index: ${name}`);
    return index;
  }
}

/** Keys of objects by a value of theirs. A value of one object, such as a UID, is not worth a set. */
class Index<T> {
  readonly #valuesOf: (object: T) => string[];
  readonly #keys = new Map<string, string | Set<string>>();

  constructor(valuesOf: (object: T) => string[]) {
    this.#valuesOf = valuesOf;
  }

  has(value: string): boolean {
    return this.#keys.has(value);
  }

  values(): Iterable<string> {
    return this.#keys.keys();
  }

  keysOf(value: string): Iterable<string> {
    const keys = this.#keys.get(value) ?? [];
    return typeof keys === 'string' ? [keys] : keys;
  }

  change(key: string, previous: T | undefined, current: T | undefined): void {
    const before = previous === undefined ? [] : this.#valuesOf(previous);
    const after = current === undefined ? [] : this.#valuesOf(current);
    // Few changes of an object are one of what it is found by.
    if (before.length === after.length && after.every((value, place) => value === before[place])) return;
    const kept = new Set(after);
    for (const value of before) if (!kept.has(value)) this.#leave(value, key);
    for (const value of kept) this.#enter(value, key);
  }

  #enter(value: string, key: string): void {
    const keys = this.#keys.get(value);
    if (keys === undefined) this.#keys.set(value, key);
    else if (typeof keys !== 'string') keys.add(key);
    else if (keys !== key) this.#keys.set(value, new Set([keys, key]));
  }

  #leave(value: string, key: string): void {
    const keys = this.#keys.get(value);
    if (keys === key) this.#keys.delete(value);
    else if (typeof keys === 'object' && keys.delete(key) && keys.size === 0) this.#keys.delete(value);
  }
}
