import { secrets } from '../../api/resources.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import type { Draft, KubeObject, Secret } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import { present } from '../../lib/fields.ts';
import type { Logger } from '../../lib/log.ts';
import { type PeerWrites, versionBytes } from '../peer-writes.ts';
import type { JournalEntry } from './journal-entry.ts';
import {
  isOf,
  isOfAbsence,
  type JournalHead,
  journalName,
  LABEL_JOURNAL,
  readShard,
  type Shard,
  shardOf,
  shardSecret,
  shardsFor,
} from './journal.ts';
import type { Mutex } from './mutex.ts';
import type { PodMemory } from './pod-memory.ts';

interface JournalStoreOptions {
  client: KubeClient;
  log: Logger;
  peer: string;
  /** The tenant. */
  namespace: KubeObject;
  /** The marks of the home's Leases now. */
  marks: () => Record<string, string>;
  /** Counts the bytes of each entry. */
  memory: Pick<PodMemory, 'hold' | 'letGo'>;
  /** Held while a shard is packed or unpacked, and so twice in memory. */
  mutex: Mutex;
  /** How much is written for each peer. */
  writes: PeerWrites;
}

/** A Secret has up to a megabyte. */
const PAGE = 8;

/**
 * The journal of one tenant namespace: held in memory, and stored where it differs. When the process is killed between two writes,
 * each Secret is still true by itself.
 */
export class JournalStore {
  readonly #options: JournalStoreOptions;
  readonly #entries = new Map<string, JournalEntry>();
  /** Shards whose Secret differs from the memory. */
  readonly #dirty = new Set<number>();
  /** The Secrets of shards, without their data. */
  readonly #stored = new Map<number, Secret>();
  /** Shards that could not be written, and why. */
  readonly #overfull = new Map<number, string>();
  #head: JournalHead | undefined;
  #wasBack = false;

  constructor(options: JournalStoreOptions) {
    this.#options = options;
  }

  /** Whether no shard waits to be stored for the first time. */
  get isBegun(): boolean {
    return [...this.#dirty].every((shard) => this.#stored.has(shard));
  }

  /** Since when the home is away, as the journal says; undefined where there is no journal. */
  get since(): string | undefined {
    return this.#head?.since;
  }

  /** Whether a journal was found of an earlier absence, whose end no guardian has seen. */
  get wasBack(): boolean {
    return this.#wasBack;
  }

  /** Why changes of some pods are no longer written down; undefined where all are. */
  get gap(): string | undefined {
    return this.#overfull.values().next().value;
  }

  get entries(): ReadonlyMap<string, JournalEntry> {
    return this.#entries;
  }

  /** Reads what an earlier guardian of this absence has written. */
  async load(signal: AbortSignal): Promise<void> {
    const { client, namespace, mutex } = this.#options;
    this.#clear();
    this.#overfull.clear();
    this.#head = undefined;
    const labelSelector = `${LABEL_JOURNAL}=${namespace.metadata.name}`;
    const list = { namespace: PEERS_NAMESPACE, labelSelector, limit: PAGE, signal };
    for await (const { items } of client.pages(secrets, list)) {
      for (const secret of items) {
        const shard = await mutex.run(async () => this.#read(secret), signal);
        // Nobody will ever use it, and a later one needs its name.
        if (shard === undefined) await deleteJournals(client, [secret], signal);
        else this.#take(shard, secret);
      }
    }
  }

  #clear(): void {
    const { namespace, memory } = this.#options;
    for (const name of this.#entries.keys()) memory.letGo(namespace.metadata.name, name);
    this.#entries.clear();
    this.#dirty.clear();
    this.#stored.clear();
  }

  async #read(secret: Secret): Promise<Shard | undefined> {
    const { namespace, log } = this.#options;
    const { name } = secret.metadata;
    try {
      const shard = await readShard(secret);
      const isSame = this.#head === undefined || shard.shards === this.#head.shards;
      const isOld = isOf(shard, namespace) && !isOfAbsence(shard, this.#options.marks());
      this.#wasBack ||= isOld;
      if (!isOld && isOf(shard, namespace) && isSame && name === journalName(shard.namespace, shard.shard))
        return shard;
      log.warn('journal of an earlier absence or namespace', { secret: name });
    } catch (error) {
      log.warn('unreadable journal', { error: errorMessage(error) });
    }
    return undefined;
  }

  #take({ entries, shard, ...head }: Shard, secret: Secret): void {
    this.#head = earlier(this.#head, head);
    this.#stored.set(shard, withoutData(secret));
    for (const entry of entries) this.#set(entry);
  }

  /** Begins a journal where there is none. */
  async begin(since: string, first: readonly JournalEntry[]): Promise<void> {
    if (this.#head !== undefined) return;
    const { peer, namespace } = this.#options;
    const { name, uid } = namespace.metadata;
    const marks = this.#options.marks();
    const shards = await this.#options.mutex.run(async () => shardsFor(first));
    this.#head = { namespace: name, namespaceUid: uid, peer, since, shards, marks };
    // Empty shards, too: a stored shard says that its other pods were not there when the home went away.
    for (let shard = 0; shard < shards; shard++) this.#dirty.add(shard);
  }

  /** Deletes it, on the API server and in memory. */
  async remove(signal: AbortSignal): Promise<void> {
    await deleteJournals(this.#options.client, [...this.#stored.values()], signal);
    this.#clear();
  }

  /** Whether the shard of that pod was never written. */
  isFirst(homeUid: string): boolean {
    return this.#head === undefined || !this.#stored.has(shardOf(homeUid, this.#head.shards));
  }

  /** Changes the memory; `write` stores it. */
  put(entry: JournalEntry): void {
    const before = this.#entries.get(entry.name);
    if (before !== undefined) this.#touch(before);
    this.#touch(entry);
    this.#set(entry);
  }

  /** Replaces an entry by an equal one that shares its parts with the body that is held, so that they are not held twice. */
  renew(entry: JournalEntry): void {
    this.#entries.set(entry.name, entry);
  }

  /** There is no room for it. The stored entry goes, too, because it would soon be wrong. */
  drop(name: string): boolean {
    const entry = this.#entries.get(name);
    if (entry === undefined) return false;
    this.#touch(entry);
    return this.#entries.delete(name);
  }

  /** The memory may drop it at once. */
  #set(entry: JournalEntry): void {
    const { namespace, memory } = this.#options;
    this.#entries.set(entry.name, entry);
    memory.hold(namespace.metadata.name, entry);
  }

  #touch({ homeUid }: JournalEntry): void {
    if (this.#head !== undefined) this.#dirty.add(shardOf(homeUid, this.#head.shards));
  }

  /**
   * `mayWrite` is asked before each write. Returns after how many milliseconds to call again for shards that wait for their turn;
   * Infinity where none does. Throws Conflict where somebody else has written the journal: then load it again.
   */
  async write(mayWrite: () => boolean, signal: AbortSignal): Promise<number> {
    const head = this.#head;
    if (head === undefined) return Infinity;
    const { due, waitMs } = this.#due(head);
    const shares = this.#shares(head, due);
    let nextMs = waitMs;
    for (const shard of due) {
      const entries = (shares.get(shard) ?? []).filter(({ name }) => this.#entries.has(name));
      // While this is written, other entries may be dropped.
      this.#dirty.delete(shard);
      let isDone = false;
      try {
        const draft = await this.#forge({ ...head, shard, entries }, signal);
        if (!mayWrite()) return nextMs;
        const turnMs = draft === undefined ? 0 : this.#turn(head, shard, draft);
        if (turnMs > 0) {
          nextMs = Math.min(nextMs, turnMs);
          continue;
        }
        if (draft !== undefined)
          this.#stored.set(shard, withoutData(await this.#store(shard, draft, signal)));
        isDone = true;
      } finally {
        if (!isDone) this.#dirty.add(shard);
      }
    }
    return nextMs;
  }

  /** Which shards are to be packed now, those first that were never stored; and when the next one of the others has its turn. */
  #due(head: JournalHead): { due: number[]; waitMs: number } {
    const { peer, writes } = this.#options;
    let waitMs = Infinity;
    const due = [...this.#dirty].filter((shard) => {
      const turnMs = writes.untilTurn(peer, journalName(head.namespace, shard));
      if (turnMs > 0) waitMs = Math.min(waitMs, turnMs);
      return turnMs === 0;
    });
    const isFirst = (shard: number): number => (this.#stored.has(shard) ? 0 : 1);
    return { due: due.toSorted((one, other) => isFirst(other) - isFirst(one)), waitMs };
  }

  /** What belongs into these shards. */
  #shares(head: JournalHead, due: readonly number[]): Map<number, JournalEntry[]> {
    const shares = new Map<number, JournalEntry[]>(due.map((shard) => [shard, []]));
    if (due.length === 0) return shares;
    for (const entry of this.#entries.values()) shares.get(shardOf(entry.homeUid, head.shards))?.push(entry);
    return shares;
  }

  #turn({ namespace }: JournalHead, shard: number, draft: Draft<Secret>): number {
    const { peer, writes } = this.#options;
    return writes.turn(peer, journalName(namespace, shard), versionBytes(draft));
  }

  /** Undefined where the shard has grown too large; what was stored before stays. */
  async #forge(shard: Shard, signal: AbortSignal): Promise<Draft<Secret> | undefined> {
    try {
      const secret = await this.#options.mutex.run(async () => shardSecret(shard), signal);
      this.#overfull.delete(shard.shard);
      return secret;
    } catch (error) {
      if (!hasCode(error, 'Invalid')) throw error;
      this.#overfull.set(shard.shard, errorMessage(error));
      this.#options.log.warn('journal not written', { error: errorMessage(error) });
      return undefined;
    }
  }

  async #store(shard: number, draft: Draft<Secret>, signal: AbortSignal): Promise<Secret> {
    const { client } = this.#options;
    const known = this.#stored.get(shard);
    if (known === undefined) return client.create(secrets, draft, { signal });
    const { data } = draft;
    return client.replace(secrets, { ...known, ...(data && { data }) }, { signal });
  }
}

const withoutData = ({ apiVersion, kind, metadata, type }: Secret): Secret => ({
  ...present({ apiVersion, kind, type }),
  metadata,
});

/** All Secrets should say the same time. Where they differ, the earliest counts. */
const earlier = (a: JournalHead | undefined, b: JournalHead): JournalHead =>
  a !== undefined && Date.parse(a.since) <= Date.parse(b.since) ? a : b;

/** Deletes journals, by UID. */
export async function deleteJournals(
  client: KubeClient,
  journals: readonly KubeObject[],
  signal: AbortSignal,
): Promise<void> {
  for (const { metadata } of journals) {
    const { name, uid } = metadata;
    const deleting = client.delete(secrets, { namespace: PEERS_NAMESPACE, name }, { uid, signal });
    await deleting.catch(ignoring('NotFound', 'Conflict'));
  }
}
