/**
 * An API server in memory, over real TLS and HTTP/2 (or HTTP/1.1) on loopback: a simulator with memory, for tests
 * of everything that talks to one. Any resource works; kinds are those of `src/api/resources.ts` and `types`.
 *
 * Copied from the real one (checked by test/contract/kube-client.ts, which runs on both): one revision for all
 * resources; no-op writes change nothing; resourceVersion and UID preconditions; `status` as a subresource;
 * generation; finalizers; graceful deletion of pods (a scheduled pod stays until grace 0 or its kubelet ends it);
 * generateName; paged lists from one snapshot; watches with a bounded history (410 in the stream), selectors that
 * turn a change into ADDED or DELETED, bookmarks, timeoutSeconds; PartialObjectMetadata; Status bodies; 401.
 *
 * Not copied: validation of specs, admission, defaulting, managedFields (it invents one entry, so that clients
 * must drop it), server-side apply conflicts, strategic merge beyond the usual lists, authorisation.
 *
 * Faults are injected by `fault` (one request at a time), `watches`, and a TcpProxy in front for the network's.
 */
import { createSecureServer } from 'node:http2';
import { createServer as createHttp1Server } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import * as resources from '../../src/api/resources.ts';
import type { ResourceType } from '../../src/api/resources.ts';
import type { KubeObject } from '../../src/api/wire.ts';
import type { Credentials } from '../../src/kube/credentials.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { type TestCertificate, selfSigned } from './certificate.ts';
import { FakeRequests } from './fake-requests.ts';
import { ApiFailure, type AnyObject, FakeStorage } from './fake-storage.ts';
import { FakeWatches, type Response } from './fake-watch.ts';

export type Request = IncomingMessage | Http2ServerRequest;

/** What to do to a request instead of, or before, answering it. */
export interface Fault {
  /** Which requests; all where absent. */
  match?: (request: { method: string; path: string; query: URLSearchParams }) => boolean;
  /** How many of them. Default 1. */
  times?: number;
  /** Answer with this status, and a Status body. */
  status?: number;
  headers?: Record<string, string>;
  /** Answer so much later, on the server's clock. */
  delayMs?: number;
  /** Answer a list with no items at the current version. */
  emptyList?: boolean;
  /** Never answer. */
  stall?: boolean;
  /** Answer these bytes with status 200 and end. */
  body?: string;
}

export interface FakeApiServerOptions {
  clock?: Clock;
  /** Changes that a watch can reach back. Default 100 000. */
  historySize?: number;
  http2?: boolean;
  /** Concurrent streams per connection. */
  maxConcurrentStreams?: number;
  /** Accepted bearer tokens; none needed where absent. Mutable, to rotate. */
  tokens?: Set<string>;
  types?: readonly ResourceType<KubeObject>[];
}

export class FakeApiServer {
  readonly storage: FakeStorage;
  readonly watches: FakeWatches;
  /** Every request that arrived, as "METHOD /path?query". */
  readonly log: string[] = [];
  readonly #options: FakeApiServerOptions;
  readonly #clock: Clock;
  readonly #requests: FakeRequests;
  readonly #faults: Fault[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<{ goaway(): void; destroy(): void }>();
  #certificate: TestCertificate | undefined;
  #port = 0;
  #close: () => Promise<void> = () => Promise.resolve();
  connections = 0;
  /** HTTP/2 pings received. */
  pings = 0;

  constructor(options: FakeApiServerOptions = {}) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const now = (): number => this.#clock.now();
    this.storage = new FakeStorage(now, options.historySize ?? 100_000);
    this.watches = new FakeWatches(this.storage, this.#clock);
    const known = Object.values(resources).filter((value) => typeof value === 'object');
    const types = [...known, ...(options.types ?? [])] as ResourceType<KubeObject>[];
    this.#requests = new FakeRequests({ storage: this.storage, watches: this.watches, types, now });
  }

  async start(): Promise<this> {
    // Kept over restarts, as its clients keep their credentials.
    const certificate = (this.#certificate ??= await selfSigned());
    const { http2 = true, maxConcurrentStreams } = this.#options;
    const answer = (request: Request, response: unknown): void =>
      void this.#answer(request, response as Response);
    const server = http2
      ? createSecureServer(
          {
            ...certificate,
            allowHTTP1: true,
            // Answers of any size, held until read.
            maxSessionMemory: 1000,
            ...(maxConcurrentStreams === undefined ? {} : { settings: { maxConcurrentStreams } }),
          },
          answer,
        )
      : createHttp1Server(certificate, answer);
    server.on(
      'session',
      (session: { goaway(): void; destroy(): void; on(event: string, f: () => void): void }) => {
        this.#sessions.add(session);
        session.on('close', () => this.#sessions.delete(session));
        session.on('error', () => undefined);
        session.on('ping', () => this.pings++);
      },
    );
    server.on('secureConnection', () => this.connections++);
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined);
    });
    server.on('sessionError', () => undefined);
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#close = () => new Promise((resolve) => server.close(() => resolve()));
    return this;
  }

  /** For a client of this server, or of a proxy in front of it. */
  credentials(port: number = this.#port): Credentials {
    return { server: new URL(`https://127.0.0.1:${port}`), ca: this.#certificate?.cert ?? '' };
  }

  get port(): number {
    return this.#port;
  }

  /** The next matching requests go wrong. Returns a function that takes the fault back. */
  fault(fault: Fault): () => void {
    const own = { ...fault, times: fault.times ?? 1 };
    this.#faults.push(own);
    return () => {
      own.times = 0;
    };
  }

  /** Requests that arrived whose text matches. */
  count(pattern: RegExp): number {
    return this.log.filter((line) => pattern.test(line)).length;
  }

  /** Asks all clients to go elsewhere: open streams may end, new ones are refused. */
  goaway(): void {
    for (const session of this.#sessions) session.goaway();
  }

  /** Breaks all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Ends at once, connections included. `start` opens it again on the same port with the same memory. */
  async stop(): Promise<void> {
    const closed = this.#close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Puts an object in as if created by somebody else. */
  seed(type: ResourceType<KubeObject>, object: object): AnyObject {
    return this.#requests.seed(type, object as AnyObject);
  }

  async #answer(request: Request, response: Response): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const { pathname: path, searchParams: query } = new URL(url, 'https://fake');
    this.log.push(`${method} ${decodeURIComponent(url)}`);
    response.on('error', () => undefined);
    request.on('error', () => undefined);
    try {
      const body = await readBody(request);
      const fault = this.#takeFault({ method, path, query }) ?? {};
      if (fault.delayMs !== undefined) await this.#clock.sleep(fault.delayMs);
      if (fault.stall === true) return;
      if (fault.status !== undefined) {
        throw new ApiFailure(fault.status, 'Fault', `injected ${fault.status}`, fault.headers);
      }
      this.#authenticate(request);
      if (fault.body !== undefined) {
        response.end(fault.body);
        return;
      }
      const { accept = '', 'content-type': contentType = '' } = request.headers;
      const empty = fault.emptyList === true;
      this.#requests.serve({ method, path, query, body, accept, contentType, empty }, response);
    } catch (error) {
      fail(response, error);
    }
  }

  #takeFault(request: { method: string; path: string; query: URLSearchParams }): Fault | undefined {
    const fault = this.#faults.find(({ times = 0, match }) => times > 0 && (match?.(request) ?? true));
    if (fault?.times !== undefined) fault.times--;
    return fault;
  }

  #authenticate(request: Request): void {
    const { tokens } = this.#options;
    const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (tokens !== undefined && !tokens.has(token)) throw new ApiFailure(401, 'Unauthorized', 'Unauthorized');
  }
}

function fail(response: Response, error: unknown): void {
  if (response.destroyed || response.headersSent) return;
  const known = error instanceof ApiFailure;
  const status = known ? error.status : 500;
  const headers = known ? error.headers : {};
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(
    JSON.stringify({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: known ? error.message : String((error as Error).stack),
      reason: known ? error.reason : 'InternalError',
      code: status,
    }),
  );
}

async function readBody(request: Request): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new ApiFailure(400, 'BadRequest', 'the body is not JSON');
  }
}
