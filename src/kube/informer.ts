import type { ResourceType } from '../api/resources.ts';
import type { KubeObject } from '../api/wire.ts';
import { Backoff, type Random, spreadMs, systemRandom } from '../lib/backoff.ts';
import { type Breath, breathOf, inTurns } from '../lib/breath.ts';
import type { Clock } from '../lib/clock.ts';
import { untilAborted } from '../lib/deadline.ts';
import { TributaryError, errorCode, errorMessage, hasCode } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { Cache } from './cache.ts';
import { ChangeListeners } from './change-listeners.ts';
import type { KubeClient, ListOptions, WatchEvent } from './client.ts';
import { Contact, type ContactState } from './contact.ts';
import { onAnswers, onLostHistory } from './server-news.ts';
import { Packer } from './packed.ts';
import { type ChangeListener, Store } from './store.ts';
import { type Listed, View } from './view.ts';
import { WatchTerms } from './watch-terms.ts';

export interface InformerOptions<T extends KubeObject> {
  client: KubeClient;
  type: ResourceType<T>;
  /** Which objects to hold: selectors, a namespace, metadata only. */
  list: Omit<ListOptions, 'signal' | 'resourceVersion' | 'resourceVersionMatch'>;
  clock: Clock;
  log: Logger;
  /** Returns the object as it is to be kept (drop bulky fields here), or undefined for what is not wanted. */
  transform?: (object: T) => T | undefined;
  /** By name: the values under which an object is to be found. */
  indexes?: Record<string, (object: T) => string[]>;
  /**
   * Whether what has not changed for long is held packed (see packed.ts). For thousands of objects that resemble each other, and
   * that nobody walks over often. Default: false.
   */
  packs?: boolean;
  random?: Random;
  /** The rights to read may come only now: before the first list, a refusal is tried again soon, and is no trouble for a while. */
  awaitsRights?: boolean;
  /** The name in logs and health; by default made of kind and namespace. */
  name?: string;
}

/** A watch that lived shorter than this and brought nothing counts as a failure, else we would spin. */
const SHORT_WATCH_MS = 1000;
/** For so long after the start, rights that are being granted are waited for; and how often they are tried. */
const RIGHTS_PATIENCE_MS = 10_000;
const RIGHTS_RETRY = { baseMs: 200, capMs: 1000 };
/** An empty list is asked for once more after at most so long, and at least half of it. */
const EMPTY_LIST_MS = 20_000;
/** Least time between two lists that `relist` asks for. */
const RELIST_INTERVAL_MS = 1000;

/**
 * Holds all objects of one kind and keeps them true: lists, then watches, and resumes the watch from the
 * last version seen. Never gives up, never empties itself because of an error.
 *
 *     list ──ok──▶ watch ──closed, broken──▶ watch again from the last version (at once, or with backoff)
 *      ▲             └────410, contradiction, relist()────▶ list
 *      └─error, older than seen: backoff, the store stays as it is (see tellLostHistory for when it does not)
 *
 * A partial list (one that breaks off) changes nothing. An object that was deleted and created again under
 * its name may arrive as one change with two different UIDs.
 */
export class Informer<T extends KubeObject> implements Cache<T> {
  readonly name: string;
  readonly #options: InformerOptions<T>;
  readonly #log: Logger;
  readonly #store: Store<T>;
  readonly #view: View<T>;
  readonly #contact: Contact;
  readonly #terms = new WatchTerms();
  readonly #backoff: Backoff;
  readonly #rightsBackoff: Backoff;
  readonly #random: Random;
  readonly #breath: Breath;
  readonly #listeners: ChangeListeners<T>;
  readonly #abort = new AbortController();
  readonly #firstSync = Promise.withResolvers<void>();
  #running: Promise<void> = Promise.resolve();
  #synced = false;
  /** Lists asked for, and those of them that have succeeded. */
  #listsWanted = 1;
  #listsDone = 0;
  #listedAt = -Infinity;
  #listBeganAt = -Infinity;
  /** Number of the list that may be older than what was seen: history has been lost before it. */
  #mayGoBackUntil = 0;
  #startedAt = -Infinity;
  #watchAbort: AbortController | undefined;
  #cancelDoubt: () => void = () => undefined;
  /** Ends a request that has not been answered yet, or the rest before the next one. */
  #attempt: AbortController | undefined;

  constructor(options: InformerOptions<T>) {
    const { type, list, clock, random = systemRandom, transform = (object: T) => object } = options;
    const where = list.namespace === undefined ? '' : ` in ${list.namespace}`;
    this.name = options.name ?? `informer ${type.plural}${where}`;
    this.#options = options;
    this.#random = random;
    this.#breath = breathOf(clock);
    this.#log = options.log.named('informer', { resource: type.plural, namespace: list.namespace });
    const packer = options.packs === true ? new Packer<T>() : undefined;
    this.#store = new Store(options.indexes, packer);
    this.#listeners = new ChangeListeners(this.#log);
    const notify: ChangeListener<T> = (...change) => this.#listeners.tell(...change);
    this.#view = new View({ store: this.#store, transform, notify, ...(packer && { packer }) });
    this.#contact = new Contact(clock);
    this.#backoff = new Backoff({ baseMs: 500, capMs: 30_000, random });
    this.#rightsBackoff = new Backoff({ ...RIGHTS_RETRY, random });
  }

  /** Resolves at the first complete list, however long that takes. */
  async start(signal: AbortSignal): Promise<void> {
    this.#startedAt = this.#options.clock.monotonic();
    const stop = (): void => this.#abort.abort(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    const endLost = onLostHistory(this.#options.client, (reason) => {
      this.relist(reason);
      this.#mayGoBackUntil = this.#listsWanted;
    });
    const endAnswers = onAnswers(this.#options.client, () => this.#retry());
    this.#running = this.#run(this.#abort.signal).finally(() => {
      signal.removeEventListener('abort', stop);
      endLost();
      endAnswers();
    });
    await untilAborted(this.#firstSync.promise, this.#abort.signal);
  }

  async stop(): Promise<void> {
    this.#abort.abort(new TributaryError('Aborted', `${this.name} was stopped`));
    this.#cancelDoubt();
    await this.#running;
  }

  get(key: string): T | undefined {
    return this.#store.get(key);
  }

  list(): Iterable<T> {
    return this.#store.list();
  }

  keys(): Iterable<string> {
    return this.#store.keys();
  }

  get size(): number {
    return this.#store.size;
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.#store.byIndex(index, value);
  }

  keysByIndex(index: string, value: string): Iterable<string> {
    return this.#store.keysByIndex(index, value);
  }

  hasIndexed(index: string, value: string): boolean {
    return this.#store.hasIndexed(index, value);
  }

  /** Does something with each object, and rests where that takes long: tens of thousands would hold up everything else. */
  async eachInTurns(work: (object: T) => void): Promise<void> {
    await inTurns(this.#breath, this.list(), work);
  }

  /** The same with keys alone, by default all: nothing is unpacked for that. */
  async eachKeyInTurns(work: (key: string) => void, keys: Iterable<string> = this.keys()): Promise<void> {
    await inTurns(this.#breath, keys, work);
  }

  /** The same with each value of an index and each key that has it. */
  async eachIndexedInTurns(index: string, work: (value: string, key: string) => void): Promise<void> {
    await inTurns(this.#breath, this.valuesOf(index), (value) => {
      for (const key of this.keysByIndex(index, value)) work(value, key);
    });
  }

  /** All values of an index, each once. */
  valuesOf(index: string): Iterable<string> {
    return this.#store.valuesOf(index);
  }

  /** At any time; what is there is found by it at once. */
  addIndex(index: string, keys: (object: T) => string[]): void {
    this.#store.addIndex(index, keys);
  }

  get synced(): boolean {
    return this.#synced;
  }

  /** When the list began that what is held was last checked against, monotonic ms. */
  get listBeganAt(): number {
    return this.#listBeganAt;
  }

  get contact(): ContactState {
    return this.#contact.state;
  }

  onChange(listener: ChangeListener<T>): () => void {
    return this.#listeners.add(listener);
  }

  onContact(listener: () => void): () => void {
    return this.#contact.onChange(listener);
  }

  relist(reason: string): void {
    this.#log.info('listing again', { reason });
    this.#listAgain(reason);
  }

  /** A request that the server may never have seen, and a rest that grew meanwhile, are not waited for. What is answered goes on. */
  #retry(): void {
    this.#attempt?.abort(new TributaryError('Aborted', 'the server answers again'));
  }

  #listAgain(reason: string): void {
    // Counted, not flagged: a list under way may have been answered before that read.
    this.#listsWanted++;
    this.#watchAbort?.abort(new TributaryError('Expired', reason));
  }

  get #mustList(): boolean {
    return this.#listsDone < this.#listsWanted;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const attempt = (this.#attempt = new AbortController());
      const either = AbortSignal.any([signal, attempt.signal]);
      try {
        if (this.#mustList) await this.#list(either);
        else await this.#watch(either);
      } catch (error) {
        const delayMs = attempt.signal.aborted ? 0 : this.#afterError(error, signal);
        this.#attempt = attempt;
        if (delayMs > 0) await this.#options.clock.sleep(delayMs, either).catch(() => undefined);
      }
    }
  }

  /** Returns how long to wait before the next attempt. */
  #afterError(error: unknown, signal: AbortSignal): number {
    if (signal.aborted) return 0;
    if (hasCode(error, 'Expired')) {
      this.#terms.expired();
      // Not before a second has passed since the last list: a server may contradict itself for ever.
      const sinceList = this.#options.clock.monotonic() - this.#listedAt;
      const pauseMs = Math.max(0, RELIST_INTERVAL_MS - sinceList);
      if (this.#mustList) return pauseMs;
      this.#listsWanted++;
      // Everybody's watches expire together when an API server restarts.
      return pauseMs + this.#backoff.next();
    }
    const message = errorMessage(error);
    if (this.#isAwaited(error)) {
      this.#log.debug('waits for the right to read', { error: message });
      return this.#rightsBackoff.next();
    }
    const { status } = error as { status?: number };
    this.#contact.failed(message, { code: errorCode(error), status });
    const delayMs = Math.max(this.#backoff.next(), (error as { retryAfterMs?: number }).retryAfterMs ?? 0);
    const fields = { error: message, failures: this.#backoff.failures, retryInMs: Math.round(delayMs) };
    // Log it once; after that, contact and metrics show that it lasts.
    if (this.#backoff.failures === 1) this.#log.warn('lost contact', fields);
    else this.#log.debug('still no contact', fields);
    return delayMs;
  }

  #isAwaited(error: unknown): boolean {
    const { awaitsRights = false, clock } = this.#options;
    const isEarly = !this.#synced && clock.monotonic() - this.#startedAt < RIGHTS_PATIENCE_MS;
    return awaitsRights && isEarly && hasCode(error, 'Forbidden');
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, type, list, clock } = this.#options;
    const items: Listed<T>[] = [];
    const wanted = this.#listsWanted;
    const beganAt = clock.monotonic();
    const goesBack = this.#mayGoBackUntil > this.#listsDone && wanted >= this.#mayGoBackUntil;
    // Servers end an answer that takes longer than a minute: every second try comes in pages.
    const size = this.#backoff.failures % 2 === 0 ? { limit: 'whole' as const } : {};
    let version = '';
    let isEmpty = true;
    // No resourceVersion: the most recent state, not whatever the server's cache holds.
    for await (const page of client.pages(type, { ...size, ...list, signal })) {
      // Some at a time, so that never more is held than will be kept.
      for (const item of page.items) {
        const listed = this.#view.listed(item);
        if (listed !== undefined) items.push(listed);
      }
      if (page.items.length > 0) isEmpty = false;
      version = page.resourceVersion;
    }
    const isAnew = this.#isAnew(version, goesBack);
    if (isEmpty && (!this.#synced || this.#store.size > 0)) this.#doubt();
    this.#heard();
    this.#listedAt = clock.monotonic();
    this.#listBeganAt = beganAt;
    this.#listsDone = wanted;
    if (this.#synced) {
      this.#view.replace(version, items, { isAnew });
      return;
    }
    // Before the first list is complete nobody takes what is missing for gone. Later it is taken in whole.
    for (const _step of this.#view.steps(version, items, { isAnew })) {
      const rest = this.#breath.due();
      if (rest !== undefined) await rest;
      signal.throwIfAborted();
    }
    this.#synced = true;
    this.#firstSync.resolve();
  }

  /**
   * Of what a list wrongly leaves out, no watch will ever tell. Where it leaves out everything it costs nothing to ask again, when a
   * server that was just starting has its objects.
   */
  #doubt(): void {
    const { clock } = this.#options;
    this.#cancelDoubt();
    this.#cancelDoubt = clock.after(spreadMs(EMPTY_LIST_MS, this.#random), () =>
      this.#listAgain('an empty list is asked for once more'),
    );
  }

  #isAnew(version: string, goesBack: boolean): boolean {
    const seen = this.#view.version;
    const history = this.#view.historyOf(version, { goesBack, nowMs: this.#options.clock.monotonic() });
    if (history === 'lags')
      throw new TributaryError(
        'Unavailable',
        `the API server lists an older state (${version}) than already seen`,
      );
    if (history === 'another' && !goesBack)
      this.#log.warn('the API server has gone back in time', { seen, listed: version });
    return history === 'another';
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, type, list, clock } = this.#options;
    const began = clock.monotonic();
    const abort = new AbortController();
    const stop = (): void => abort.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    this.#watchAbort = abort;
    let events = 0;
    let opened = false;
    const lived = (): boolean => events > 0 || (opened && clock.monotonic() - began >= SHORT_WATCH_MS);
    try {
      const stream = client.watch(type, {
        ...list,
        resourceVersion: this.#view.version ?? '',
        ...this.#terms.next(this.#random),
        signal: abort.signal,
        onOpen: () => {
          opened = true;
          this.#heard();
        },
      });
      for await (const event of stream) {
        events++;
        this.#onEvent(event);
      }
    } catch (error) {
      // A watch that worked until now: resume at once; if the server is away, the next attempt says so.
      if (!lived() || !hasCode(error, 'Unreachable')) throw error;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#watchAbort = undefined;
    }
    if (signal.aborted) return;
    if (!lived()) throw new TributaryError('Unavailable', 'the API server ends each watch at once');
    this.#terms.ended(clock.monotonic() - began);
    this.#backoff.reset();
  }

  #heard(): void {
    this.#attempt = undefined;
    if (this.#contact.state.failingSince !== undefined) this.#log.info('contact again');
    this.#contact.succeeded();
  }

  #onEvent(event: WatchEvent<T>): void {
    this.#heard();
    this.#terms.heard();
    this.#backoff.reset();
    if (event.type === 'BOOKMARK') this.#view.advance(event.resourceVersion);
    else if (this.#view.apply(event.type, event.object) === 'contradiction')
      throw new TributaryError('Expired', 'events came out of order');
  }
}
