import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { untilAborted } from '../lib/deadline.ts';
import { TributaryError } from '../lib/errors.ts';
import { Listeners } from '../lib/listeners.ts';
import type { Cache } from './cache.ts';
import { ChangeListeners } from './change-listeners.ts';
import type { ContactState } from './contact.ts';
import { Informer, type InformerOptions } from './informer.ts';
import { type ChangeListener, keyOf } from './store.ts';

export type CachesOptions = Pick<InformerOptions<KubeObject>, 'client' | 'clock' | 'log' | 'random'>;

type KeyFunction<T> = (object: T) => string[];

/** What one asker wants. `list` and `transform` say which watch it is; the rest is the asker's own. */
export interface CacheOptions<T extends KubeObject> extends Pick<InformerOptions<T>, 'indexes' | 'name'> {
  /** What the API server is to send. Default: all of the kind. */
  list?: InformerOptions<T>['list'];
  /** As of an Informer. The same function for all who share: one that is made anew for each asker makes each a watch. */
  transform?: (object: T) => T | undefined;
  /** Which of the objects this asker sees. Where others watch all of a kind anyway, that is cheaper than a selector. */
  only?: (object: T) => boolean;
}

/** One watch, and how many askers see it. */
interface Watch {
  informer: Informer<KubeObject>;
  synced: Promise<void>;
  askers: number;
  /** Names under which the askers' indexes are kept: those of two askers may bear the same name. */
  indexes: Map<KeyFunction<KubeObject>, string>;
}

/** A place at a watch. */
interface Seat<T extends KubeObject> {
  informer: Informer<T>;
  /** Rejects when the watch ends. */
  synced: Promise<void>;
  /** Returns the name of the index. */
  index(keys: KeyFunction<T>): string;
  /** The last one who leaves ends the watch. */
  leave(): Promise<void>;
}

/**
 * The caches of one process at one API server: of each kind, selection and form there is one watch and one copy, so that
 * all parts of the process see the same truth at the same time. A part asks for what it wants, and starts and stops that
 * as if it were its own; the watch runs from the first start to the last stop.
 */
export class Caches {
  readonly #options: CachesOptions;
  readonly #watches = new Map<string, Watch>();
  readonly #transforms = new Map<unknown, number>([[undefined, 0]]);

  constructor(options: CachesOptions) {
    this.#options = options;
  }

  /** Nothing is asked of the API server before it is started. Each asker has one of its own. */
  of<T extends KubeObject>(type: ResourceType<T>, options: CacheOptions<T> = {}): Cache<T> {
    const { list = {}, name = nameOf(type, list) } = options;
    const take = (): Seat<T> => this.#take(type, options);
    const listeners = new ChangeListeners<T>(this.#options.log.named('cache', { cache: name }));
    return new SharedCache<T>({ ...options, name, take, listeners });
  }

  #take<T extends KubeObject>(type: ResourceType<T>, { list = {}, transform }: CacheOptions<T>): Seat<T> {
    const key = this.#keyOf(type, list, transform);
    const watch = this.#watches.get(key) ?? this.#open(key, { type, list, ...(transform && { transform }) });
    watch.askers++;
    return {
      // Who asks with the same key has asked for the same kind in the same form.
      informer: watch.informer as unknown as Informer<T>,
      synced: watch.synced,
      index: (keys) => indexIn(watch, keys as unknown as KeyFunction<KubeObject>),
      leave: async () => {
        watch.askers--;
        if (watch.askers > 0) return;
        this.#watches.delete(key);
        await watch.informer.stop();
      },
    };
  }

  #open<T extends KubeObject>(
    key: string,
    wanted: Pick<InformerOptions<T>, 'type' | 'list' | 'transform'>,
  ): Watch {
    const informer = new Informer<T>({ ...this.#options, ...wanted });
    const watch = {
      informer: informer as unknown as Informer<KubeObject>,
      synced: informer.start(new AbortController().signal),
      askers: 0,
      indexes: new Map(),
    };
    // Told to those who wait for it.
    watch.synced.catch(() => undefined);
    this.#watches.set(key, watch);
    return watch;
  }

  #keyOf(
    { group, version, plural }: ResourceType<KubeObject>,
    {
      namespace,
      labelSelector,
      fieldSelector,
      metadataOnly = false,
      limit,
    }: InformerOptions<KubeObject>['list'],
    transform: unknown,
  ): string {
    const form = this.#transforms.get(transform) ?? this.#transforms.size;
    this.#transforms.set(transform, form);
    const selection = [namespace ?? null, labelSelector ?? null, fieldSelector ?? null, limit ?? null];
    return JSON.stringify([group, version, plural, ...selection, metadataOnly, form]);
  }
}

const nameOf = ({ plural }: ResourceType<KubeObject>, { namespace }: { namespace?: string }): string =>
  `cache of ${plural}${namespace === undefined ? '' : ` in ${namespace}`}`;

function indexIn(watch: Watch, keys: KeyFunction<KubeObject>): string {
  const known = watch.indexes.get(keys);
  if (known !== undefined) return known;
  const name = String(watch.indexes.size);
  watch.indexes.set(keys, name);
  watch.informer.addIndex(name, keys);
  return name;
}

interface SharedCacheOptions<T extends KubeObject> extends CacheOptions<T> {
  name: string;
  take: () => Seat<T>;
  listeners: ChangeListeners<T>;
}

const UNKNOWN: ContactState = { lastOkAt: -Infinity, failingSince: undefined, error: undefined };

/** What one asker sees of a watch: nothing before its own start, then what is there, then what changes. */
class SharedCache<T extends KubeObject> implements Cache<T> {
  readonly name: string;
  readonly #options: SharedCacheOptions<T>;
  readonly #contactChanged = new Listeners();
  readonly onContact: Listeners['add'] = this.#contactChanged.add;
  readonly #abort = new AbortController();
  readonly #indexes = new Map<string, string>();
  /** Keys of which it was told: the last state of what is deleted may be out of its sight. */
  readonly #inSight = new Set<string>();
  #seat: Seat<T> | undefined;
  #isTold = false;
  #leave: () => Promise<void> = async () => Promise.resolve();

  constructor(options: SharedCacheOptions<T>) {
    this.name = options.name;
    this.#options = options;
  }

  async start(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#abort.signal.throwIfAborted();
    const seat = (this.#seat = this.#options.take());
    for (const [name, keys] of Object.entries(this.#options.indexes ?? {})) {
      this.#indexes.set(name, seat.index(keys));
    }
    for (const object of seat.informer.list()) this.#tell(keyOf(object), object, undefined);
    this.#isTold = true;
    const ends = [
      seat.informer.onChange((...change) => this.#tell(...change)),
      seat.informer.onContact(() => this.#contactChanged.tell()),
    ];
    const stop = (): void => {
      this.#abort.abort(signal.reason);
      void this.#leave();
    };
    signal.addEventListener('abort', stop, { once: true });
    let left: Promise<void> | undefined;
    this.#leave = async () => {
      signal.removeEventListener('abort', stop);
      for (const end of ends) end();
      left ??= seat.leave();
      await left;
    };
    const { lastOkAt, failingSince } = seat.informer.contact;
    if (lastOkAt !== -Infinity || failingSince !== undefined) this.#contactChanged.tell();
    await untilAborted(seat.synced, this.#abort.signal);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new TributaryError('Aborted', `${this.name} was stopped`));
    await this.#leave();
  }

  get(key: string): T | undefined {
    return this.#seen(this.#seat?.informer.get(key));
  }

  list(): Iterable<T> {
    const all = this.#seat?.informer.list() ?? [];
    const { only } = this.#options;
    return only === undefined ? all : { [Symbol.iterator]: () => Iterator.from(all).filter(only) };
  }

  get size(): number {
    return this.#options.only === undefined ? (this.#seat?.informer.size ?? 0) : [...this.list()].length;
  }

  byIndex(index: string, value: string): readonly T[] {
    const found = this.#seat?.informer.byIndex(this.#indexOf(index), value) ?? [];
    const { only } = this.#options;
    return only === undefined ? found : found.filter(only);
  }

  hasIndexed(index: string, value: string): boolean {
    if (this.#options.only !== undefined) return this.byIndex(index, value).length > 0;
    return this.#seat?.informer.hasIndexed(this.#indexOf(index), value) ?? false;
  }

  /** Also: its listeners have been told of all. */
  get synced(): boolean {
    return this.#isTold && this.#seat?.informer.synced === true;
  }

  get contact(): ContactState {
    return this.#seat?.informer.contact ?? UNKNOWN;
  }

  onChange(listener: ChangeListener<T>): () => void {
    return this.#options.listeners.add(listener);
  }

  relist(reason: string): void {
    this.#seat?.informer.relist(reason);
  }

  #indexOf(index: string): string {
    const name = this.#indexes.get(index);
    if (name === undefined) throw new Error(`no such index: ${index}`);
    return name;
  }

  #seen(object: T | undefined): T | undefined {
    const { only } = this.#options;
    return object === undefined || only === undefined || only(object) ? object : undefined;
  }

  /** What comes into this asker's sight is new to it, and what leaves it is gone: as an API server tells by a selector. */
  #tell(key: string, current: T | undefined, previous: T | undefined): void {
    const { only, listeners } = this.#options;
    if (only === undefined) {
      listeners.tell(key, current, previous);
      return;
    }
    const now = this.#seen(current);
    const wasInSight = this.#inSight.has(key);
    if (now !== undefined) this.#inSight.add(key);
    else if (!this.#inSight.delete(key)) return;
    listeners.tell(key, now, wasInSight ? previous : undefined);
  }
}
