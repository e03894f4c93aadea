import type { KubeObject } from '../api/wire.ts';
import type { ChangeListener, Store } from './store.ts';
import { keyOf } from './store.ts';
import { SharedParts } from './shared-parts.ts';
import { compareResourceVersions, isOlder } from './resource-version.ts';

/** What to make of a watch event. `contradiction`: it cannot be placed; only a new list can tell the truth. */
export type Verdict = 'applied' | 'replay' | 'contradiction';

export interface ViewOptions<T> {
  store: Store<T & KubeObject>;
  transform: (object: T) => T | undefined;
  notify: ChangeListener<T>;
}

/**
 * Moves a store forward in the API server's history, and never back: knows the newest version seen and what
 * replayed, reordered and stale answers look like.
 */
export class View<T extends KubeObject> {
  readonly #options: ViewOptions<T>;
  readonly #parts = new SharedParts<T>();
  #version: string | undefined;

  constructor(options: ViewOptions<T>) {
    this.#options = options;
  }

  /** Where to resume the watch; undefined before the first list. */
  get version(): string | undefined {
    return this.#version;
  }

  /** A list older than what we have seen, that is: from an API server that lags behind another. */
  isTimeTravel(listVersion: string): boolean {
    return this.#version !== undefined && isOlder(listVersion, this.#version);
  }

  advance(version: string): void {
    if (this.#version === undefined || !isOlder(version, this.#version)) this.#version = version;
  }

  /** As it is to be kept; undefined: it is not wanted. @param object ours alone, just read */
  prepared(object: T): T | undefined {
    const kept = this.#options.transform(object);
    return kept && this.#parts.join(kept, this.#options.store.get(keyOf(kept)));
  }

  /**
   * The whole truth at `version`. Deletions first, so that listeners see room before newcomers.
   *
   * @param items prepared ones
   * @param isAnew it is of another history, which gives out versions that we know a second time: listeners are told of all
   */
  replace(version: string, items: readonly T[], options: { isAnew?: boolean } = {}): void {
    for (const _step of this.steps(version, items, options));
  }

  /** The same, a change at a time; until the end the version is the one before. */
  *steps(
    version: string,
    items: readonly T[],
    { isAnew = false }: { isAnew?: boolean } = {},
  ): Generator<void, void> {
    const { store } = this.#options;
    const next = new Map(items.map((item) => [keyOf(item), item]));
    for (const key of store.keys()) if (!next.has(key)) this.#set(key, undefined);
    for (const [key, object] of next) {
      const known = store.get(key);
      if (!isAnew && known !== undefined && isSame(known, object)) continue;
      this.#keep(key, object);
      yield;
    }
    this.#version = version;
  }

  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): Verdict {
    const { resourceVersion, uid } = object.metadata;
    const key = keyOf(object);
    const order = compareResourceVersions(resourceVersion, this.#version ?? '');
    if (order !== undefined && order <= 0) return this.#outOfOrder(type, key, object);
    this.#version = resourceVersion;
    const known = this.#options.store.get(key);
    if (type !== 'DELETED') this.#set(key, object);
    // The deletion of an object that has already been replaced under its name is no news.
    else if (known?.metadata.uid === uid) this.#set(key, undefined, object);
    return 'applied';
  }

  /**
   * An event that is not newer than the newest seen. If the store already knows as much, it is a replay. If not,
   * events have overtaken each other, and applying it might bring the dead back.
   */
  #outOfOrder(type: string, key: string, object: T): Verdict {
    const known = this.#options.store.get(key);
    const { resourceVersion, uid } = object.metadata;
    if (known === undefined) return type === 'DELETED' ? 'replay' : 'contradiction';
    if (!isOlder(known.metadata.resourceVersion, resourceVersion)) return 'replay';
    // The end of an object whose successor is in the store already.
    return type === 'DELETED' && known.metadata.uid !== uid ? 'replay' : 'contradiction';
  }

  /** @param last the final state that a deletion carries */
  #set(key: string, object: T | undefined, last?: T): void {
    this.#keep(key, object && this.prepared(object), last && this.#options.transform(last));
  }

  #keep(key: string, kept: T | undefined, last?: T): void {
    const { store, notify } = this.#options;
    const previous = store.set(key, kept);
    if (kept === undefined && previous === undefined) return;
    notify(key, kept, last ?? previous);
  }
}

function isSame(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.uid === b.metadata.uid && a.metadata.resourceVersion === b.metadata.resourceVersion;
}
