/** A kubelet server on loopback with a fake foreign API server behind it. */
import { createServer, type IncomingMessage, request as httpRequest, type Server } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { Registry } from 'prom-client';

import { type Clock, systemClock } from '../../../../src/lib/clock.ts';
import { silentLogger } from '../../../../src/lib/log.ts';
import { Variable } from '../../../../src/lib/source.ts';
import type { AccessQuestion, Reviews } from '../../../../src/server/kubelet/auth.ts';
import type { UpgradeRequest, UpgradeResponse } from '../../../../src/kube/upgrade.ts';
import type { KubeletBackend } from '../../../../src/server/kubelet/backend.ts';
import { ServerMetrics } from '../../../../src/server/kubelet/metrics.ts';
import { KubeletServer, type KubeletServerOptions } from '../../../../src/server/kubelet/server.ts';
import { pairs } from '../../../../src/server/kubelet/stream-request.ts';
import type { UserInfo } from '../../../../src/server/kubelet/user.ts';
import { type Authority, createAuthority, type Issued } from './certificates.ts';

export const REMOTE_PATH = '/api/v1/namespaces/tenant-a/pods/web-remote';
export const UID = '3f2c1d6e-0000-4000-8000-000000000001';
export const TOKENS: Record<string, UserInfo> = {
  good: { name: 'alice', groups: ['dev'] },
  poor: { name: 'bob', groups: [] },
};

/** Answers as told, and remembers what it was asked. */
export class FakeReviews implements Reviews {
  readonly tokens: string[] = [];
  readonly questions: AccessQuestion[] = [];
  allowed = ({ user }: AccessQuestion): boolean => user.name !== 'bob';
  fail = false;

  async token(token: string): Promise<UserInfo | undefined> {
    this.tokens.push(token);
    if (this.fail) throw new Error('no API server');
    return TOKENS[token];
  }

  async access(question: AccessQuestion): Promise<boolean> {
    this.questions.push(question);
    if (this.fail) throw new Error('no API server');
    return this.allowed(question);
  }
}

/** One connection that arrived at the foreign API server. */
export interface Arrival {
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
}

/** HTTP/1.1 in clear: what the product adds on top (TLS, credentials) is not under test here. */
export class FakeForeign {
  readonly server: Server = createServer({ maxHeaderSize: 2 ** 21 });
  readonly arrivals: Arrival[] = [];
  readonly #waiting: ((arrival: Arrival) => void)[] = [];
  onUpgrade: (arrival: Arrival) => void = ({ socket }) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
    socket.pipe(socket);
  };

  async start(): Promise<void> {
    this.server.on('upgrade', (request, socket: Duplex, head) => {
      const arrival = { request, socket, head };
      socket.on('error', () => undefined);
      this.arrivals.push(arrival);
      this.onUpgrade(arrival);
      this.#waiting.shift()?.(arrival);
    });
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  async arrival(): Promise<Arrival> {
    return new Promise<Arrival>((resolve) => this.#waiting.push(resolve));
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** As the product's dialler, without TLS. */
  async dial({ method, path, rawHeaders, signal }: UpgradeRequest): Promise<UpgradeResponse> {
    const headers = ['Host', 'foreign', ...rawHeaders.flat()];
    const { promise, resolve, reject } = Promise.withResolvers<UpgradeResponse>();
    const request = httpRequest({ port: this.port, host: '127.0.0.1', method, path, headers, signal });
    const head = (from: IncomingMessage): Omit<UpgradeResponse, 'socket' | 'head' | 'body'> => ({
      status: from.statusCode ?? 0,
      statusMessage: from.statusMessage ?? '',
      headers: pairs(from.rawHeaders),
    });
    request.on('error', reject);
    request.on('upgrade', (from, socket, first) =>
      resolve({ ...head(from), socket, head: first, body: Buffer.alloc(0) }),
    );
    request.on('response', (from) => {
      const { socket } = from;
      const chunks: Buffer[] = [];
      from.on('data', (chunk: Buffer) => chunks.push(chunk));
      from.on('end', () =>
        resolve({ ...head(from), socket, head: Buffer.alloc(0), body: Buffer.concat(chunks) }),
      );
    });
    request.end();
    return promise;
  }
}

/** A clock whose time and timers the test moves. */
export class TestClock implements Clock {
  #now = Date.now();
  #monotonic = 0;
  readonly #timers = new Set<{ at: number; callback: () => void }>();

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** How many wait for time to pass; nobody does while something real is going on. */
  get waiting(): number {
    return this.#timers.size;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#monotonic + delayMs, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  async sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = this.after(delayMs, resolve);
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    await promise.finally(cancel);
  }

  advance(ms: number): void {
    const end = this.#monotonic + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ at }) => at <= end).toSorted((one, two) => one.at - two.at)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#now += Math.max(0, due.at - this.#monotonic);
      this.#monotonic = Math.max(due.at, this.#monotonic);
      due.callback();
    }
    this.#now += end - this.#monotonic;
    this.#monotonic = end;
  }

  get timers(): number {
    return this.#timers.size;
  }
}

export interface Answer {
  status: number;
  text: string;
  headers: IncomingMessage['headers'];
}

export interface Fixture {
  server: KubeletServer;
  foreign: FakeForeign;
  reviews: FakeReviews;
  registry: Registry;
  backend: KubeletBackend;
  authority: Authority;
  client: Issued;
  clientAuthorities: Variable<string>;
  serving: Variable<{ certificate: string; key: string }>;
  ask(path: string, options?: AskOptions): Promise<Answer>;
  connect(options?: ConnectionOptions): Promise<TLSSocket>;
  stop(): Promise<void>;
}

export interface AskOptions {
  method?: string;
  headers?: Record<string, string>;
  identity?: Partial<Issued>;
}

function fakeBackend(foreign: FakeForeign): KubeletBackend {
  const pod = {
    metadata: { name: 'web', namespace: 'shop', uid: UID, resourceVersion: '1', creationTimestamp: '' },
  };
  return {
    locate: async ({ namespace, pod: name, container }) => {
      if (namespace !== 'shop' || name !== 'web') return { kind: 'no pod' };
      if (container !== undefined && container !== 'main') return { kind: 'no container', uid: UID };
      return { kind: 'body', path: REMOTE_PATH, uid: UID };
    },
    raw: async () => Promise.reject(new Error('unexpected')),
    upgrade: async (request) => foreign.dial(request),
    pods: () => [pod],
    runningPods: () => [],
    statsSummary: async () => ({ node: { nodeName: 'milan' } }),
    metricsResource: async () => 'scrape_error 0\n',
    configz: () => ({ kubeletconfig: {} }),
    healthz: () => ({ ok: true, message: '' }),
  };
}

export async function startKubelet(
  options: Omit<Partial<KubeletServerOptions>, 'backend'> & { backend?: Partial<KubeletBackend> } = {},
): Promise<Fixture> {
  const authority = await createAuthority();
  const issued = await authority.issue('CN=kubelet', { usage: 'server', ips: ['127.0.0.1'] });
  const client = await authority.issue('CN=apiserver, O=system:masters');
  const foreign = new FakeForeign();
  await foreign.start();
  const reviews = new FakeReviews();
  const registry = new Registry();
  const backend: KubeletBackend = { ...fakeBackend(foreign), ...options.backend };
  const clientAuthorities = new Variable(authority.certificate);
  const serving = new Variable(issued);
  const server = new KubeletServer({
    nodeName: 'milan',
    host: '127.0.0.1',
    port: 0,
    reviews,
    servingCertificate: serving,
    clientAuthorities,
    clock: systemClock,
    log: silentLogger,
    metrics: new ServerMetrics(registry),
    ...options,
    backend,
  });
  await server.start(new AbortController().signal);
  const sockets = new Set<Socket>();
  const target = (identity: Partial<Issued>): ConnectionOptions => ({
    host: '127.0.0.1',
    port: server.port ?? 0,
    ca: authority.certificate,
    ...(identity.certificate === undefined ? {} : { cert: identity.certificate, key: identity.key ?? '' }),
  });
  return {
    server,
    foreign,
    reviews,
    registry,
    backend,
    authority,
    client,
    clientAuthorities,
    serving,
    async ask(path: string, { method = 'GET', headers = {}, identity = client }: AskOptions = {}) {
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      const request = httpsRequest(
        { ...target(identity), path, method, headers, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              text: Buffer.concat(chunks).toString(),
              headers: response.headers,
            }),
          );
        },
      );
      request.on('error', reject);
      request.end();
      return promise;
    },
    async connect(more: ConnectionOptions = {}) {
      const options = { ...target(client), allowHalfOpen: true, ...more };
      const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
      const socket = connect(options, () => resolve(socket));
      sockets.add(socket);
      socket.on('error', reject);
      return promise;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await server.stop();
      foreign.server.closeAllConnections();
      for (const { socket } of foreign.arrivals) socket.destroy();
      await new Promise((resolve) => foreign.server.close(resolve));
    },
  };
}

/** Reads until `count` bytes are there, or the end. */
export async function readBytes(socket: Duplex, count: number = Number.POSITIVE_INFINITY): Promise<Buffer> {
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const finish = (): void => {
    socket.off('data', onData).off('end', finish).off('close', finish);
    socket.pause();
    resolve(Buffer.concat(chunks));
  };
  const onData = (chunk: Buffer): void => {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= count) finish();
  };
  socket.on('data', onData).on('end', finish).on('close', finish);
  socket.resume();
  return promise;
}

/** The head of an HTTP answer and what followed it. */
export async function readHead(socket: Duplex): Promise<{ head: string; rest: Buffer }> {
  let seen = Buffer.alloc(0);
  for (;;) {
    const chunk = await readBytes(socket, 1);
    seen = Buffer.concat([seen, chunk]);
    const end = seen.indexOf('\r\n\r\n');
    if (end !== -1) return { head: seen.toString('latin1', 0, end), rest: seen.subarray(end + 4) };
    if (chunk.length === 0) return { head: seen.toString('latin1'), rest: Buffer.alloc(0) };
  }
}

export const upgradeText = (path: string, lines: string[] = []): string =>
  [`POST ${path} HTTP/1.1`, 'Host: home', 'Connection: Upgrade', 'Upgrade: SPDY/3.1', ...lines, '', ''].join(
    '\r\n',
  );
