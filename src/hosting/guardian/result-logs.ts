import { MOST_LOG_BYTES, resultLogsText } from '../../api/result-logs.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { JournalEntry } from './journal-entry.ts';

/** For the pods of one peer, in all its namespaces together. */
const MOST_PEER_BYTES = 4 * 1024 * 1024;

/**
 * Logs of pods that have ended while their home is away. In memory alone: the journal has no room for them, and the pod that
 * bears the result takes them along.
 */
export class KeptLogs {
  readonly #mostBytes: number;
  /** By namespace and UID of the home pod; the oldest first. */
  readonly #texts = new Map<string, string>();
  #bytes = 0;

  constructor(mostBytes: number = MOST_PEER_BYTES) {
    this.#mostBytes = mostBytes;
  }

  /** The value of the annotation. */
  of(namespace: string, homeUid: string): string | undefined {
    return this.#texts.get(keyOf(namespace, homeUid));
  }

  put(namespace: string, homeUid: string, text: string): void {
    const key = keyOf(namespace, homeUid);
    this.#remove(key);
    this.#texts.set(key, text);
    this.#bytes += text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#bytes <= this.#mostBytes) return;
      this.#remove(oldest);
    }
  }

  forget(namespace: string): void {
    const prefix = keyOf(namespace, '');
    for (const key of this.#texts.keys()) if (key.startsWith(prefix)) this.#remove(key);
  }

  #remove(key: string): void {
    this.#bytes -= this.#texts.get(key)?.length ?? 0;
    this.#texts.delete(key);
  }
}

const keyOf = (namespace: string, homeUid: string): string => `${namespace}/${homeUid}`;

/** A runtime writes lines of 16 KiB at most (CRI), so this is all that so many lines can be. */
const LINES = 256;
const MOST_READ_BYTES = LINES * 17 * 1024;
const PATIENCE_MS = 10_000;
const MOST_TRIES = 3;

interface LogReaderOptions {
  client: Pick<KubeClient, 'raw'>;
  clock: Clock;
  log: Logger;
  namespace: string;
  kept: KeptLogs;
}

/** Reads the logs of ended pods in one tenant namespace, one after another, beside whatever else is done for them. */
export class LogReader {
  readonly #options: LogReaderOptions;
  /** By UID of the pod. */
  readonly #tries = new Map<string, number>();
  #waiting = new Map<string, JournalEntry>();
  #running: Promise<void> | undefined;

  constructor(options: LogReaderOptions) {
    this.#options = options;
  }

  /** The pods that have ended and still exist. Does not wait; no error is thrown. */
  look(ended: readonly JournalEntry[], signal: AbortSignal): void {
    const uids = new Set(ended.map(({ uid }) => uid));
    for (const uid of this.#tries.keys()) if (!uids.has(uid)) this.#tries.delete(uid);
    this.#waiting = new Map(
      ended.filter(({ uid }) => (this.#tries.get(uid) ?? 0) < MOST_TRIES).map((entry) => [entry.uid, entry]),
    );
    if (this.#running === undefined && this.#waiting.size > 0) this.#running = this.#work(signal);
  }

  /** Resolves when nothing is being read any more; the signal of `look` must have fired. */
  async stopped(): Promise<void> {
    await this.#running;
  }

  async #work(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        const next = this.#waiting.values().next().value;
        if (next === undefined) return;
        this.#waiting.delete(next.uid);
        await this.#read(next, signal);
      }
    } finally {
      // In the same turn in which nothing waited: what comes later starts anew.
      this.#running = undefined;
    }
  }

  async #read(entry: JournalEntry, signal: AbortSignal): Promise<void> {
    const { kept, log, namespace } = this.#options;
    const names = endedContainers(entry);
    const share = Math.floor(MOST_LOG_BYTES / names.length);
    const tries = (this.#tries.get(entry.uid) ?? 0) + 1;
    // Until it is known how this one ends, nobody else begins.
    this.#tries.set(entry.uid, MOST_TRIES);
    const logs = new Map<string, Buffer>();
    let failure: unknown;
    for (const name of names) {
      try {
        logs.set(name, await this.#tail(entry.name, name, share, signal));
      } catch (error) {
        if (signal.aborted) return;
        failure = error;
      }
    }
    if (failure !== undefined) this.#tries.set(entry.uid, tries);
    if (logs.size > 0) kept.put(namespace, entry.homeUid, resultLogsText(logs));
    if (failure === undefined || tries < MOST_TRIES) return;
    const error = errorMessage(failure);
    log.warn('the log of a pod that has ended could not be read', { pod: entry.name, error });
  }

  async #tail(pod: string, container: string, most: number, signal: AbortSignal): Promise<Buffer> {
    const { client, clock, namespace } = this.#options;
    using deadline = startDeadline(clock, PATIENCE_MS, `reading the log of ${pod}`, signal);
    // `limitBytes` alone would keep the beginning.
    const query = `container=${encodeURIComponent(container)}&timestamps=true&tailLines=${LINES}&limitBytes=${MOST_READ_BYTES}`;
    const path = `/api/v1/namespaces/${namespace}/pods/${pod}/log?${query}`;
    const { status, body } = await client.raw({ method: 'GET', path, signal: deadline.signal });
    const stop = (): void => void body.destroy();
    deadline.signal.addEventListener('abort', stop, { once: true });
    // An event that has been is not told again.
    if (deadline.signal.aborted) stop();
    try {
      let end = Buffer.alloc(0);
      let isCut = false;
      for await (const chunk of body) {
        const all = Buffer.concat([end, chunk as Buffer]);
        isCut ||= all.length > most;
        end = all.subarray(Math.max(0, all.length - most));
      }
      if (status !== 200) throw new TributaryError('Unavailable', `the API server answered ${status}`);
      return isCut ? fromNextLine(end) : end;
    } finally {
      deadline.signal.removeEventListener('abort', stop);
      body.destroy();
    }
  }
}

/** Half a line would begin without its time. A line that is longer than all is left out. */
const fromNextLine = (bytes: Buffer): Buffer => {
  const at = bytes.indexOf('\n');
  return Buffer.from(at === -1 ? '' : bytes.subarray(at + 1));
};

/** Names of containers that have run. */
function endedContainers({ result }: JournalEntry): string[] {
  const statuses = [...(result?.initContainerStatuses ?? []), ...(result?.containerStatuses ?? [])];
  return statuses.flatMap(({ name, state }) => (state?.terminated === undefined ? [] : [name]));
}
