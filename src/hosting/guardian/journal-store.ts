import { secrets } from '../../api/resources.ts';
import { PEERS_NAMESPACE } from '../../api/tenant-labels.ts';
import type { Draft, KubeObject, Secret } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { JournalEntry } from './entry.ts';
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

export interface JournalStoreOptions {
  client: KubeClient;
  log: Logger;
  peer: string;
  /** The tenant. */
  namespace: KubeObject;
  /** What the home's Leases show. */
  marks: () => Record<string, string>;
  /** Where each entry is counted. */
  holdings: Pick<PodMemory, 'hold' | 'letGo'>;
  /** For what is in memory once more while it is packed or unpacked. */
  turns: Mutex;
}

/** A Secret has a megabyte. */
const PAGE = 8;

/**
 * The journal of one tenant namespace: in memory as it is stored, and written where it differs. Whoever is killed between two
 * writes leaves Secrets that are each true for themselves.
 */
export class JournalStore {
  readonly #options: JournalStoreOptions;
  readonly #entries = new Map<string, JournalEntry>();
  /** Shards whose Secret differs from the memory. */
  readonly #dirty = new Set<number>();
  /** Without what is in them. */
  readonly #stored = new Map<number, Secret>();
  /** Shards that were not written, and why. */
  readonly #overfull = new Map<number, string>();
  #head: JournalHead | undefined;
  #wasBack = false;

  constructor(options: JournalStoreOptions) {
    this.#options = options;
  }

  /** Whether there has been one before. Undefined since: there is none. */
  get since(): string | undefined {
    return this.#head?.since;
  }

  /** Whether a journal was found of an earlier absence, of which nobody of us has seen the end. */
  get wasBack(): boolean {
    return this.#wasBack;
  }

  /** Why what becomes of some of the pods is not written down any more; undefined: all of it is. */
  get gap(): string | undefined {
    return this.#overfull.values().next().value;
  }

  get entries(): ReadonlyMap<string, JournalEntry> {
    return this.#entries;
  }

  /** What an earlier guardian of this absence has written down. */
  async load(signal: AbortSignal): Promise<void> {
    const { client, namespace, turns } = this.#options;
    this.#clear();
    this.#overfull.clear();
    this.#head = undefined;
    const labelSelector = `${LABEL_JOURNAL}=${namespace.metadata.name}`;
    const list = { namespace: PEERS_NAMESPACE, labelSelector, limit: PAGE, signal };
    for await (const { items } of client.pages(secrets, list)) {
      for (const secret of items) {
        const shard = await turns.run(async () => this.#read(secret), signal);
        // Nobody will ever read it, and it has the name of one to come.
        if (shard === undefined) await deleteJournals(client, [secret], signal);
        else this.#take(shard, secret);
      }
    }
  }

  #clear(): void {
    const { namespace, holdings } = this.#options;
    for (const name of this.#entries.keys()) holdings.letGo(namespace.metadata.name, name);
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
      log.warn('journal of another time', { secret: name });
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
    const shards = await this.#options.turns.run(async () => shardsFor(first));
    this.#head = { namespace: name, namespaceUid: uid, peer, since, shards, marks };
    // Empty ones, too: a share that is there says which of its pods were there when the home went away.
    for (let shard = 0; shard < shards; shard++) this.#dirty.add(shard);
  }

  /** The end of it, here and in memory. */
  async remove(signal: AbortSignal): Promise<void> {
    await deleteJournals(this.#options.client, [...this.#stored.values()], signal);
    this.#clear();
  }

  /** Whether nothing has been written yet about pods of that share. */
  isFirst(homeUid: string): boolean {
    return this.#head === undefined || !this.#stored.has(shardOf(homeUid, this.#head.shards));
  }

  /** In memory; `write` stores it. */
  put(entry: JournalEntry): void {
    const before = this.#entries.get(entry.name);
    if (before !== undefined) this.#touch(before);
    this.#touch(entry);
    this.#set(entry);
  }

  /** The same, made of the pod as it is held now: with the one that is here, it would be held twice. */
  renew(entry: JournalEntry): void {
    this.#entries.set(entry.name, entry);
  }

  /** There is no room for it. Gone from what is stored, too: what nobody follows is soon not true any more. */
  drop(name: string): boolean {
    const entry = this.#entries.get(name);
    if (entry === undefined) return false;
    this.#touch(entry);
    return this.#entries.delete(name);
  }

  /** It may fall out at once. */
  #set(entry: JournalEntry): void {
    const { namespace, holdings } = this.#options;
    this.#entries.set(entry.name, entry);
    holdings.hold(namespace.metadata.name, entry);
  }

  #touch({ homeUid }: JournalEntry): void {
    if (this.#head !== undefined) this.#dirty.add(shardOf(homeUid, this.#head.shards));
  }

  /** `mayWrite` is asked before each write. Throws Conflict where somebody else writes the same journal: load it again. */
  async write(mayWrite: () => boolean, signal: AbortSignal): Promise<void> {
    const head = this.#head;
    if (head === undefined || this.#dirty.size === 0) return;
    const shares = new Map<number, JournalEntry[]>();
    for (const entry of this.#entries.values()) {
      const at = shardOf(entry.homeUid, head.shards);
      if (!this.#dirty.has(at)) continue;
      const share = shares.get(at);
      if (share === undefined) shares.set(at, [entry]);
      else share.push(entry);
    }
    for (const shard of Array.from(this.#dirty)) {
      const entries = (shares.get(shard) ?? []).filter(({ name }) => this.#entries.has(name));
      // Another may fall out while this is written.
      this.#dirty.delete(shard);
      let isDone = false;
      try {
        const draft = await this.#forge({ ...head, shard, entries }, signal);
        if (!mayWrite()) return;
        if (draft !== undefined)
          this.#stored.set(shard, withoutData(await this.#store(shard, draft, signal)));
        isDone = true;
      } finally {
        if (!isDone) this.#dirty.add(shard);
      }
    }
  }

  /** Undefined where it has grown too large; what was written before stays. */
  async #forge(shard: Shard, signal: AbortSignal): Promise<Draft<Secret> | undefined> {
    try {
      const secret = await this.#options.turns.run(async () => shardSecret(shard), signal);
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
  ...(apiVersion !== undefined && { apiVersion }),
  ...(kind !== undefined && { kind }),
  metadata,
  ...(type !== undefined && { type }),
});

/** Each Secret bears the same time; should one of them differ, the absence is as long as any says. */
const earlier = (a: JournalHead | undefined, b: JournalHead): JournalHead =>
  a !== undefined && Date.parse(a.since) <= Date.parse(b.since) ? a : b;

/** Deletes journals, by UID: those of one tenant namespace, or a peer's. */
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
