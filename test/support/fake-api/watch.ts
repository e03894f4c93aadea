import type { Clock } from '../../../src/lib/clock.ts';
import type { AnyObject, Change, FakeStorage } from './storage.ts';

/** The methods that we use of answers of node:http, of node:http2, and of answers within the process. */
export interface Response {
  readonly destroyed: boolean;
  readonly headersSent: boolean;
  /** Of HTTP/2. */
  readonly stream?: { destroy(): void };
  writeHead(status: number, headers: Record<string, string>): unknown;
  flushHeaders?(): void;
  write(text: string): unknown;
  end(text?: string): unknown;
  destroy(): unknown;
  on(event: 'close' | 'error', listener: () => void): unknown;
}

export interface WatchRequest {
  resource: string;
  kind: string;
  apiVersion: string;
  from: string;
  bookmarks: boolean;
  timeoutSeconds: number | undefined;
  matches: (object: AnyObject) => boolean;
  /** What the client gets of an object: all, or its metadata. */
  view: (object: AnyObject) => object;
}

/** One client's watch. */
export class FakeWatcher {
  readonly request: WatchRequest;
  readonly #response: Response;
  readonly #limit: number;
  #events = 0;
  #open = true;

  constructor(request: WatchRequest, response: Response, limit: number) {
    this.request = request;
    this.#response = response;
    this.#limit = limit;
    response.on('close', () => (this.#open = false));
  }

  get open(): boolean {
    return this.#open;
  }

  send(type: string, object: object): void {
    if (!this.#open) return;
    this.line(`${JSON.stringify({ type, object })}\n`);
    if (type !== 'BOOKMARK' && ++this.#events >= this.#limit) this.end();
  }

  line(text: string): void {
    if (this.#open) this.#response.write(text);
  }

  end(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#response.end();
  }

  /** Resets the stream, or the connection if there are no streams. */
  destroy(): void {
    this.#open = false;
    if (this.#response.stream === undefined) this.#response.destroy();
    else this.#response.stream.destroy();
  }
}

/** All watches: what the watch cache of an API server does. */
export class FakeWatches {
  readonly #storage: FakeStorage;
  readonly #clock: Clock;
  readonly #watchers = new Set<FakeWatcher>();
  /** The server closes each new watch after this number of events. */
  eventsPerWatch: number = Infinity;

  constructor(storage: FakeStorage, clock: Clock) {
    this.#storage = storage;
    this.#clock = clock;
    storage.subscribe((change) => {
      for (const watcher of this.#watchers) deliver(watcher, change);
    });
  }

  /** Open ones. */
  get watchers(): FakeWatcher[] {
    return [...this.#watchers].filter((watcher) => watcher.open);
  }

  serve(request: WatchRequest, response: Response): void {
    response.writeHead(200, { 'content-type': 'application/json' });
    // The head goes out at once, as the API server flushes it.
    response.flushHeaders?.();
    const watcher = new FakeWatcher(request, response, this.eventsPerWatch);
    const from = request.from === '' || request.from === '0' ? this.#storage.revision : Number(request.from);
    const missed = this.#storage.since(request.resource, from);
    if (missed === undefined) {
      const message = `too old resource version: ${request.from} (${this.#storage.revision})`;
      watcher.send('ERROR', { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired', message });
      watcher.end();
      return;
    }
    this.#watchers.add(watcher);
    for (const change of missed) deliver(watcher, change);
    const { timeoutSeconds } = request;
    const cancel =
      timeoutSeconds === undefined
        ? (): void => undefined
        : this.#clock.after(timeoutSeconds * 1000, () => watcher.end());
    response.on('close', () => {
      cancel();
      this.#watchers.delete(watcher);
    });
  }

  /** Tells every watcher that asked how far history has come. */
  bookmark(): void {
    for (const watcher of this.watchers) {
      const { bookmarks, kind, apiVersion } = watcher.request;
      if (!bookmarks) continue;
      const metadata = { resourceVersion: String(this.#storage.revision), creationTimestamp: null };
      watcher.send('BOOKMARK', { kind, apiVersion, metadata });
    }
  }
}

/** An object that leaves or enters a selector is deleted or added for that watcher. */
function deliver(watcher: FakeWatcher, { resource, revision, previous, current }: Change): void {
  const { request } = watcher;
  if (resource !== request.resource || !watcher.open) return;
  const was = previous !== undefined && request.matches(previous);
  const is = current !== undefined && request.matches(current);
  if (is) {
    watcher.send(was ? 'MODIFIED' : 'ADDED', request.view(current));
  } else if (was) {
    const metadata = { ...previous.metadata, resourceVersion: String(revision) };
    watcher.send('DELETED', request.view({ ...previous, metadata }));
  }
}
