import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
  connect,
  constants,
} from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Clock } from '../lib/clock.ts';
import { abortError } from '../lib/deadline.ts';
import { TributaryError, errorMessage, hasCode } from '../lib/errors.ts';
import { untilMomentMs } from '../lib/grid.ts';
import type { RawResponse } from './client.ts';

/** One request as it goes out: nothing is added below this level. */
export interface WireRequest {
  method: string;
  path: string;
  /** Called before each sending; if it throws, nothing is sent. */
  guard?: (() => void) | undefined;
  headers: Record<string, string>;
  body?: string | Uint8Array | undefined;
  signal?: AbortSignal | undefined;
  /** See RawRequest. */
  isFresh?: boolean | undefined;
}

/** No answer came. */
export interface Failure {
  error: TributaryError;
  /**
   * `unprocessed`: the server has certainly not acted on the request; it may be sent again, whatever its method
   * (RFC 9113, 8.7). `broken`: the connection ended first, and nobody knows.
   */
  failure: 'unprocessed' | 'broken';
}

export interface ConnectionOptions {
  clock: Clock;
  /** A ping goes out this long after the last one was answered. */
  pingIdleMs: number;
  /** Without an answer or any other byte for this long, the connection is dead. */
  pingTimeoutMs: number;
  onClose: (connection: Http2Connection) => void;
  /** Called after each `pingIdleMs`; a connection that is not needed may be retired then. */
  onPulse: (connection: Http2Connection) => void;
  authority: string;
  /** Ends the attempt to connect. */
  signal: AbortSignal;
}

/** Bytes the server may send ahead of the reader: per stream, and in all. Long fat links need more than 64 KiB. */
const STREAM_WINDOW = 1024 * 1024;
const CONNECTION_WINDOW = 8 * 1024 * 1024;

/** Node's own 10 MB are full with ten unread streams, and then it refuses all others. */
const SESSION_MEGABYTES = 256;

/** What may still arrive in the pause between a timer and the next look at the sockets. */
const GRACE_MS = 1000;

/** One HTTP/2 connection. It is used until the server says GOAWAY, a ping stays unanswered, a request times out in silence, or it breaks. */
export class Http2Connection {
  readonly #session: ClientHttp2Session;
  readonly #socket: TLSSocket;
  readonly #options: ConnectionOptions;
  #openStreams = 0;
  #usable = true;
  #death: TributaryError | undefined;
  #cancelTimer = (): void => undefined;

  private constructor(socket: TLSSocket, session: ClientHttp2Session, options: ConnectionOptions) {
    this.#socket = socket;
    this.#session = session;
    this.#options = options;
  }

  /** Resolves when the server's settings are known, of which we need the number of streams. */
  static async open(socket: TLSSocket, options: ConnectionOptions): Promise<Http2Connection> {
    const session = connect(options.authority, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
      maxSessionMemory: SESSION_MEGABYTES,
    });
    const connection = new Http2Connection(socket, session, options);
    await connection.#settle();
    return connection;
  }

  async #settle(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const session = this.#session;
    const { clock, pingTimeoutMs, onClose, signal } = this.#options;
    const onAbort = (): void => this.destroy(abortError(signal));
    session.once('remoteSettings', () => resolve());
    session.on('goaway', () => (this.#usable = false));
    session.on('error', (error) => {
      this.#death ??= unreachable(error);
    });
    session.once('close', () => {
      this.#usable = false;
      this.#cancelTimer();
      onClose(this);
      reject(this.#death ?? unreachable(new Error('closed before it was set up')));
    });
    session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW));
    const cancel = clock.after(pingTimeoutMs, () => this.#kill('no HTTP/2 settings from the server'));
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      await promise;
    } finally {
      cancel();
      signal.removeEventListener('abort', onAbort);
    }
    // From here on only open streams hold the process.
    session.unref();
    this.#watchPulse();
  }

  get openStreams(): number {
    return this.#openStreams;
  }

  get usable(): boolean {
    return this.#usable && !this.#session.closed && !this.#session.destroyed;
  }

  get hasRoom(): boolean {
    const max = this.#session.remoteSettings.maxConcurrentStreams ?? 100;
    return this.usable && this.#openStreams < max;
  }

  /** Bytes so far, for accounting. */
  get traffic(): { received: number; sent: number } {
    return { received: this.#socket.bytesRead, sent: this.#socket.bytesWritten };
  }

  /** Takes no further requests. Open streams go on, and pings still tell whether it is alive. */
  leave(): void {
    this.#usable = false;
  }

  /** Lets open streams end by themselves. */
  retire(): void {
    this.#usable = false;
    this.#session.close();
  }

  destroy(error?: TributaryError): void {
    this.#usable = false;
    this.#death ??= error;
    this.#session.destroy(error);
  }

  /** Sends before it returns (up to the first await), so that callers in one turn are all counted. */
  async request(request: WireRequest): Promise<RawResponse | Failure> {
    const { signal } = request;
    if (signal?.aborted === true) throw abortError(signal);
    request.guard?.();
    let stream: ClientHttp2Stream;
    try {
      stream = this.#session.request(pseudoHeaders(request), { endStream: request.body === undefined });
    } catch (error) {
      return { error: unreachable(error), failure: 'unprocessed' };
    }
    if (request.body !== undefined) stream.end(request.body);
    return this.#answer(stream, signal);
  }

  async #answer(stream: ClientHttp2Stream, signal: AbortSignal | undefined): Promise<RawResponse | Failure> {
    const { promise, resolve, reject } = Promise.withResolvers<RawResponse | Failure>();
    let answered = false;
    const before = this.#socket.bytesRead;
    const onAbort = (): void => {
      if (signal === undefined) return;
      const error = abortError(signal);
      reject(error);
      // Nothing at all has come while it waited: what is sent next, perhaps the same again, does not wait for a ping to find that out.
      if (!answered && hasCode(error, 'Unreachable') && this.#socket.bytesRead === before) this.leave();
      stream.close(constants.NGHTTP2_CANCEL);
      stream.destroy(error);
    };
    const fail = (cause: unknown): void => {
      const error = this.#death ?? unreachable(cause);
      const refused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
      resolve({ error, failure: refused ? 'unprocessed' : 'broken' });
    };
    if (this.#openStreams++ === 0) this.#session.ref();
    signal?.addEventListener('abort', onAbort, { once: true });
    // The listener stays for the life of the stream: an error nobody listens to would end the process.
    stream.on('error', fail);
    stream.once('close', () => {
      if (--this.#openStreams === 0) this.#session.unref();
      signal?.removeEventListener('abort', onAbort);
      // Every stream closes in the end, and an error with its stack is too dear to be made for nobody.
      if (!answered) fail(new Error('the connection was closed before an answer'));
    });
    stream.once('response', (headers) => {
      answered = true;
      const { ':status': status, ...rest } = headers;
      resolve({ status: status ?? 0, headers: rest, body: stream });
    });
    return promise;
  }

  /**
   * Pings at most `pingIdleMs` after each answer. While an answer is due, received bytes are a sign of life as good, since
   * it may queue behind a burst of data.
   */
  #watchPulse(): void {
    const { clock, pingIdleMs } = this.#options;
    this.#cancelTimer = clock.after(untilMomentMs(clock, pingIdleMs), () => {
      this.#options.onPulse(this);
      // One that ends after its last answers sends no more pings; TCP finds out whether its peer is there.
      if (this.#session.destroyed || this.#session.closed) return;
      // Refused when too many pings are on their way; then the bytes alone decide.
      this.#session.ping((error) => {
        if (error !== null) return;
        this.#cancelTimer();
        this.#watchPulse();
      });
      this.#awaitSign(this.#socket.bytesRead);
    });
  }

  #awaitSign(before: number): void {
    const { clock, pingTimeoutMs } = this.#options;
    const look = (otherwise: () => void) => (): void => {
      const now = this.#socket.bytesRead;
      if (now === before) otherwise();
      else this.#awaitSign(now);
    };
    const kill = (): void => this.#kill(`no sign of life for ${pingTimeoutMs} ms after a ping`);
    // When this process itself was stopped, timers fire before sockets are read: hence a second look.
    const again = (): void => void (this.#cancelTimer = clock.after(GRACE_MS, look(kill)));
    this.#cancelTimer = clock.after(pingTimeoutMs, look(again));
  }

  #kill(why: string): void {
    this.destroy(new TributaryError('Unreachable', why));
  }
}

function pseudoHeaders({ method, path, headers }: WireRequest): OutgoingHttpHeaders {
  return { ...headers, ':method': method, ':path': path };
}

function unreachable(cause: unknown): TributaryError {
  return new TributaryError('Unreachable', `connection failed: ${errorMessage(cause)}`, { cause });
}
