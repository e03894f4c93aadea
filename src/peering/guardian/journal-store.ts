import { secrets } from '../../api/resources.ts';
import type { Draft, KubeObject, Secret } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import { errorMessage, hasCode, ignoring } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { PEERS_NAMESPACE } from '../tenant.ts';
import type { Entry } from './entry.ts';
import {
  LABEL_JOURNAL,
  isOf,
  isOfAbsence,
  journalName,
  readShard,
  shardOf,
  shardSecret,
  shardsFor,
  type JournalHead,
  type Shard,
} from './journal.ts';

export interface JournalStoreOptions {
  client: KubeClient;
  log: Logger;
  peer: string;
  /** The tenant. */
  namespace: KubeObject;
  /** What the home's Leases show. */
  marks: () => Record<string, string>;
}

/**
 * The journal of one tenant namespace: in memory as it is stored, and written where it differs. Whoever is killed between two
 * writes leaves Secrets that are each true for themselves.
 */
export class JournalStore {
  readonly #options: JournalStoreOptions;
  readonly #entries = new Map<string, Entry>();
  /** Shards whose Secret differs from the memory. */
  readonly #dirty = new Set<number>();
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

  get entries(): ReadonlyMap<string, Entry> {
    return this.#entries;
  }

  /** What an earlier guardian of this absence has written down. */
  async load(signal: AbortSignal): Promise<void> {
    const { client, namespace } = this.#options;
    this.#entries.clear();
    this.#dirty.clear();
    this.#stored.clear();
    this.#overfull.clear();
    this.#head = undefined;
    const selector = `${LABEL_JOURNAL}=${namespace.metadata.name}`;
    const { items } = await client.list(secrets, {
      namespace: PEERS_NAMESPACE,
      labelSelector: selector,
      signal,
    });
    for (const secret of items) {
      const shard = await this.#read(secret);
      // Nobody will ever read it, and it has the name of one to come.
      if (shard === undefined) await deleteJournals(client, [secret], signal);
      else this.#take(shard, secret);
    }
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
    this.#stored.set(shard, secret);
    for (const entry of entries) this.#entries.set(entry.name, entry);
  }

  /** Begins a journal where there is none. */
  async begin(since: string, first: readonly Entry[]): Promise<void> {
    if (this.#head !== undefined) return;
    const { peer, namespace } = this.#options;
    const { name, uid } = namespace.metadata;
    const marks = this.#options.marks();
    const shards = await shardsFor(first);
    this.#head = { namespace: name, namespaceUid: uid, peer, since, shards, marks };
    // Empty ones, too: a share that is there says which of its pods were there when the home went away.
    for (let shard = 0; shard < shards; shard++) this.#dirty.add(shard);
  }

  /** The end of it, here and in memory. */
  async remove(signal: AbortSignal): Promise<void> {
    await deleteJournals(this.#options.client, [...this.#stored.values()], signal);
    this.#stored.clear();
    this.#dirty.clear();
    this.#entries.clear();
  }

  /** Whether nothing has been written yet about pods of that share. */
  isFirst(homeUid: string): boolean {
    return this.#head === undefined || !this.#stored.has(shardOf(homeUid, this.#head.shards));
  }

  /** In memory; `write` stores it. */
  put(entry: Entry): void {
    const before = this.#entries.get(entry.name);
    if (before !== undefined) this.#touch(before);
    this.#entries.set(entry.name, entry);
    this.#touch(entry);
  }

  #touch({ homeUid }: Entry): void {
    if (this.#head !== undefined) this.#dirty.add(shardOf(homeUid, this.#head.shards));
  }

  /** `mayWrite` is asked before each write. Throws Conflict where somebody else writes the same journal: load it again. */
  async write(mayWrite: () => boolean, signal: AbortSignal): Promise<void> {
    const head = this.#head;
    if (head === undefined || this.#dirty.size === 0) return;
    const shares = new Map<number, Entry[]>();
    for (const entry of this.#entries.values()) {
      const at = shardOf(entry.homeUid, head.shards);
      if (!this.#dirty.has(at)) continue;
      const share = shares.get(at);
      if (share === undefined) shares.set(at, [entry]);
      else share.push(entry);
    }
    for (const shard of this.#dirty) {
      const draft = await this.#forge({ ...head, shard, entries: shares.get(shard) ?? [] });
      if (!mayWrite()) return;
      if (draft !== undefined) this.#stored.set(shard, await this.#store(shard, draft, signal));
      this.#dirty.delete(shard);
    }
  }

  /** Undefined where it has grown too large; what was written before stays. */
  async #forge(shard: Shard): Promise<Draft<Secret> | undefined> {
    try {
      const secret = await shardSecret(shard);
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
