import { timestamp } from '../../api/conditions.ts';
import { LABEL_HOME_UID } from '../../api/names.ts';
import { pods } from '../../api/resources.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import { keepForMs } from '../annotations.ts';
import { Controller, type ReconcileResult } from '../../kube/controller.ts';
import { Informer } from '../../kube/informer.ts';
import { refOf } from '../../kube/store.ts';
import { deleteByUid } from '../../kube/write.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode, throwFirst } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { TokenBucket } from '../../lib/token-bucket.ts';
import type { HostingParts } from '../parts.ts';
import type { PeerWrites } from '../peer-writes.ts';
import { type JournalEntry, entryOf, entryOfVanished, isResultPod, recreatedOf } from './journal-entry.ts';
import { JournalStore } from './journal-store.ts';
import type { Mutex } from './mutex.ts';
import type { PodMemory } from './pod-memory.ts';
import { endedByItself, resultOf } from './result.ts';
import { type KeptLogs, LogReader } from './result-logs.ts';
import { Rounds } from './rounds.ts';
import { slimPodsClient } from './tenant-pods.ts';

/** What the guardian has to say of one tenant namespace. */
export interface WatchSummary {
  pods: number;
  recreated: number;
  /** Since when the home is away, RFC 3339. */
  since: string;
  /** It was away for too long: its pods are being ended, or have been. */
  isGone: boolean;
  /** What the API server said when a pod could not be made anew. */
  refusal?: string;
  /** Why not all pods are looked after, or not all are in the journal. */
  gap?: string;
}

interface TenantWatchOptions extends Omit<HostingParts, 'caches'> {
  peer: string;
  /** The namespace when the home went away. */
  namespace: KubeObject;
  /** Since when the home is away, if an earlier guardian has reported it; RFC 3339. */
  since: string | undefined;
  /** The namespace now; undefined when it is gone or being deleted. */
  current: () => KubeObject | undefined;
  isAway: () => boolean;
  /** The same, by a live read. */
  isStillAway: (signal: AbortSignal) => Promise<boolean>;
  /** The marks of the home's Leases now. */
  marks: () => Record<string, string>;
  /** How many pods of the peer may be made anew now. */
  budget: TokenBucket;
  /** What is held of all pods of the peer. */
  memory: PodMemory;
  /** The logs of those of them that have ended. */
  keptLogs: KeptLogs;
  /** Held while pods of the peer are listed, or a journal is loaded. */
  listMutex: Mutex;
  /** Held, over all peers, while a page or a shard is in memory in addition. */
  bulkMutex: Mutex;
  /** Of journals, over all peers. */
  writes: PeerWrites;
  changed: () => void;
}

const KEY = 'tenant';
/** Changes within this time are handled together. */
const TOGETHER_MS = 250;
/**
 * After a reconciliation, changes wait for so many times as long as it took: a peer that always changes pods must not take all
 * the time.
 */
const REST = { times: 4, mostMs: 5000 };
const LONGEST_WAIT_MS = 60 * 60_000;

/**
 * Keeps the pods in one tenant namespace while their home is away. Started when the home is late, stopped when it is back. Until
 * the home counts as away, this only watches.
 */
export class TenantWatch {
  readonly #options: TenantWatchOptions;
  readonly #log: Logger;
  /** Slim pods; the bodies are in the memory. */
  readonly #pods: Informer<Pod>;
  readonly #controller: Controller;
  readonly #store: JournalStore;
  readonly #rounds: Rounds;
  readonly #logs: LogReader;
  /** UIDs of pods that have gone, by key. The memory keeps their last state until it is in the journal. */
  readonly #last = new Map<string, string>();
  /** Names of pods for which there was no room, until they change when there is room again. */
  readonly #dropped = new Set<string>();
  /** How many of those have gone. */
  #lost = 0;
  /** Whether all existing pods are in the journal. */
  #isNoted = false;
  readonly #abort = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #isLoaded = false;
  #restMs = TOGETHER_MS;
  #since: string | undefined;
  /** The same time by our monotonic clock, milliseconds. */
  #sinceMs = 0;
  #isGone = false;
  #told: WatchSummary | undefined;

  constructor(options: TenantWatchOptions) {
    this.#options = options;
    const { client, clock, peer, namespace, random, metrics, memory, keptLogs, listMutex, bulkMutex } =
      options;
    const { name } = namespace.metadata;
    const log = (this.#log = options.log.named('guardian', { peer, namespace: name }));
    const common = { client, clock, log, ...(random && { random }) };
    this.#pods = new Informer({
      ...common,
      client: slimPodsClient({
        client,
        namespace: name,
        memory,
        listMutex,
        bulkMutex,
        isKnown: (pod) => this.#pods.get(`${name}/${pod}`) !== undefined,
        listed: (names) => this.#listed(names),
      }),
      type: pods,
      list: { namespace: name, labelSelector: LABEL_HOME_UID },
    });
    this.#store = new JournalStore({ ...options, log, mutex: bulkMutex });
    this.#logs = new LogReader({ client, clock, log, namespace: name, kept: keptLogs });
    this.#rounds = new Rounds({
      ...options,
      log,
      store: this.#store,
      pods: this.#pods,
      logsOf: ({ homeUid }) => keptLogs.of(name, homeUid),
    });
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
    this.#options.memory.open(this.#name, (name) => this.#onDropped(name));
    this.#pods.onChange((key, current, previous) => {
      if (current?.metadata.uid !== previous?.metadata.uid && previous !== undefined)
        this.#gone(key, previous);
      if (current === undefined && previous !== undefined && this.#dropped.delete(previous.metadata.name))
        this.#lost++;
      // A home that creates a pod is there, and knows what it has lost.
      if (previous === undefined && this.#pods.synced && !this.#isNoted) {
        this.#forget(this.#last);
        this.#lost = 0;
      }
      this.#controller.addAfter(KEY, this.#restMs);
    });
    const starting = this.#pods.start(this.#abort.signal).then(() => {
      this.#log.info('a home is silent; its pods are watched');
      this.#controller.add(KEY);
    });
    this.#running = Promise.allSettled([starting]);
    this.#controller.start(this.#abort.signal);
  }

  /** Resolves when no write is under way any more. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#running;
    await this.#controller.stop();
    await this.#pods.stop();
    await this.#logs.stopped();
    this.#options.memory.close(this.#name);
    this.#options.keptLogs.forget(this.#name);
  }

  get #name(): string {
    return this.#options.namespace.metadata.name;
  }

  /** Undefined until the journal is loaded. */
  get summary(): WatchSummary | undefined {
    if (this.#since === undefined) return undefined;
    const entries = [...this.#store.entries.values()];
    const { refusal } = this.#rounds;
    const gap = [this.#beyond, this.#store.gap].filter((it) => it !== undefined).join('; ');
    return {
      pods: this.#isGone ? this.#pods.size : entries.length,
      recreated: entries.reduce((sum, entry) => sum + recreatedOf(entry).count, 0),
      since: this.#since,
      isGone: this.#isGone,
      ...(refusal !== undefined && { refusal }),
      ...(gap !== '' && { gap }),
    };
  }

  /** Why not all pods are looked after. */
  get #beyond(): string | undefined {
    const count = this.#dropped.size + this.#lost;
    if (count === 0) return undefined;
    return (
      `${count} pods in ${this.#name} are not looked after, and not made anew when they are lost: what is kept of the ` +
      `pods of one peer whose home is away takes ${this.#options.memory.mostBytes} bytes of memory at most`
    );
  }

  /** Reconciles again, for example because its namespace has changed. */
  look(): void {
    this.#controller.add(KEY);
  }

  #gone(key: string, { metadata: { name, uid } }: Pod): void {
    const { memory } = this.#options;
    const last = memory.pod(this.#name, name, uid);
    if (last !== undefined && (!this.#isNoted || endedByItself(last))) this.#last.set(key, uid);
    else memory.gone(this.#name, name, uid);
  }

  #listed(names: ReadonlySet<string>): void {
    for (const name of this.#dropped) {
      // Of pods that it knows, the informer tells when they are gone.
      if (!names.has(name) && this.#pods.get(`${this.#name}/${name}`) === undefined)
        this.#dropped.delete(name);
    }
    this.#controller.addAfter(KEY, this.#restMs);
  }

  /** There was no more room for it. */
  #onDropped(name: string): void {
    const key = `${this.#name}/${name}`;
    const wasThere = this.#store.drop(name) || this.#last.has(key);
    // A pod that is being listed just now is not in the informer yet, but exists.
    if (wasThere && this.#pods.get(key) === undefined) this.#lost++;
    else this.#dropped.add(name);
  }

  /** The last state of these pods is no longer needed. */
  #forget(these: Iterable<[string, string]>): void {
    for (const [key, uid] of Array.from(these)) {
      if (this.#last.get(key) !== uid) continue;
      this.#last.delete(key);
      this.#options.memory.gone(this.#name, nameOf(key), uid);
    }
  }

  async #reconcile(signal: AbortSignal): Promise<ReconcileResult> {
    const { isAway, clock } = this.#options;
    const beganMs = clock.monotonic();
    const namespace = this.#options.current();
    if (!isAway() || namespace?.metadata.uid !== this.uid || !this.#pods.synced) return {};
    try {
      if (!this.#isLoaded) await this.#options.listMutex.run(async () => this.#store.load(signal), signal);
      this.#isLoaded = true;
      const leftMs = this.#leftMs(namespace);
      if (leftMs <= 0) return await this.#end(signal);
      const noted = await this.#note();
      this.#logs.look(this.#withLogs(), this.#abort.signal);
      const beforeMs = await this.#store.write(isAway, signal);
      if (beforeMs === Infinity) this.#forget(noted);
      // A pod that was never written down is missed by nobody when this process ends.
      const roundMs = this.#store.isBegun ? await this.#rounds.round(signal) : beforeMs;
      const turnMs = await this.#store.write(isAway, signal);
      return { requeueAfterMs: Math.min(LONGEST_WAIT_MS, leftMs, roundMs, turnMs) };
    } catch (error) {
      // Another guardian may have written meanwhile: what is stored counts.
      this.#isLoaded = false;
      if (signal.aborted) return {};
      throw error;
    } finally {
      const tookMs = clock.monotonic() - beganMs;
      this.#restMs = Math.min(REST.mostMs, Math.max(TOGETHER_MS, tookMs * REST.times));
      this.#tell();
    }
  }

  /** For how many milliseconds the pods are still kept; also finds out since when the home is away. */
  #leftMs(namespace: KubeObject): number {
    const { clock } = this.#options;
    if (this.#since === undefined) {
      const nowMs = clock.now();
      const said = this.#store.wasBack ? undefined : this.#options.since;
      const known = Date.parse(this.#store.since ?? said ?? '');
      // A time in the future is from a clock that was wrong.
      const sinceMs = Number.isNaN(known) ? nowMs : Math.min(known, nowMs);
      this.#since = timestamp(sinceMs);
      this.#sinceMs = clock.monotonic() - (nowMs - sinceMs);
    }
    // From here on only the monotonic clock counts: a wall clock that is set forward would end all pods.
    const leftMs = keepForMs(namespace) - (clock.monotonic() - this.#sinceMs);
    // Once ended, they stay ended, even if the policy keeps pods for longer now.
    this.#isGone ||= leftMs <= 0;
    return this.#isGone ? 0 : leftMs;
  }

  /** Pods that have ended, and are still there with their logs. */
  #withLogs(): JournalEntry[] {
    return [...this.#store.entries.values()].filter(({ name, uid, result }) => {
      const pod = this.#pods.get(`${this.#name}/${name}`);
      return result !== undefined && pod?.metadata.uid === uid && !isResultPod(pod);
    });
  }

  /** Updates the journal in memory from the existing pods. Returns which of the pods that have gone it has taken in. */
  async #note(): Promise<[string, string][]> {
    const store = this.#store;
    const entries = [...this.#pods.list()].flatMap(({ metadata: { name, uid, labels } }) => {
      const pod = this.#options.memory.pod(this.#name, name, uid);
      if (pod === undefined) return [];
      // Of a pod that was not looked after, it is not known since when it is being deleted.
      const wasOut = this.#dropped.delete(name);
      const isNew = wasOut || store.isFirst(labels?.[LABEL_HOME_UID] ?? '');
      return entryOf(pod, store.entries.get(name), isNew) ?? [];
    });
    // Pods of the same name may exist again: their homes may have replaced them.
    const vanished =
      store.since !== undefined ? [] : this.#vanished(new Set(entries.map(({ name }) => name)));
    entries.push(...vanished);
    const last = [...this.#last];
    this.#isNoted = true;
    if (store.since === undefined && entries.length === 0) return last;
    await store.begin(this.#since ?? timestamp(this.#options.clock.now()), entries);
    for (const entry of entries) {
      if (deepEqual(store.entries.get(entry.name), entry)) store.renew(entry);
      else if (!this.#dropped.has(entry.name)) store.put(entry);
    }
    for (const [key, uid] of last) {
      const pod = this.#options.memory.pod(this.#name, nameOf(key), uid);
      const entry = store.entries.get(nameOf(key));
      if (pod !== undefined && endedByItself(pod) && entry?.uid === uid && entry.result === undefined) {
        store.put({ ...entry, result: resultOf(pod) });
      }
    }
    return last;
  }

  /** Entries of pods that disappeared while the home was late: it may have been away already. */
  #vanished(there: ReadonlySet<string>): JournalEntry[] {
    const gone = [...this.#last].filter(([key]) => !there.has(nameOf(key)));
    return gone.flatMap(([key, uid]) => {
      const pod = this.#options.memory.pod(this.#name, nameOf(key), uid);
      return (pod && entryOfVanished(pod)) ?? [];
    });
  }

  /**
   * The home is away for too long. Journals go last, because they say since when. A pod that cannot be deleted does not keep
   * the others.
   */
  async #end(signal: AbortSignal): Promise<ReconcileResult> {
    const { client, isAway, isStillAway } = this.#options;
    if (!(await isStillAway(signal))) return {};
    const failures: unknown[] = [];
    for (const { metadata } of Array.from(this.#pods.list())) {
      if (metadata.deletionTimestamp !== undefined) continue;
      if (!isAway()) return {};
      await deleteByUid(client, pods, { metadata }, { signal }).catch((error: unknown) => {
        if (!hasCode(error, 'Forbidden', 'Invalid', 'Unavailable')) throw error;
        failures.push(error);
      });
    }
    throwFirst(failures);
    if (this.#pods.size === 0 && isAway()) await this.#store.remove(signal);
    return {};
  }

  #tell(): void {
    const { summary } = this;
    if (deepEqual(summary, this.#told)) return;
    if (summary?.gap !== undefined && this.#told?.gap === undefined && !summary.isGone)
      this.#warn(summary.gap);
    this.#told = summary;
    this.#options.changed();
  }

  #warn(message: string): void {
    const { name, uid } = this.#options.namespace.metadata;
    const subject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, uid } };
    this.#options.events.event(subject, 'Warning', 'PodNotKept', message);
    this.#log.warn('not all pods are kept', { why: message });
  }
}

const nameOf = (key: string): string => refOf(key).name;
