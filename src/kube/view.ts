import type { KubeObject } from '../api/wire.ts';
import type { ChangeListener, Store } from './store.ts';
import { keyOf } from './store.ts';
import { type Held, type Packer, unpacked } from './packed.ts';
import { SharedParts } from './shared-parts.ts';
import { compareResourceVersions, isOlder } from './resource-version.ts';

/** What to make of a watch event. `contradiction`: it cannot be placed; only a new list can tell the truth. */
export type Verdict = 'applied' | 'replay' | 'contradiction';

export interface ViewOptions<T> {
  store: Store<T & KubeObject>;
  transform: (object: T) => T | undefined;
  notify: ChangeListener<T>;
  /** Of the store. Objects of a list are packed as they come. */
  packer?: Packer<T & KubeObject>;
}

/**
 * For so long a list that is older than what we have seen is taken for an answer of a server that lags, unless it is known that
 * history was lost. Our lists are quorum reads, which no member of etcd can answer with an older state. What remains is a proxy
 * with a memory, or a restore under way, in which some servers still show the old etcd: both pass sooner than this.
 */
const OLDER_VIEW_PATIENCE_MS = 30_000;

/** Of a list: that which we follow, another one, or one that cannot be told from an answer of a server that lags. */
type History = 'ours' | 'another' | 'lags';

/** An object of a list, as it is to be held. */
export type Listed<T extends KubeObject> = readonly [key: string, held: Held<T>];

interface Change<T extends KubeObject> {
  /** What the store holds. */
  known: T | undefined;
  /** What it is to hold; undefined: nothing any more. */
  kept?: T | undefined;
  /** The same, where it is packed already. */
  held?: Held<T>;
  /** The final state that a deletion carries. */
  last?: T | undefined;
}

/**
 * Moves a store forward in the API server's history, and never back: knows the newest version seen and what
 * replayed, reordered and stale answers look like.
 */
export class View<T extends KubeObject> {
  readonly #options: ViewOptions<T>;
  readonly #parts = new SharedParts<T>();
  #version: string | undefined;
  /** Monotonic. */
  #olderSinceMs: number | undefined;

  constructor(options: ViewOptions<T>) {
    this.#options = options;
  }

  /** Where to resume the watch; undefined before the first list. */
  get version(): string | undefined {
    return this.#version;
  }

  /**
   * Time travel: an answer older than what we know comes from a server that lags, and taking it would undo deletions and creations.
   * Only an etcd restored from a backup stays old: we believe it when we have been told so, or after a while.
   *
   * @param goesBack it is known that history was lost. @param nowMs monotonic
   */
  historyOf(
    listVersion: string,
    { goesBack, nowMs }: { readonly goesBack: boolean; readonly nowMs: number },
  ): History {
    const isTimeTravel = this.#version !== undefined && isOlder(listVersion, this.#version);
    if (isTimeTravel && !goesBack) {
      this.#olderSinceMs ??= nowMs;
      if (nowMs - this.#olderSinceMs < OLDER_VIEW_PATIENCE_MS) return 'lags';
    }
    this.#olderSinceMs = undefined;
    return isTimeTravel || goesBack ? 'another' : 'ours';
  }

  advance(version: string): void {
    if (this.#version === undefined || !isOlder(version, this.#version)) this.#version = version;
  }

  /** An object of a list, as it is to be held; undefined: it is not wanted. @param object ours alone, just read */
  listed(object: T): Listed<T> | undefined {
    const { packer, transform } = this.#options;
    const kept = transform(object);
    if (kept === undefined) return undefined;
    const key = keyOf(kept);
    return [key, packer?.pack(kept) ?? this.#parts.join(kept, this.#options.store.get(key))];
  }

  /**
   * The whole truth at `version`. Deletions first, so that listeners see room before newcomers.
   *
   * @param items each key once
   * @param isAnew it is of another history, which gives out versions that we know a second time: listeners are told of all
   */
  replace(version: string, items: readonly Listed<T>[], options: { isAnew?: boolean } = {}): void {
    for (const _step of this.steps(version, items, options));
  }

  /** The same, a change at a time; until the end the version is the one before. */
  *steps(
    version: string,
    items: readonly Listed<T>[],
    { isAnew = false }: { isAnew?: boolean } = {},
  ): Generator<void, void> {
    const { store } = this.#options;
    const next = new Map(items);
    for (const key of store.keys()) if (!next.has(key)) this.#set(key, { known: store.get(key) });
    for (const [key, held] of next) {
      const object = unpacked(held);
      const known = store.get(key);
      if (!isAnew && known !== undefined && isSame(known, object)) continue;
      this.#set(key, { known, kept: object, held });
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
    const { store, transform } = this.#options;
    const known = store.get(key);
    if (type !== 'DELETED') {
      const kept = transform(object);
      this.#set(key, { known, kept: kept && this.#parts.join(kept, known) });
    } else if (known?.metadata.uid === uid) {
      // The deletion of an object that has already been replaced under its name is no news.
      this.#set(key, { known, last: transform(object) });
    }
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

  #set(key: string, { known, kept, held, last }: Change<T>): void {
    this.#options.store.set(key, kept, { previous: known, ...(held && { held }) });
    if (kept !== undefined || known !== undefined) this.#options.notify(key, kept, known && (last ?? known));
  }
}

function isSame(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.uid === b.metadata.uid && a.metadata.resourceVersion === b.metadata.resourceVersion;
}
