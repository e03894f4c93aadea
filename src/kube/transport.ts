import { TributaryError } from '../lib/errors.ts';
import type { RawResponse } from './client.ts';
import type { Credentials } from './credentials.ts';
import type { Failure, WireRequest } from './http2-connection.ts';
import { type CarrierStats, Sockets, type SocketsOptions } from './sockets.ts';

/** Sends requests to one server and returns its answers. */
export interface Carrier {
  /** Resolves with the answer, whatever its status. Throws if the server cannot be reached or the signal fires. */
  request(wire: WireRequest): Promise<RawResponse | Failure>;
  readonly stats: CarrierStats;
  close(): Promise<void>;
}

export interface TransportOptions extends SocketsOptions {
  /** What carries the requests. Default: TLS over TCP; tests have one inside the process. */
  carrier?: Carrier;
  userAgent?: string;
  /** Called for each request sent, retries included; for tests and metrics. */
  onRequest?: (method: string, path: string) => void;
}

/** A request below the level of objects. `path` starts after the server URL's own path. */
export interface TransportRequest {
  method: string;
  path: string;
  /** See CallOptions. */
  guard?: (() => void) | undefined;
  headers?: Record<string, string> | undefined;
  body?: string | Uint8Array | undefined;
  signal?: AbortSignal | undefined;
  /** See RawRequest. */
  isFresh?: boolean | undefined;
}

export interface TransportStats extends CarrierStats {
  requests: number;
}

/** A request that gets no answer is sent at most so often. A dial that fails is not repeated here. */
const MAX_ATTEMPTS = 3;

/** HTTP requests to one API server, authenticated, and repeated where that does no harm. */
export class Transport {
  readonly #credentials: Credentials;
  readonly #options: TransportOptions;
  readonly #carrier: Carrier;
  readonly #basePath: string;
  #requests = 0;
  #closed = false;

  constructor(credentials: Credentials, options: TransportOptions) {
    this.#credentials = credentials;
    this.#options = options;
    this.#basePath = credentials.server.pathname.replace(/\/+$/, '');
    this.#carrier = options.carrier ?? new Sockets(credentials, options);
  }

  get stats(): TransportStats {
    return { requests: this.#requests, ...this.#carrier.stats };
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
    const fresh = await source(request.signal, true).catch((error: unknown) => {
      // An answer that nobody reads would hold its stream for ever.
      response.body.destroy();
      throw error;
    });
    if (fresh === undefined || fresh === token) return response;
    response.body.destroy();
    return this.#send(request, fresh);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#carrier.close();
  }

  async #send(request: TransportRequest, token: string | undefined): Promise<RawResponse> {
    const wire: WireRequest = {
      method: request.method,
      path: this.#basePath + request.path,
      guard: request.guard,
      headers: {
        'user-agent': this.#options.userAgent ?? 'tributary',
        ...request.headers,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: request.body,
      signal: request.signal,
      isFresh: request.isFresh,
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
    return this.#carrier.request(wire);
  }
}

/** A read may be sent twice without harm: a kept connection may have died without our knowing. */
function mayRepeat({ method, signal }: WireRequest, { failure }: Failure): boolean {
  return signal?.aborted !== true && (failure === 'unprocessed' || method === 'GET' || method === 'HEAD');
}
