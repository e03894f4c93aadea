/** Follows the pods of one namespace of one cluster, through everything that happens to its API server. */
import { setTimeout as sleep } from 'node:timers/promises';

import { type ApiReader, type Listed, ReadError } from './api-reader.ts';
import { type Pod, podView, type PodView } from './pod-view.ts';
import type { RawObject } from './snapshot-model.ts';
import { now } from './violation.ts';

const RETRY_MS = 200;
const GONE = 410;
/** For how long a watch may be behind a list. */
const CATCH_UP_MS = 2_000;
const CATCH_UP_STEP_MS = 20;

/** Who is told. `at` is in milliseconds since 1970. */
export interface PodSink {
  readonly saw: (pod: PodView, by: 'event' | 'list', at: number) => void;
  readonly went: (pod: PodView, by: 'event' | 'list', at: number) => void;
  /** Each object as it came, before it is reduced to a view. */
  readonly read: (object: RawObject) => void;
  /** `isGap`: what happened in between will not be told. */
  readonly wasAway: (from: number, to: number, isGap: boolean) => void;
}

export class PodWatch {
  readonly #reader: ApiReader;
  readonly #path: string;
  readonly #sink: PodSink;
  /** By UID, as they were last seen. */
  readonly #pods = new Map<string, PodView>();
  /** From where the next watch goes on; undefined: a list must come first. */
  #version: string | undefined;
  #lastContact: number = now();
  /** Since when the server has not been read; undefined while it is. */
  #lostAt: number | undefined;
  #isOpen = false;
  #problem = 'it has not been read yet';
  /** Counts the requests to read everything anew, and those that were fulfilled. */
  #asked = 0;
  #read = 0;
  #restart: AbortController = new AbortController();

  constructor(reader: ApiReader, namespace: string, sink: PodSink) {
    this.#reader = reader;
    this.#path = `/api/v1/namespaces/${namespace}/pods`;
    this.#sink = sink;
  }

  /** The pods that are there, as far as is known. */
  get pods(): readonly PodView[] {
    return [...this.#pods.values()];
  }

  /** Why it cannot be said now what is there; undefined: it can. */
  get problem(): string | undefined {
    if (this.#isOpen && this.#lostAt === undefined && this.#asked === this.#read) return undefined;
    return `${this.#reader.name}${this.#path}: ${this.#problem}`;
  }

  /**
   * Whether the watch has told all that a live read shows, after a short wait for it.
   *
   * @throws {ReadError}
   */
  async isFresh(): Promise<boolean> {
    const list = await this.#reader.list(this.#path);
    const deadline = now() + CATCH_UP_MS;
    while (!this.#hasCaughtUp(list) && now() < deadline) await sleep(CATCH_UP_STEP_MS);
    return this.#hasCaughtUp(list);
  }

  /** What is newer than the list does not count: somebody may write all the time. */
  #hasCaughtUp({ version, items }: Listed): boolean {
    const isPast = (one: string | undefined): boolean => BigInt(one ?? '0') > BigInt(version);
    const uids = new Set(items.map(({ metadata }) => metadata.uid));
    return (
      this.pods.every((pod) => uids.has(pod.uid) || isPast(pod.version)) &&
      items.every(({ metadata: { uid = '', resourceVersion = '0' } }) => {
        const known = this.#pods.get(uid);
        return known === undefined ? isPast(this.#version) : BigInt(known.version) >= BigInt(resourceVersion);
      })
    );
  }

  /** Since when it has been away; undefined while it is not. */
  get lostAt(): number | undefined {
    return this.#lostAt;
  }

  /** The etcd behind the server was restored: nothing of before holds. */
  readAnew(): void {
    this.#asked += 1;
    this.#problem = 'its etcd was restored, and it has not been read since';
    this.#restart.abort();
  }

  /** Until the signal. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#restart = new AbortController();
      try {
        await this.#round(AbortSignal.any([signal, this.#restart.signal]));
      } catch (error) {
        if (!(error instanceof ReadError)) throw error;
        if (signal.aborted) return;
        if (error.status === GONE) this.#version = undefined;
        this.#lost(error.message);
        await sleep(RETRY_MS);
      }
    }
  }

  #lost(problem: string): void {
    this.#lostAt ??= this.#lastContact;
    this.#isOpen = false;
    this.#problem = problem;
  }

  /**
   * After a connection was lost, the list tells whether the server still has what it had. If so, the watch goes on where it was, so
   * that nothing is missed; else the list counts.
   */
  async #round(signal: AbortSignal): Promise<void> {
    const asked = this.#asked;
    if (this.#version === undefined || this.#lostAt !== undefined || asked !== this.#read) {
      const list = await this.#reader.list(this.#path);
      if (this.#version === undefined || asked !== this.#read || this.#isBack(list)) this.#adopt(list);
      this.#read = asked;
    }
    const events = this.#reader.watch(this.#path, this.#version ?? '0', signal, () => this.#opened());
    for await (const { type, object } of events) {
      this.#lastContact = now();
      this.#version = object.metadata.resourceVersion ?? this.#version;
      if (type === 'BOOKMARK') continue;
      const pod = this.#viewOf(object);
      if (type === 'DELETED') this.#forget(pod, 'event');
      else this.#remember(pod, 'event');
    }
    this.#lastContact = now();
  }

  #opened(): void {
    const at = now();
    if (this.#lostAt !== undefined) this.#sink.wasAway(this.#lostAt, at, false);
    this.#lostAt = undefined;
    this.#lastContact = at;
    this.#isOpen = true;
  }

  /** Versions only grow, unless the server's store was put back. */
  #isBack({ version, items }: Listed): boolean {
    if (BigInt(version) < BigInt(this.#version ?? '0')) return true;
    return items.some(({ metadata }) => {
      const known = this.#pods.get(metadata.uid ?? '');
      return known !== undefined && BigInt(metadata.resourceVersion ?? '0') < BigInt(known.version);
    });
  }

  #adopt({ version, items }: Listed): void {
    const at = now();
    const isFirst = this.#version === undefined && this.#lostAt === undefined && this.#pods.size === 0;
    if (!isFirst) this.#sink.wasAway(this.#lostAt ?? this.#lastContact, at, true);
    const views = items.map((item) => this.#viewOf(item));
    const uids = new Set(views.map(({ uid }) => uid));
    for (const pod of this.pods) if (!uids.has(pod.uid)) this.#forget(pod, 'list');
    for (const view of views) this.#remember(view, 'list');
    this.#version = version;
    this.#lastContact = at;
    this.#lostAt = undefined;
  }

  #viewOf(object: RawObject): PodView {
    this.#sink.read(object);
    return podView(object as unknown as Pod);
  }

  #remember(pod: PodView, by: 'event' | 'list'): void {
    const known = this.#pods.get(pod.uid);
    this.#pods.set(pod.uid, pod);
    if (known?.version !== pod.version) this.#sink.saw(pod, by, now());
  }

  #forget(pod: PodView, by: 'event' | 'list'): void {
    this.#pods.delete(pod.uid);
    this.#sink.went(pod, by, now());
  }
}
