import type { Clock } from '../lib/clock.ts';
import { TributaryError } from '../lib/errors.ts';
import type { RawResponse } from './client.ts';
import { type Credentials, type TlsTarget, tlsTarget } from './credentials.ts';
import { dial } from './dial.ts';
import { Http1 } from './http1.ts';
import type { Failure, WireRequest } from './http2-connection.ts';
import { Http2Pool, NO_HTTP2 } from './http2-pool.ts';

export interface TransportOptions {
  clock: Clock;
  /** TCP and TLS together. Default 10 s. */
  connectTimeoutMs?: number;
  /** Default 15 s; together with `pingTimeoutMs` the time in which a half-open connection is found. */
  pingIdleMs?: number;
  /** Default 10 s. */
  pingTimeoutMs?: number;
  /** Default 8. */
  maxConnections?: number;
  userAgent?: string;
  /** Called for each request sent, retries included; for tests and metrics. */
  onRequest?: (method: string, path: string) => void;
}

/** A request below the level of objects. `path` starts after the server URL's own path. */
export interface TransportRequest {
  method: string;
  path: string;
  headers?: Record<string, string> | undefined;
  body?: string | Uint8Array | undefined;
  signal?: AbortSignal | undefined;
}

export interface TransportStats {
  requests: number;
  connectionsOpened: number;
  connectionsOpen: number;
  streamsOpen: number;
  /** Bytes of TLS payload over HTTP/2; HTTP/1.1 is not counted. */
  bytesReceived: number;
  bytesSent: number;
}

/** For a request that found no answer; a dial that fails is not repeated here. */
const MAX_ATTEMPTS = 3;

/** HTTP requests to one API server, authenticated, over HTTP/2 or, where it has none, HTTP/1.1. */
export class Transport {
  readonly #credentials: Credentials;
  readonly #options: TransportOptions;
  readonly #target: TlsTarget;
  readonly #pool: Http2Pool;
  readonly #basePath: string;
  #http1: Http1 | undefined;
  #requests = 0;
  #closed = false;

  constructor(credentials: Credentials, options: TransportOptions) {
    this.#credentials = credentials;
    this.#options = options;
    this.#target = tlsTarget(credentials);
    this.#basePath = credentials.server.pathname.replace(/\/+$/, '');
    const { clock, connectTimeoutMs = 10_000, pingIdleMs = 15_000, pingTimeoutMs = 10_000 } = options;
    this.#pool = new Http2Pool({
      clock,
      pingIdleMs,
      pingTimeoutMs,
      authority: credentials.server.origin,
      maxConnections: options.maxConnections ?? 8,
      dial: (signal) =>
        dial({
          clock,
          target: this.#target,
          protocols: ['h2', 'http/1.1'],
          timeoutMs: connectTimeoutMs,
          signal,
        }),
    });
  }

  get stats(): TransportStats {
    const { opened, open, streams, received, sent } = this.#pool.stats;
    return {
      requests: this.#requests,
      connectionsOpened: opened,
      connectionsOpen: open,
      streamsOpen: streams,
      bytesReceived: received,
      bytesSent: sent,
    };
  }

  /**
   * Resolves with the head of the answer, whatever its status; the caller reads or destroys the body. Sent again
   * only where the server has certainly not processed it, where it refused the token and another is to be had,
   * or, for reads, where a kept connection turned out to be dead.
   */
  async request(request: TransportRequest): Promise<RawResponse> {
    const { token: source } = this.#credentials;
    const token = await source?.(request.signal);
    const response = await this.#send(request, token);
    if (response.status !== 401 || source === undefined) return response;
    const fresh = await source(request.signal, true);
    if (fresh === undefined || fresh === token) return response;
    response.body.destroy();
    return this.#send(request, fresh);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#pool.close();
    this.#http1?.close();
  }

  async #send(request: TransportRequest, token: string | undefined): Promise<RawResponse> {
    const wire: WireRequest = {
      method: request.method,
      path: this.#basePath + request.path,
      headers: {
        'user-agent': this.#options.userAgent ?? 'tributary',
        ...request.headers,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: request.body,
      signal: request.signal,
    };
    for (let attempt = 1; ; attempt++) {
      this.#requests++;
      this.#options.onRequest?.(wire.method, wire.path);
      const outcome = await this.#once(wire);
      if (!('failure' in outcome)) return outcome;
      if (attempt >= MAX_ATTEMPTS || !mayRepeat(wire, outcome)) throw outcome.error;
    }
  }

  async #once(wire: WireRequest): Promise<RawResponse | Failure> {
    if (this.#closed) throw new TributaryError('Unreachable', 'the client was closed');
    if (this.#http1 === undefined) {
      const outcome = await this.#pool.request(wire);
      if (outcome !== NO_HTTP2) return outcome;
      // For good: a server with HTTP/2 speaks HTTP/1.1 as well, so nothing breaks if it gains it later.
      this.#http1 ??= new Http1(this.#target);
    }
    return this.#http1.request(wire);
  }
}

/** A read does no harm twice: a kept connection may have died without our knowing. */
function mayRepeat({ method, signal }: WireRequest, { failure }: Failure): boolean {
  return signal?.aborted !== true && (failure === 'unprocessed' || method === 'GET' || method === 'HEAD');
}
