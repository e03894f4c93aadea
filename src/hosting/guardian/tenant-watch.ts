import { timestamp } from '../../api/conditions.ts';
import { LABEL_HOME_UID } from '../../api/names.ts';
import { pods } from '../../api/resources.ts';
import type { KubeObject, Pod } from '../../api/wire.ts';
import { keepForMs } from '../annotations.ts';
import type { KubeClient } from '../../kube/client.ts';
import { Controller, type ControllerMetrics, type ReconcileResult } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Random } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { Informer } from '../../kube/informer.ts';
import { refOf } from '../../kube/store.ts';
import { deepEqual } from '../../lib/equality.ts';
import { hasCode, ignoring, throwFirst } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { TokenBucket } from '../../lib/token-bucket.ts';
import { type JournalEntry, entryOf, entryOfVanished, recreatedOf } from './entry.ts';
import { JournalStore } from './journal-store.ts';
import type { Mutex } from './mutex.ts';
import type { PodMemory } from './pod-memory.ts';
import { isOwnEnd, resultOf } from './result.ts';
import { Rounds } from './rounds.ts';
import { slimPodsClient } from './tenant-pods.ts';

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
  /** Why not all of them are looked after, or the journal does not hold all of them. */
  gap?: string;
}

interface TenantWatchOptions {
  client: KubeClient;
  clock: Clock;
  log: Logger;
  events: EventRecorder;
  metrics?: ControllerMetrics;
  random?: Random;
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
  /** All that is kept of the peer's pods. */
  holdings: PodMemory;
  /** For lists and journals of the peer. */
  listTurns: Mutex;
  /** For all peers: what is in memory as it travels. */
  bulkTurns: Mutex;
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
  /** Outlines; the holdings have the bodies. */
  readonly #pods: Informer<Pod>;
  readonly #controller: Controller;
  readonly #store: JournalStore;
  readonly #rounds: Rounds;
  /** UIDs of pods that have gone, by key. The holdings keep their last state until the journal has taken it in. */
  readonly #last = new Map<string, string>();
  /** Names of pods for which there was no room, until they change when there is some; and how many of them have gone. */
  readonly #fallen = new Set<string>();
  #lost = 0;
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
    const { client, clock, peer, namespace, random, metrics, holdings, listTurns, bulkTurns } = options;
    const { name } = namespace.metadata;
    const log = (this.#log = options.log.named('guardian', { peer, namespace: name }));
    const common = { client, clock, log, ...(random && { random }) };
    this.#pods = new Informer({
      ...common,
      client: slimPodsClient({
        client,
        namespace: name,
        holdings,
        listTurns,
        bulkTurns,
        isKnown: (pod) => this.#pods.get(`${name}/${pod}`) !== undefined,
        listed: (names) => this.#listed(names),
      }),
      type: pods,
      list: { namespace: name, labelSelector: LABEL_HOME_UID },
    });
    this.#store = new JournalStore({
      client,
      log,
      peer,
      namespace,
      marks: options.marks,
      holdings,
      turns: bulkTurns,
    });
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
    this.#options.holdings.open(this.#name, (name) => this.#fell(name));
    this.#pods.onChange((key, current, previous) => {
      if (current?.metadata.uid !== previous?.metadata.uid && previous !== undefined)
        this.#gone(key, previous);
      if (current === undefined && previous !== undefined && this.#fallen.delete(previous.metadata.name))
        this.#lost++;
      // A home that makes a pod is there, and knows what it has lost.
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
    this.#running = Promise.allSettled([starting, this.#controller.start(this.#abort.signal)]);
  }

  /** Returns when no write is under way any more. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('stopped'));
    await this.#running;
    await this.#controller.stop();
    await this.#pods.stop();
    this.#options.holdings.close(this.#name);
  }

  get #name(): string {
    return this.#options.namespace.metadata.name;
  }

  /** Undefined until it is known. */
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
    const count = this.#fallen.size + this.#lost;
    if (count === 0) return undefined;
    return (
      `${count} pods in ${this.#name} are not looked after, and not made anew when they are lost: what is kept of the ` +
      `pods of one peer whose home is away takes ${this.#options.holdings.mostBytes} bytes of memory at most`
    );
  }

  /** Looks again: its namespace has changed, for example. */
  look(): void {
    this.#controller.add(KEY);
  }

  #gone(key: string, { metadata: { name, uid } }: Pod): void {
    const { holdings } = this.#options;
    const last = holdings.pod(this.#name, name, uid);
    if (last !== undefined && (!this.#isNoted || isOwnEnd(last))) this.#last.set(key, uid);
    else holdings.gone(this.#name, name, uid);
  }

  #listed(names: ReadonlySet<string>): void {
    for (const name of this.#fallen) {
      // Of those that are known it is told when they are gone.
      if (!names.has(name) && this.#pods.get(`${this.#name}/${name}`) === undefined)
        this.#fallen.delete(name);
    }
    this.#controller.addAfter(KEY, this.#restMs);
  }

  /** There was no room for it any more. */
  #fell(name: string): void {
    const key = `${this.#name}/${name}`;
    const wasThere = this.#store.drop(name) || this.#last.has(key);
    // What is listed just now is not there yet.
    if (wasThere && this.#pods.get(key) === undefined) this.#lost++;
    else this.#fallen.add(name);
  }

  /** Nothing is to be learned any more from what these pods were last. */
  #forget(these: Iterable<[string, string]>): void {
    for (const [key, uid] of Array.from(these)) {
      if (this.#last.get(key) !== uid) continue;
      this.#last.delete(key);
      this.#options.holdings.gone(this.#name, nameOf(key), uid);
    }
  }

  async #reconcile(signal: AbortSignal): Promise<ReconcileResult> {
    const { isAway, clock } = this.#options;
    const beganMs = clock.monotonic();
    const namespace = this.#options.current();
    if (!isAway() || namespace?.metadata.uid !== this.uid || !this.#pods.synced) return {};
    try {
      if (!this.#isLoaded) await this.#options.listTurns.run(async () => this.#store.load(signal), signal);
      this.#isLoaded = true;
      const leftMs = this.#leftMs(namespace);
      if (leftMs <= 0) return await this.#end(signal);
      const noted = await this.#note();
      await this.#store.write(isAway, signal);
      this.#forget(noted);
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
  async #note(): Promise<[string, string][]> {
    const store = this.#store;
    const entries = [...this.#pods.list()].flatMap(({ metadata: { name, uid, labels } }) => {
      const pod = this.#options.holdings.pod(this.#name, name, uid);
      if (pod === undefined) return [];
      // Of one that was not looked after it is not known either since when it is on its way out.
      const wasOut = this.#fallen.delete(name);
      const isNew = wasOut || store.isFirst(labels?.[LABEL_HOME_UID] ?? '');
      return entryOf(pod, store.entries.get(name), isNew) ?? [];
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
      if (deepEqual(store.entries.get(entry.name), entry)) store.renew(entry);
      else if (!this.#fallen.has(entry.name)) store.put(entry);
    }
    for (const [key, uid] of last) {
      const pod = this.#options.holdings.pod(this.#name, nameOf(key), uid);
      const entry = store.entries.get(nameOf(key));
      if (pod !== undefined && isOwnEnd(pod) && entry?.uid === uid && entry.result === undefined) {
        store.put({ ...entry, result: resultOf(pod) });
      }
    }
    return last;
  }

  /** What went between the first silence of the home and now: whoever is late may be gone already. */
  #vanished(there: ReadonlySet<string>): JournalEntry[] {
    const gone = [...this.#last].filter(([key]) => !there.has(nameOf(key)));
    return gone.flatMap(([key, uid]) => {
      const pod = this.#options.holdings.pod(this.#name, nameOf(key), uid);
      return (pod && entryOfVanished(pod)) ?? [];
    });
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
