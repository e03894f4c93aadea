import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { Agent, request } from 'node:https';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/**
 * What to do with a request: pass it on, refuse it, answer a list without items, never answer, pass it on and answer late (as with a slow
 * webhook, which is asked before anything is stored), or answer as an etcd that is full.
 */
export type Verdict = 'pass' | 'refuse' | 'empty' | 'hang' | 'delay' | 'full';

const MESSAGES: Partial<Record<Verdict, string>> = {
  refuse: 'injected',
  full: 'etcdserver: mvcc: database space exceeded',
};

export interface FaultProxyOptions {
  /** URL of the API server behind it. */
  server: string;
  ca: string;
  /** A certificate of the cluster's own authority for 127.0.0.1: clients cannot distinguish the proxy from the server. */
  certificate: { cert: string; key: string };
}

/** A proxy before a real API server: it ends TLS and injects faults into single requests; watches pass through as streams. */
export class FaultProxy {
  readonly #options: FaultProxyOptions;
  readonly #server: Http2SecureServer;
  readonly #agent: Agent;
  readonly #sockets = new Set<Socket>();
  #judge: (method: string, path: string) => Verdict = () => 'pass';
  /** Requests by verdict. */
  readonly counts: Record<Verdict, number> = {
    pass: 0,
    refuse: 0,
    empty: 0,
    hang: 0,
    delay: 0,
    full: 0,
  };
  /** Of `delay`, milliseconds. */
  delayMs = 0;

  constructor(options: FaultProxyOptions) {
    this.#options = options;
    this.#agent = new Agent({ ca: options.ca, keepAlive: true });
    this.#server = createSecureServer({ ...options.certificate, allowHTTP1: true }, (asked, answer) =>
      this.#serve(asked, answer),
    );
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined);
    });
    this.#server.on('session', (session) => session.on('error', () => undefined));
    this.#server.on('sessionError', () => undefined);
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  judge(judge: (method: string, path: string) => Verdict): void {
    this.#judge = judge;
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const socket of this.#sockets) socket.destroy();
    this.#agent.destroy();
    await closed;
  }

  #serve(asked: Http2ServerRequest, answer: Http2ServerResponse): void {
    const { method, url } = asked;
    const verdict = this.#judge(method, url);
    this.counts[verdict]++;
    answer.on('error', () => undefined);
    asked.on('error', () => undefined);
    if (verdict === 'hang') return;
    const message = MESSAGES[verdict];
    if (message !== undefined) {
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code: 500 };
      answer.writeHead(500, { 'content-type': 'application/json' });
      answer.end(JSON.stringify(status));
      return;
    }
    const forward = (): void => void this.#forward(asked, answer, verdict);
    if (verdict === 'delay') setTimeout(forward, this.delayMs);
    else forward();
  }

  async #forward(asked: Http2ServerRequest, answer: Http2ServerResponse, verdict: Verdict): Promise<void> {
    const { method, url } = asked;
    // The request is read completely before it is sent on: the server must never get half a request of a client that
    // was killed.
    const body = await wholeOf(asked).catch(() => undefined);
    if (body === undefined || answer.destroyed) return;
    const entries = Object.entries(asked.headers).filter(
      ([name]) => !name.startsWith(':') && !HOP_BY_HOP.has(name),
    );
    const headers = {
      ...Object.fromEntries(entries),
      ...(body.length > 0 ? { 'content-length': body.length } : {}),
    };
    const to = new URL(url, this.#options.server);
    const sent = request(to, { method, headers, agent: this.#agent }, (got) => {
      if (verdict === 'empty') void answerEmpty(got, answer);
      else relay(got, answer);
    });
    sent.on('error', () => answer.stream?.destroy());
    answer.on('close', () => sent.destroy());
    sent.end(body);
  }
}

async function wholeOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'content-length']);

const headersOf = ({ headers }: IncomingMessage): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));

function relay(got: IncomingMessage, answer: Http2ServerResponse): void {
  answer.writeHead(got.statusCode ?? 502, headersOf(got));
  got.on('error', () => answer.stream?.destroy());
  got.pipe(answer);
}

async function answerEmpty(got: IncomingMessage, answer: Http2ServerResponse): Promise<void> {
  const text = (await wholeOf(got)).toString('utf8');
  const list = JSON.parse(text) as { metadata: { resourceVersion: string } };
  const { resourceVersion } = list.metadata;
  answer.writeHead(200, { 'content-type': 'application/json' });
  answer.end(JSON.stringify({ ...list, metadata: { resourceVersion }, items: [] }));
}
