import { ANNOTATION_REMADE_FOR, LABEL_REMAKE } from '../../api/names.ts';
import { pods, secrets } from '../../api/resources.ts';
import type { Pod, Secret } from '../../api/wire.ts';
import type { ClusterBasics } from '../../kube/client.ts';
import { Controller, type ControllerMetrics, type ReconcileResult } from '../../kube/controller.ts';
import { aboutPod, type EventRecorder } from '../../kube/events.ts';
import { Evictions } from '../../kube/evictions.ts';
import { Informer } from '../../kube/informer.ts';
import { deleteByUid } from '../../kube/write.ts';
import { Ages } from '../../lib/ages.ts';
import { errorMessage, hasCode, ignoring, TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import {
  type Journal,
  journalName,
  journalOf,
  journalSecret,
  readJournal,
  type RemakeOptions,
} from './journal.ts';

/** What every part of offloading works with. */
export interface OffloadingParts extends ClusterBasics {
  metrics?: ControllerMetrics;
  events: EventRecorder;
}

interface RemakerOptions extends OffloadingParts {
  /** Holds the journals. */
  systemNamespace: string;
  /** UID of the namespace of that name, from a cache that is filled before this starts; undefined: there is none. */
  namespaceUid?: (name: string) => string | undefined;
}

/**
 * At most so many pods of one namespace are being made anew at a time: each keeps its manifest in our own namespace, and
 * where the API server refuses them all, by a quota for example, their number would grow without end.
 */
export const MOST_REMADE = 32;
/** How often this checks whether the old pod is gone: the agent, or a kubelet, ends it. */
const ENDING_POLL_MS = 1_000;
/** The longest pause: each check reads from the API server, and nobody ends the pod while its provider does not answer. */
const MAX_POLL_MS = 30_000;

/**
 * Makes pods without a controller anew. Killed at any moment, it continues where it was, since each step can be seen in the
 * cluster itself:
 *
 *     journal stored ─▶ old pod evicted or deleted, by UID ─▶ gone ─▶ new pod created ─▶ journal deleted
 *
 * If somebody else deletes the old pod between the first two steps, or the new one between the last two, that is undone,
 * since the two cases look the same. Both times are milliseconds, unless the process was killed there.
 */
export class Remake {
  readonly #options: RemakerOptions;
  readonly #journals: Informer<Secret>;
  readonly #controller: Controller;
  readonly #evictions: Evictions;
  readonly #ages: Ages;

  constructor(options: RemakerOptions) {
    const { client, clock, log, metrics, systemNamespace: namespace } = options;
    this.#options = { ...options, log: log.named('remake') };
    this.#evictions = new Evictions(options);
    this.#ages = new Ages(clock);
    this.#journals = new Informer<Secret>({
      client,
      type: secrets,
      list: { namespace, labelSelector: `${LABEL_REMAKE}=pod` },
      clock,
      log: this.#options.log,
      name: 'remake journals',
    });
    this.#controller = new Controller({
      name: 'remake',
      concurrency: 4,
      reconcile: async (key, { signal }) => this.#reconcile(key, signal),
      clock,
      log: this.#options.log,
      ...(metrics && { metrics }),
    });
    this.#journals.onChange((key) => this.#controller.add(key));
  }

  components(): Component[] {
    return [this.#journals, this.#controller];
  }

  /**
   * Resolves when it is certain that the pod will be made anew; the rest happens in the background. False: that was
   * certain before. Throws Conflict as long as a journal is stored that lets go of the pod where it has started, and that is not
   * wanted: such a journal comes to its end by itself.
   */
  async begin(pod: Pod, { signal, ...options }: RemakeOptions & { signal: AbortSignal }): Promise<boolean> {
    const { client, systemNamespace, namespaceUid } = this.#options;
    const { uid, namespace = '' } = pod.metadata;
    if (this.#isStored(uid, options)) return false;
    const journal = journalOf(pod, options, namespaceUid?.(namespace));
    const secret = journalSecret(journal, systemNamespace);
    const storing = client.create(secrets, secret, { signal });
    const isNew = (await storing.then(() => true).catch(ignoring('AlreadyExists'))) ?? false;
    // Any journal does where the pod need not be ended once it has started.
    if (isNew || options.unlessStarted) return isNew;
    const there = this.#journals.get(this.#keyOf(uid));
    if (there !== undefined && !readJournal(there).unlessStarted) return false;
    const what = `Secret "${journalName(uid)}" is still there, which does not end the pod once it has started`;
    throw new TributaryError('Conflict', what);
  }

  /** From the cache, so that whoever asks often does not write often. */
  #isStored(uid: string, { unlessStarted }: RemakeOptions): boolean {
    const secret = this.#journals.get(this.#keyOf(uid));
    if (secret === undefined || secret.metadata.deletionTimestamp !== undefined) return false;
    try {
      // One that lets go of a pod that has started says less than what may be wanted now.
      return unlessStarted || !readJournal(secret).unlessStarted;
    } catch {
      return false;
    }
  }

  #keyOf(uid: string): string {
    return `${this.#options.systemNamespace}/${journalName(uid)}`;
  }

  /** How many pods of that namespace are still to be made anew. */
  count(namespace: string): number {
    return [...this.#journals.list()].filter((secret) => namespaceOf(secret) === namespace).length;
  }

  /** Calls back when `count` may answer otherwise; the returned function ends that. */
  onChange(listener: () => void): () => void {
    return this.#journals.onChange(listener);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const secret = this.#journals.get(key);
    if (secret === undefined || secret.metadata.deletionTimestamp !== undefined) return {};
    const journal = readJournal(secret);
    const { client, events } = this.#options;
    const { name, namespace } = journal.pod.metadata;
    const there = await client.get(pods, { name, namespace }, { signal }).catch(ignoring('NotFound'));
    if (there?.metadata.uid === journal.uid) return this.#end(secret, journal, there, signal);
    if (there === undefined) {
      const isMade = await this.#make(journal, signal);
      if (!isMade) return { requeueAfterMs: ENDING_POLL_MS };
    } else if (there.metadata.annotations?.[ANNOTATION_REMADE_FOR] !== journal.uid) {
      const message = 'a pod that was to be made anew is not: its name is taken by this one';
      events.event(aboutPod(there), 'Warning', 'RemakeDropped', message);
    }
    return this.#drop(secret, signal);
  }

  async #end(secret: Secret, journal: Journal, pod: Pod, signal: AbortSignal): Promise<ReconcileResult> {
    const { metadata, status } = pod;
    if (metadata.deletionTimestamp !== undefined) {
      return { requeueAfterMs: this.#pollMs(metadata.deletionTimestamp) };
    }
    if (journal.unlessStarted && status?.startTime !== undefined) return this.#drop(secret, signal);
    const { uid, resourceVersion } = metadata;
    const { budgetsUntil = 0 } = journal;
    if (this.#ages.leftMs(uid, budgetsUntil) > 0) {
      await this.#evictions.one(pod, signal);
      return { requeueAfterMs: ENDING_POLL_MS };
    }
    // With the version: a pod that has started since that read is not ended.
    const precondition = journal.unlessStarted ? { uid, resourceVersion } : { uid };
    const deleting = this.#options.client.delete(pods, pod.metadata, { ...precondition, signal });
    await deleting.catch(ignoring('NotFound'));
    return { requeueAfterMs: ENDING_POLL_MS };
  }

  /** The pauses grow with the time that it takes. */
  #pollMs(deletionTimestamp: string): number {
    const sinceMs = this.#options.clock.now() - Date.parse(deletionTimestamp);
    return Math.min(MAX_POLL_MS, Math.max(ENDING_POLL_MS, sinceMs / 10));
  }

  /** The namespace was deleted, and somebody has made a new one of that name. */
  #isElsewhere({ pod, namespaceUid: uid }: Journal): boolean {
    const { namespaceUid } = this.#options;
    return uid !== undefined && namespaceUid !== undefined && namespaceUid(pod.metadata.namespace) !== uid;
  }

  /** False: the name has been taken since it was read, and has to be read again. */
  async #make(journal: Journal, signal: AbortSignal): Promise<boolean> {
    const { client, events, log } = this.#options;
    const { pod } = journal;
    const where = `${pod.metadata.namespace}/${pod.metadata.name}`;
    if (this.#isElsewhere(journal)) {
      log.warn('the namespace of a pod that was to be made anew is another one by now', { pod: where });
      return true;
    }
    try {
      const made = await client.create(pods, pod, { signal });
      const message = 'made anew: it had no controller that would have replaced it';
      events.event(aboutPod(made), 'Normal', 'Remade', message);
      return true;
    } catch (error) {
      if (hasCode(error, 'AlreadyExists')) return false;
      if (hasCode(error, 'NotFound')) {
        log.warn('the namespace of a pod that was to be made anew is gone', { pod: where });
        return true;
      }
      const message = `cannot be made anew, and is tried again: ${errorMessage(error)}`;
      events.event(aboutPod(pod), 'Warning', 'RemakeFailed', message);
      throw error;
    }
  }

  async #drop(secret: Secret, signal: AbortSignal): Promise<ReconcileResult> {
    await deleteByUid(this.#options.client, secrets, secret, { signal });
    return {};
  }
}

function namespaceOf(secret: Secret): string | undefined {
  try {
    return readJournal(secret).pod.metadata.namespace;
  } catch {
    return undefined;
  }
}
