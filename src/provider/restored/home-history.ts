import { ANNOTATION_FOREIGN_RENEWALS, ANNOTATION_RENEWALS, ANNOTATION_RESTORED_AT } from '../../api/names.ts';
import { leases } from '../../api/resources.ts';
import type { Lease } from '../../api/wire.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { LeaseMarks } from '../../kube/lease.ts';
import { tellLostHistory } from '../../kube/server-news.ts';
import type { Basics } from '../../lib/basics.ts';
import { startDeadline, untilAborted } from '../../lib/deadline.ts';
import { ignoring } from '../../lib/errors.ts';
import { Listeners } from '../../lib/listeners.ts';
import { isLost, type Mark, markOf, markText, type Note, parseMark } from './marks.ts';

/** Whether what is absent at home may be taken for gone. */
export interface History {
  /** For how much longer things over there are kept that nothing at home explains; 0: home was not restored of late. */
  readonly keptMs: number;
  /** When that was noticed, monotonic ms: what was read before is not to be believed. */
  readonly noticedAt: number;
  /** Home was restored, or is known to have been a while ago. */
  onRestored(listener: () => void): () => void;
  /**
   * To be asked after a live read has found something absent at home: by then it is noticed if home was restored before that
   * read. False: nobody can tell yet.
   */
  isChecked(signal: AbortSignal): Promise<boolean>;
}

/** Of a home of which nobody asks. */
export const NO_HISTORY: History = {
  keptMs: 0,
  noticedAt: -Infinity,
  onRestored: () => () => undefined,
  isChecked: async () => Promise.resolve(true),
};

interface HomeHistoryOptions extends Basics {
  home: KubeClient;
  nodeName: string;
  /** For how long things are kept after a restore, in milliseconds. */
  keepMs: number;
}

const LEASE_NAMESPACE = 'kube-node-lease';
const LOOK_MS = 5_000;

/**
 * Notices that the etcd of home was restored from a backup. The Lease of our Node, which we alone write, counts its renewals; if
 * it shows fewer than we have written, what we wrote is lost. So that a restart in between hides nothing, the Lease over there
 * notes how far that count was (HomeLease), and this one notes the same of the other. Until both have been compared, we do not
 * count on, and leave the notes as they are.
 */
export class HomeHistory implements History, LeaseMarks {
  readonly #options: HomeHistoryOptions;
  readonly #restored = new Listeners();
  readonly onRestored: Listeners['add'] = this.#restored.add;
  #isRead = false;
  #isCompared = false;
  /** As last read or written. */
  #last: Mark | undefined;
  /** What was counted in the lost history. */
  #lostCount = 0;
  #foreign: Mark | undefined;
  /** By the wall clock, ms: it outlives this process. */
  #restoredAt = -Infinity;
  #noticedAt = -Infinity;
  #looking: Promise<void> = Promise.resolve();
  #nextLook: Promise<void> | undefined;

  constructor(options: HomeHistoryOptions) {
    this.#options = options;
  }

  get keptMs(): number {
    const { keepMs, clock } = this.#options;
    // A clock that was set back must not prolong it.
    return Math.max(0, Math.min(keepMs, this.#restoredAt + keepMs - clock.now()));
  }

  get noticedAt(): number {
    return this.#noticedAt;
  }

  /** In milliseconds. */
  get keepMs(): number {
    return this.#options.keepMs;
  }

  /** When home is known to have been restored, ms since 1970; undefined: not of late. */
  get restoredAt(): number | undefined {
    return this.keptMs > 0 ? this.#restoredAt : undefined;
  }

  /** Whether the Lease at home has been read since the start: what it notes of the Lease over there is known. */
  get isRead(): boolean {
    return this.#isRead;
  }

  /** How far this Lease has come, to be noted over there; undefined: the note there is not to be touched yet. */
  get mark(): Mark | undefined {
    return this.#isCompared ? this.#last : undefined;
  }

  /** How far the Lease over there has come. What an earlier process noted counts until it is set for the first time. */
  get foreign(): Mark | undefined {
    return this.#foreign;
  }

  set foreign(mark: Mark) {
    this.#foreign = mark;
  }

  read(lease: Lease | undefined): void {
    const isFirst = !this.#isRead;
    this.#isRead = true;
    if (lease === undefined) return;
    const found = markOf(lease);
    if (isFirst) this.#recall(lease);
    if (isLost(this.#last, found)) this.#notice(this.#last);
    this.#last = found;
  }

  next(lease: Lease | undefined): Record<string, string> {
    const found = lease === undefined ? 0 : markOf(lease).count;
    const count = Math.max(found, this.#lostCount) + Number(this.#isCompared);
    return {
      [ANNOTATION_RENEWALS]: String(count),
      ...(this.#foreign && { [ANNOTATION_FOREIGN_RENEWALS]: markText(this.#foreign) }),
      // In the same write as the count, which hides the restore from whoever comes later.
      ...(this.keptMs > 0 && { [ANNOTATION_RESTORED_AT]: new Date(this.#restoredAt).toISOString() }),
    };
  }

  wrote(lease: Lease): void {
    this.#isRead = true;
    this.#last = markOf(lease);
    this.#lostCount = 0;
  }

  /** What the Lease over there notes, or that it notes nothing: to be told before it is written for the first time. */
  async compare(note: Note | undefined, signal: AbortSignal): Promise<void> {
    if (this.#isCompared) return;
    const { nodeName } = this.#options;
    if (note?.node === nodeName && isLost(note, this.#last)) this.#notice(note);
    // Virtual nodes of one foreign cluster share that Lease. All have their Leases in the same etcd.
    if (note !== undefined && note.node !== nodeName) await this.#compareOther(note, signal);
    this.#isCompared = true;
  }

  async isChecked(signal: AbortSignal): Promise<boolean> {
    if (!this.#isCompared) return false;
    // A look under way may have been answered before the read that is in doubt.
    this.#nextLook ??= this.#looking.then(async () => {
      this.#nextLook = undefined;
      this.#looking = this.#look();
      const looking = this.#looking;
      this.#looking = looking.catch(() => undefined);
      await looking;
    });
    await untilAborted(this.#nextLook, signal);
    return true;
  }

  async #look(): Promise<void> {
    const { clock, nodeName } = this.#options;
    using deadline = startDeadline(clock, LOOK_MS, `Lease ${LEASE_NAMESPACE}/${nodeName}`);
    // It may be renewed while it is read.
    const before = this.#last;
    const lease = await this.#lease(nodeName, deadline.signal);
    if (lease === undefined || this.#lostCount > 0 || !isLost(before, markOf(lease))) return;
    this.#notice(before);
    this.#last = markOf(lease);
  }

  async #compareOther(note: Note, signal: AbortSignal): Promise<void> {
    const lease = await this.#lease(note.node, signal);
    if (lease === undefined) return;
    if (isLost(note, markOf(lease))) this.#notice(undefined);
    else if (this.keptMs === 0) this.#recall(lease);
  }

  async #lease(name: string, signal: AbortSignal): Promise<Lease | undefined> {
    const ref = { namespace: LEASE_NAMESPACE, name };
    return this.#options.home.get(leases, ref, { signal }).catch(ignoring('NotFound', 'Forbidden'));
  }

  /** What an earlier process, or that of another virtual node, has noticed. */
  #recall({ metadata: { annotations = {} } }: Lease): void {
    this.#foreign ??= parseMark(annotations[ANNOTATION_FOREIGN_RENEWALS]);
    const restoredAt = Date.parse(annotations[ANNOTATION_RESTORED_AT] ?? '');
    if (Number.isNaN(restoredAt)) return;
    this.#restoredAt = restoredAt;
    if (this.keptMs > 0) this.#restored.tell();
  }

  #notice(lost: Mark | undefined): void {
    const { home, clock, log } = this.#options;
    this.#lostCount = Math.max(this.#lostCount, lost?.count ?? 0);
    this.#restoredAt = clock.now();
    this.#noticedAt = clock.monotonic();
    log.warn('the etcd of this cluster was restored from a backup', { lease: this.#options.nodeName });
    tellLostHistory(home, 'its etcd was restored from a backup');
    this.#restored.tell();
  }
}

/** Copies go a moment after the pods that may use them. */
const AFTER_PODS_MS = 30_000;
const UNKNOWN_MS = 1_000;

/** For how long something that a live read has not found at home is not to be deleted over there; 0: it may be. */
export async function keepCopyMs(history: History, signal: AbortSignal): Promise<number> {
  if (!(await history.isChecked(signal))) return UNKNOWN_MS;
  return history.keptMs === 0 ? 0 : history.keptMs + AFTER_PODS_MS;
}
