import type { IncomingMessage } from 'node:http';
import { Agent, type AgentOptions, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { abortError } from '../lib/deadline.ts';
import { TributaryError, errorMessage } from '../lib/errors.ts';
import type { RawResponse } from './client.ts';
import type { TlsTarget } from './credentials.ts';
import type { Failure, WireRequest } from './http2-connection.ts';

/** Keeps connections that are dialled as all others are, perhaps through a proxy. */
class DialledAgent extends Agent {
  readonly #dial: (signal: AbortSignal) => Promise<TLSSocket>;
  readonly #closed = new AbortController();

  constructor(dial: (signal: AbortSignal) => Promise<TLSSocket>, options: AgentOptions) {
    super(options);
    this.#dial = dial;
  }

  override createConnection(
    _options: unknown,
    done: (error: Error | null, socket?: Duplex) => void,
  ): undefined {
    this.#dial(this.#closed.signal).then((socket) => done(null, socket), done);
  }

  override destroy(): void {
    this.#closed.abort();
    super.destroy();
  }
}

/**
 * Requests over HTTP/1.1 with kept connections, for servers that offer no HTTP/2 (some proxies, and API servers
 * told so). Each watch takes a socket of its own here. A peer that vanished is found by TCP keepalive, which
 * libuv probes each second once the socket has been silent for `keepAliveMsecs`.
 */
export class Http1 {
  readonly #target: TlsTarget;
  readonly #agent: DialledAgent;

  constructor(target: TlsTarget, dial: (signal: AbortSignal) => Promise<TLSSocket>) {
    this.#target = target;
    this.#agent = new DialledAgent(dial, {
      keepAlive: true,
      keepAliveMsecs: 15_000,
      scheduling: 'lifo',
      maxFreeSockets: 8,
    });
  }

  async request(request: WireRequest): Promise<RawResponse | Failure> {
    const { method, path, headers, body, signal } = request;
    if (signal?.aborted === true) throw abortError(signal);
    request.guard?.();
    const { promise, resolve, reject } = Promise.withResolvers<RawResponse | Failure>();
    const { host: hostname, proxy: _proxy, ...target } = this.#target;
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const outgoing = httpsRequest({
      ...target,
      hostname,
      method,
      path,
      agent: this.#agent,
      headers: { ...headers, ...length },
    });
    let answer: IncomingMessage | undefined;
    const onAbort = (): void => {
      if (signal === undefined) return;
      const error = abortError(signal);
      reject(error);
      // The reader of the answer gets our error, not the one about a broken socket.
      (answer ?? outgoing).destroy(error);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    // A kept connection may have died without our knowing; one made for this request is a server that is away.
    const fail = (cause: unknown): void =>
      outgoing.reusedSocket
        ? resolve({ error: unreachable(cause), failure: 'broken' })
        : reject(unreachable(cause));
    outgoing.on('error', fail);
    outgoing.once('close', () => {
      signal?.removeEventListener('abort', onAbort);
      fail(new Error('the connection was closed before an answer'));
    });
    outgoing.once('response', (incoming: IncomingMessage) => {
      answer = incoming;
      incoming.on('error', () => undefined);
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: incoming });
    });
    outgoing.end(body);
    return promise;
  }

  close(): void {
    this.#agent.destroy();
  }
}

function unreachable(cause: unknown): TributaryError {
  return new TributaryError('Unreachable', `connection failed: ${errorMessage(cause)}`, { cause });
}
