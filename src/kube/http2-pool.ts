import type { TLSSocket } from 'node:tls';
import { untilAborted } from '../lib/deadline.ts';
import { TributaryError } from '../lib/errors.ts';
import type { RawResponse } from './client.ts';
import {
  type ConnectionOptions,
  Http2Connection,
  type Failure,
  type WireRequest,
} from './http2-connection.ts';

export interface PoolOptions extends Omit<ConnectionOptions, 'onClose' | 'onPulse' | 'signal'> {
  /** Ceiling; beyond it, requests queue inside the connections. */
  maxConnections: number;
  /** A fresh connection; not pooled when the server chose another protocol than h2. */
  dial: (signal: AbortSignal) => Promise<TLSSocket>;
}

/** The server speaks no HTTP/2: use HTTP/1.1. */
export const NO_HTTP2: unique symbol = Symbol('no HTTP/2');

/**
 * As few connections as can be: one, and another only while all of them carry as many streams as the server
 * permits. Connected lazily, and again when needed.
 */
export class Http2Pool {
  readonly #options: PoolOptions;
  readonly #abort = new AbortController();
  readonly #connections = new Set<Http2Connection>();
  #dialing: Promise<Http2Connection | typeof NO_HTTP2> | undefined;
  #opened = 0;
  #past = { received: 0, sent: 0 };

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  async request(request: WireRequest): Promise<RawResponse | Failure | typeof NO_HTTP2> {
    // One that is being dialled is fresh already.
    if (request.isFresh === true) for (const connection of this.#connections) connection.leave();
    for (;;) {
      const connection = this.#roomiest();
      if (connection !== undefined) return connection.request(request);
      this.#dialing ??= this.#dial().finally(() => (this.#dialing = undefined));
      // Others wait for the same dial: an aborted caller stops waiting, and the dial goes on.
      if ((await untilAborted(this.#dialing, request.signal)) === NO_HTTP2) return NO_HTTP2;
    }
  }

  get stats(): { opened: number; open: number; streams: number; received: number; sent: number } {
    const stats = { opened: this.#opened, open: this.#connections.size, streams: 0, ...this.#past };
    for (const connection of this.#connections) {
      stats.streams += connection.openStreams;
      stats.received += connection.traffic.received;
      stats.sent += connection.traffic.sent;
    }
    return stats;
  }

  /** Callers that still use it see an unreachable server: it may have been replaced by another. */
  async close(): Promise<void> {
    const closed = new TributaryError('Unreachable', 'the client was closed');
    this.#abort.abort(closed);
    for (const connection of this.#connections) connection.destroy(closed);
    await this.#dialing?.catch(() => undefined);
  }

  #roomiest(): Http2Connection | undefined {
    let least: Http2Connection | undefined;
    let usable = 0;
    for (const connection of this.#connections) {
      if (!connection.usable) continue;
      // Take the oldest that has room, so that extra connections of a burst become idle and are closed.
      if (connection.hasRoom) return connection;
      usable++;
      if (least === undefined || connection.openStreams < least.openStreams) least = connection;
    }
    return usable >= this.#options.maxConnections ? least : undefined;
  }

  async #dial(): Promise<Http2Connection | typeof NO_HTTP2> {
    const { signal } = this.#abort;
    const socket = await this.#options.dial(signal);
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy();
      return NO_HTTP2;
    }
    const connection = await Http2Connection.open(socket, {
      ...this.#options,
      signal,
      onClose: (closed) => this.#forget(closed),
      onPulse: (idle) => this.#retireSpare(idle),
    });
    this.#opened++;
    if (connection.usable) this.#connections.add(connection);
    return connection;
  }

  /** What a burst has opened is closed again; the first one stays, since the next request comes soon. */
  #retireSpare(connection: Http2Connection): void {
    if (connection.openStreams > 0) return;
    const first = this.#connections.values().find(({ usable }) => usable);
    if (first !== undefined && first !== connection) connection.retire();
  }

  #forget(connection: Http2Connection): void {
    if (!this.#connections.delete(connection)) return;
    const { received, sent } = connection.traffic;
    this.#past = { received: this.#past.received + received, sent: this.#past.sent + sent };
  }
}
