import type { TLSSocket } from 'node:tls';
import type { BackoffOptions } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import type { RawResponse } from './client.ts';
import { type Credentials, type TlsTarget, tlsTarget } from './credentials.ts';
import { dial, spaced } from './dial.ts';
import { Http1 } from './http1.ts';
import type { Failure, WireRequest } from './http2-connection.ts';
import { Http2Pool, NO_HTTP2 } from './http2-pool.ts';

export interface SocketsOptions {
  clock: Clock;
  /** TCP and TLS together. Default 10 s. */
  connectTimeoutMs?: number;
  /** Default 15 s; together with `pingTimeoutMs` the time in which a half-open connection is found. */
  pingIdleMs?: number;
  /** Default 10 s. */
  pingTimeoutMs?: number;
  /** Default 64. Beyond them requests wait for a stream to end, and a watch does not end. */
  maxConnections?: number;
  /** How long a dial waits that follows a failed one; calls share it. Default: not at all. */
  redial?: BackoffOptions;
}

export interface CarrierStats {
  connectionsOpened: number;
  connectionsOpen: number;
  streamsOpen: number;
  /** Bytes of TLS payload over HTTP/2; HTTP/1.1 is not counted. */
  bytesReceived: number;
  bytesSent: number;
}

/**
 * An API server takes 100 streams on a connection, and each virtual node of a process watches seven kinds at home: 128 of them fill nine.
 * There are no more than streams need.
 */
const MAX_CONNECTIONS = 64;

/** Requests over TLS: HTTP/2 or, where the server has none, HTTP/1.1. */
export class Sockets {
  readonly #target: TlsTarget;
  readonly #dial: (protocols: readonly string[], signal: AbortSignal) => Promise<TLSSocket>;
  readonly #pool: Http2Pool;
  #http1: Http1 | undefined;

  constructor(credentials: Credentials, options: SocketsOptions) {
    this.#target = tlsTarget(credentials);
    const { clock, connectTimeoutMs = 10_000, pingIdleMs = 15_000, pingTimeoutMs = 10_000, redial } = options;
    this.#dial = async (protocols, signal) =>
      dial({ clock, target: this.#target, protocols, timeoutMs: connectTimeoutMs, signal });
    const attempt = async (signal: AbortSignal): Promise<TLSSocket> => this.#dial(['h2', 'http/1.1'], signal);
    this.#pool = new Http2Pool({
      clock,
      pingIdleMs,
      pingTimeoutMs,
      authority: credentials.server.origin,
      maxConnections: options.maxConnections ?? MAX_CONNECTIONS,
      dial: redial === undefined ? attempt : spaced(attempt, { clock, ...redial }),
    });
  }

  get stats(): CarrierStats {
    const { opened, open, streams, received, sent } = this.#pool.stats;
    return {
      connectionsOpened: opened,
      connectionsOpen: open,
      streamsOpen: streams,
      bytesReceived: received,
      bytesSent: sent,
    };
  }

  async request(wire: WireRequest): Promise<RawResponse | Failure> {
    if (this.#http1 === undefined) {
      const outcome = await this.#pool.request(wire);
      if (outcome !== NO_HTTP2) return outcome;
      // For good: a server with HTTP/2 speaks HTTP/1.1 as well, so nothing breaks if it gains it later.
      this.#http1 ??= new Http1(this.#target, async (signal) => this.#dial(['http/1.1'], signal));
    }
    return this.#http1.request(wire);
  }

  async close(): Promise<void> {
    await this.#pool.close();
    this.#http1?.close();
  }
}
