import { timestamp } from '../../api/conditions.ts';
import { LABEL_HOME_UID } from '../../api/names.ts';
import { pods } from '../../api/resources.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { Informer } from '../../kube/informer.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode, ignoring } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { TokenBucket } from '../../lib/token-bucket.ts';
import { isOwnEnd } from './ends.ts';
import { type Entry, entryOf, entryOfVanished, recreatedOf } from './entry.ts';
import { JournalStore } from './journal-store.ts';
import { keepForMs } from './keep-for.ts';
import type { GuardianOptions } from './options.ts';
import { resultOf } from './result.ts';
import { Rounds } from './rounds.ts';

/** What the guardian has to say of one tenant namespace. */
export interface WatchSummary {
  pods: number;
  recreated: number;
  /** Since when the home is away, RFC 3339. */
  since: string;
  /** It was away for too long: its pods are ended, or have been. */
  isGone: boolean;
  /** What the API server said when a pod could not be made anew. */
  refusal?: string;
  /** Why the journal does not hold all of them. */
  gap?: string;
}

export interface TenantWatchOptions extends GuardianOptions {
  peer: string;
  /** As it was when the home went away. */
  namespace: KubeObject;
  /** Since when, as far as it is known from elsewhere; RFC 3339. */
  since: string | undefined;
  /** The namespace as it is; undefined when it is gone or ending. */
  current: () => KubeObject | undefined;
  isAway: () => boolean;
  /** The same, by a live read. */
  isStillAway: (signal: AbortSignal) => Promise<boolean>;
  /** What the home's Leases show. */
  marks: () => Record<string, string>;
  /** For all pods of the peer that are made anew. */
  budget: TokenBucket;
  changed: () => void;
}

const KEY = 'tenant';
/** News that come together are looked at together. */
const TOGETHER_MS = 250;
/** After one look that took long, changes wait for so many times as long: a peer that changes its pods all the time is not followed. */
const REST = { times: 4, mostMs: 5000 };
const LONGEST_WAIT_MS = 60 * 60_000;

/**
 * Keeps the pods in one tenant namespace for as long as their home is away. Made when it is late, stopped when it is back;
 * until it counts as away, this only watches.
 */
export class TenantWatch {
  readonly #options: TenantWatchOptions;
  readonly #log: Logger;
  readonly #pods: Informer<Pod>;
  readonly #controller: Controller;
  readonly #store: JournalStore;
  readonly #rounds: Rounds;
  /** Pods as they were when they went, where that may be news to the journal. */
  readonly #last = new Map<string, Pod>();
  /** Whether the journal knows of all pods that are there. */
  #isNoted = false;
  readonly #abort = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #isLoaded = false;
  #restMs = TOGETHER_MS;
  #since: string | undefined;
  /** When that was by our monotonic clock, milliseconds. */
  #sinceMs = 0;
  #isGone = false;
  #told: WatchSummary | undefined;

  constructor(options: TenantWatchOptions) {
    this.#options = options;
    const { client, clock, peer, namespace, random, metrics } = options;
    const { name } = namespace.metadata;
    const log = (this.#log = options.log.named('guardian', { peer, namespace: name }));
    const common = { client, clock, log, ...(random && { random }) };
    this.#pods = new Informer({
      ...common,
      type: pods,
      list: { namespace: name, labelSelector: LABEL_HOME_UID },
    });
    this.#store = new JournalStore({ client, log, peer, namespace, marks: options.marks });
    this.#rounds = new Rounds({ ...options, log, store: this.#store, pods: this.#pods });
    this.#controller = new Controller({
      ...common,
      name: 'guardian of tenants',
      concurrency: 1,
      reconcile: async (_key, { signal }) => this.#reconcile(AbortSignal.any([signal, this.#abort.signal])),
      ...(metrics && { metrics }),
    });
  }

  /** UID of the namespace. */
  get uid(): string {
    return this.#options.namespace.metadata.uid;
  }

  /** Does not wait for anything. */
  start(): void {
    this.#pods.onChange((key, current, previous) => {
      if (current?.metadata.uid !== previous?.metadata.uid && previous !== undefined)
        this.#gone(key, previous);
      // A home that makes a pod is there, and knows what it has lost.
      if (previous === undefined && this.#pods.synced && !this.#isNoted) this.#last.clear();
      this.#controller.addAfter(KEY, this.#restMs);
    });
    const starting = this.#pods.start(this.#abort.signal).then(() => {
      this.#log.info('a home is silent; its pods are watched');
      this.#controller.add(KEY);
    });
    this.#running = Promise.allSettled([starting, this.#controller.start(this.#abort.signal)]);
  }

  /** Returns when no write is under way any more. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#running;
    await this.#controller.stop();
    await this.#pods.stop();
  }

  /** Undefined until it is known. */
  get summary(): WatchSummary | undefined {
    if (this.#since === undefined) return undefined;
    const entries = [...this.#store.entries.values()];
    const { refusal } = this.#rounds;
    const { gap } = this.#store;
    return {
      pods: this.#isGone ? this.#pods.size : entries.length,
      recreated: entries.reduce((sum, entry) => sum + recreatedOf(entry).count, 0),
      since: this.#since,
      isGone: this.#isGone,
      ...(refusal !== undefined && { refusal }),
      ...(gap !== undefined && { gap }),
    };
  }

  /** Looks again: its namespace has changed, for example. */
  look(): void {
    this.#controller.add(KEY);
  }

  #gone(key: string, last: Pod): void {
    if (!this.#isNoted || isOwnEnd(last)) this.#last.set(key, last);
  }

  async #reconcile(signal: AbortSignal): Promise<ReconcileResult> {
    const { isAway, clock } = this.#options;
    const beganMs = clock.monotonic();
    const namespace = this.#options.current();
    if (!isAway() || namespace?.metadata.uid !== this.uid || !this.#pods.synced) return {};
    try {
      if (!this.#isLoaded) await this.#store.load(signal);
      this.#isLoaded = true;
      const leftMs = this.#leftMs(namespace);
      if (leftMs <= 0) return await this.#end(signal);
      const noted = await this.#note();
      await this.#store.write(isAway, signal);
      for (const [key, pod] of noted) if (this.#last.get(key) === pod) this.#last.delete(key);
      const waitMs = Math.min(LONGEST_WAIT_MS, leftMs, await this.#rounds.round(signal));
      await this.#store.write(isAway, signal);
      return { requeueAfterMs: waitMs };
    } catch (error) {
      // Another guardian may have written meanwhile: what is stored is the truth.
      this.#isLoaded = false;
      if (signal.aborted) return {};
      throw error;
    } finally {
      const tookMs = clock.monotonic() - beganMs;
      this.#restMs = Math.min(REST.mostMs, Math.max(TOGETHER_MS, tookMs * REST.times));
      this.#tell();
    }
  }

  /** How long the pods are kept from now on; also finds out since when the home is away. */
  #leftMs(namespace: KubeObject): number {
    const { clock } = this.#options;
    if (this.#since === undefined) {
      const nowMs = clock.now();
      const said = this.#store.wasBack ? undefined : this.#options.since;
      const known = Date.parse(this.#store.since ?? said ?? '');
      // A time to come is from a clock that was wrong.
      const sinceMs = Number.isNaN(known) ? nowMs : Math.min(known, nowMs);
      this.#since = timestamp(sinceMs);
      this.#sinceMs = clock.monotonic() - (nowMs - sinceMs);
    }
    // From here on no wall clock is asked: one that is set forward would end all pods.
    const leftMs = keepForMs(namespace) - (clock.monotonic() - this.#sinceMs);
    // What is ended stays ended, also where the policy becomes more generous meanwhile.
    this.#isGone ||= leftMs <= 0;
    return this.#isGone ? 0 : leftMs;
  }

  /** Brings the journal in line with what is there; in memory. Returns which of the pods that went are in it. */
  async #note(): Promise<[string, Pod][]> {
    const store = this.#store;
    const entries = [...this.#pods.list()].flatMap((pod) => {
      const homeUid = pod.metadata.labels?.[LABEL_HOME_UID] ?? '';
      return entryOf(pod, store.entries.get(pod.metadata.name), store.isFirst(homeUid)) ?? [];
    });
    // Their homes may have put others in their place.
    const vanished =
      store.since !== undefined ? [] : this.#vanished(new Set(entries.map(({ name }) => name)));
    entries.push(...vanished);
    const last = [...this.#last];
    this.#isNoted = true;
    if (store.since === undefined && entries.length === 0) return last;
    await store.begin(this.#since ?? timestamp(this.#options.clock.now()), entries);
    for (const entry of entries) {
      if (!deepEqual(store.entries.get(entry.name), entry)) store.put(entry);
    }
    for (const [, pod] of last) {
      const entry = store.entries.get(pod.metadata.name);
      if (isOwnEnd(pod) && entry?.uid === pod.metadata.uid && entry.result === undefined) {
        store.put({ ...entry, result: resultOf(pod) });
      }
    }
    return last;
  }

  /** What went between the first silence of the home and now: whoever is late may be gone already. */
  #vanished(there: ReadonlySet<string>): Entry[] {
    const gone = [...this.#last.values()].filter(({ metadata }) => !there.has(metadata.name));
    return gone.flatMap((pod) => entryOfVanished(pod) ?? []);
  }

  /** Too long away. Journals go last: they say since when. A pod that may not be deleted does not keep the others. */
  async #end(signal: AbortSignal): Promise<ReconcileResult> {
    const { client, isAway, isStillAway } = this.#options;
    if (!(await isStillAway(signal))) return {};
    const failures: unknown[] = [];
    for (const { metadata } of Array.from(this.#pods.list())) {
      if (metadata.deletionTimestamp !== undefined) continue;
      if (!isAway()) return {};
      const { namespace = '', name, uid } = metadata;
      await client
        .delete(pods, { namespace, name }, { uid, signal })
        .catch(ignoring('NotFound', 'Conflict'))
        .catch((error: unknown) => {
          if (!hasCode(error, 'Forbidden', 'Invalid', 'Unavailable')) throw error;
          failures.push(error);
        });
    }
    if (failures.length > 0) throw failures[0];
    if (this.#pods.size === 0 && isAway()) await this.#store.remove(signal);
    return {};
  }

  #tell(): void {
    const { summary } = this;
    if (deepEqual(summary, this.#told)) return;
    this.#told = summary;
    this.#options.changed();
  }
}
