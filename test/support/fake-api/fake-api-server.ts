/**
 * The API server in memory of `fake-api.ts`, over real TLS and HTTP/2 (or HTTP/1.1) on loopback: for tests of what
 * sockets do. Everything else has a client of FakeApi, within the process. A TcpProxy in front injects the network's
 * faults.
 */
import { createSecureServer } from 'node:http2';
import { createServer as createHttp1Server } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { Credentials } from '../../../src/kube/credentials.ts';
import { type TestCertificate, selfSigned } from '../certificate.ts';
import { FakeApi, type FakeApiOptions } from './fake-api.ts';
import type { Response } from './watch.ts';

export type Request = IncomingMessage | Http2ServerRequest;

export interface FakeApiServerOptions extends FakeApiOptions {
  http2?: boolean;
  /** Concurrent streams per connection. */
  maxConcurrentStreams?: number;
}

export class FakeApiServer extends FakeApi {
  readonly #options: FakeApiServerOptions;
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<{ goaway(): void; destroy(): void }>();
  #certificate: TestCertificate | undefined;
  #port = 0;
  #close: () => Promise<void> = () => Promise.resolve();
  connections = 0;
  /** HTTP/2 pings received. */
  pings = 0;

  constructor(options: FakeApiServerOptions = {}) {
    super(options);
    this.#options = options;
  }

  override async start(): Promise<this> {
    // It stays the same over restarts, because its clients keep their credentials.
    const certificate = (this.#certificate ??= await selfSigned());
    const { http2 = true, maxConcurrentStreams } = this.#options;
    const answer = (request: Request, response: unknown): void => this.#serve(request, response as Response);
    const server = http2
      ? createSecureServer(
          {
            ...certificate,
            allowHTTP1: true,
            // Answers of any size are held until they are read.
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
  override credentials(port: number = this.#port): Credentials {
    return { server: new URL(`https://127.0.0.1:${port}`), ca: this.#certificate?.cert ?? '' };
  }

  get port(): number {
    return this.#port;
  }

  /** Asks all clients to go elsewhere: open streams may end, new ones are refused. */
  goaway(): void {
    for (const session of this.#sessions) session.goaway();
  }

  /** Breaks all connections. */
  override cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Ends at once, connections included. `start` opens it again on the same port with the same memory. */
  override async stop(): Promise<void> {
    const closed = this.#close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #serve(request: Request, response: Response): void {
    const { method = 'GET', url = '/', headers } = request;
    response.on('error', () => undefined);
    request.on('error', () => undefined);
    void this.answer({ method, url, headers, text: async () => readText(request) }, response);
  }
}

async function readText(request: Request): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}
