import { once } from 'node:events';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { Agent, request } from 'node:https';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Cluster } from '../../lab/cluster.ts';
import { type Asked, asked, type Fault, kindOf, type WatchFault, watchKindOf } from './fault.ts';
import { WatchRelay } from './watch-relay.ts';

export interface FaultProxyOptions {
  /** URL of the API server behind it. */
  readonly server: string;
  /** PEM of its authority. */
  readonly ca: string;
  /** A certificate of the cluster's own authority for `address`: clients cannot distinguish the proxy from the server. */
  readonly certificate: { readonly cert: string; readonly key: string };
  /** To listen at; default 127.0.0.1. */
  readonly address?: string;
}

/** Undefined: it passes. */
export type Judge = (asked: Asked) => Fault | undefined;

interface Exchange {
  readonly asked: Asked;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
  readonly answer: Http2ServerResponse;
}

interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

/** Of one list, the answers that are kept to be given again later. */
const KEPT_ANSWERS = 4;

/** A proxy before a real API server: it ends TLS, and injects faults into single requests and into watches. */
export class FaultProxy {
  /** Faults by kind; those only that were really injected. */
  readonly counts: Map<string, number> = new Map();
  /** Called when a fault says that the client is killed: at once, before the connection ends. */
  onKill: () => void = () => undefined;
  readonly #options: FaultProxyOptions;
  readonly #server: Http2SecureServer;
  readonly #agent: Agent;
  readonly #sockets = new Set<Socket>();
  readonly #watches = new Set<WatchRelay>();
  /** Requests without an answer. */
  readonly #silent = new Set<Http2ServerResponse>();
  readonly #lists = new Map<string, Answer[]>();
  #judge: Judge = () => undefined;
  #watchFault: WatchFault | undefined;

  constructor(options: FaultProxyOptions) {
    this.#options = options;
    this.#agent = new Agent({ ca: options.ca, keepAlive: true });
    this.#server = createSecureServer({ ...options.certificate, allowHTTP1: true }, (got, answer) =>
      this.#serve(got, answer),
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
    const { address = '127.0.0.1' } = this.#options;
    this.#server.listen(0, address);
    await once(this.#server, 'listening');
    // A program whose work has failed ends, even if nobody stops its proxies.
    this.#server.unref();
    return this;
  }

  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `https://${address}:${port}`;
  }

  judge(judge: Judge): void {
    this.#judge = judge;
  }

  disturbWatches(fault: WatchFault): void {
    this.#watchFault = fault;
    for (const watch of this.#watches) watch.fault = fault;
  }

  /** All faults end; whoever waits for an answer that never comes sees the connection break. */
  calm(): void {
    this.#judge = () => undefined;
    this.#watchFault = undefined;
    for (const watch of this.#watches) watch.fault = undefined;
    for (const answer of this.#silent) breakConnection(answer);
    this.#silent.clear();
  }

  /** All connections end, as after a restart of the API server. */
  cutAll(): void {
    this.#count('cut');
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const socket of this.#sockets) socket.destroy();
    this.#agent.destroy();
    await closed;
  }

  #count(kind: string): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  #serve(got: Http2ServerRequest, answer: Http2ServerResponse): void {
    answer.on('error', () => undefined);
    got.on('error', () => undefined);
    void this.#exchange(got, answer).catch(() => breakConnection(answer));
  }

  async #exchange(got: Http2ServerRequest, answer: Http2ServerResponse): Promise<void> {
    // The request is read completely before it is sent on: the server must never get half a request of a client that
    // was killed.
    const body = await wholeOf(got);
    if (isGone(answer)) return;
    const what = asked(got.method, got.url);
    const exchange = { asked: what, headers: forwarded(got, body), body, answer };
    const fault = this.#judge(what);
    if (fault === undefined) await this.#pass(exchange);
    else await this.#disturbed(exchange, fault);
  }

  async #disturbed(exchange: Exchange, fault: Fault): Promise<void> {
    const { isWatch } = exchange.asked;
    if (fault.kind === 'stale' || fault.kind === 'empty') {
      await this.#falseList(exchange, fault.kind);
      return;
    }
    if (isWatch && (fault.kind === 'truncate' || fault.kind === 'duplicate')) {
      await this.#pass(exchange);
      return;
    }
    this.#count(kindOf(fault));
    await this.#inject(exchange, fault);
  }

  async #inject(exchange: Exchange, fault: Exclude<Fault, { kind: 'stale' | 'empty' }>): Promise<void> {
    const { answer } = exchange;
    switch (fault.kind) {
      case 'delay':
        await sleep(fault.ms);
        // What was asked comes late, also if nobody waits for the answer any more.
        await this.#pass(exchange);
        return;
      case 'status':
        refuse(answer, fault);
        return;
      case 'silence':
        this.#silent.add(answer);
        return;
      case 'cut':
        if (fault.when === 'after') await this.#ask(exchange);
        breakConnection(answer);
        return;
      case 'kill':
        if (fault.when === 'after') await this.#ask(exchange);
        this.onKill();
        breakConnection(answer);
        return;
      case 'duplicate': {
        const got = await this.#ask(exchange);
        await this.#ask(exchange);
        send(answer, got);
        return;
      }
      case 'truncate': {
        const { status, headers, body } = await this.#ask(exchange);
        if (isGone(answer)) return;
        answer.writeHead(status, headers);
        breakAfter(answer, body.subarray(0, Math.floor(body.length / 2)));
        return;
      }
    }
  }

  /** The client gets another list than the server's, if there is one. */
  async #falseList(exchange: Exchange, kind: 'stale' | 'empty'): Promise<void> {
    const { answer, asked: what } = exchange;
    if (!what.isList) {
      await this.#pass(exchange);
      return;
    }
    const got = await this.#ask(exchange);
    const kept = this.#lists.get(what.path) ?? [];
    const false_ =
      got.status !== 200
        ? undefined
        : kind === 'empty'
          ? emptied(got)
          : kept.find(({ body }) => !body.equals(got.body));
    if (false_ === undefined) this.#keep(what, got);
    else this.#count(kind);
    send(answer, false_ ?? got);
  }

  async #pass(exchange: Exchange): Promise<void> {
    const { answer, asked: what } = exchange;
    if (what.isWatch) {
      await this.#watch(exchange);
      return;
    }
    const got = await this.#ask(exchange);
    this.#keep(what, got);
    send(answer, got);
  }

  /** Pages after the first are asked for by a token, and never again. */
  #keep({ path, isList }: Asked, answer: Answer): void {
    if (!isList || answer.status !== 200 || path.includes('continue=')) return;
    const kept = this.#lists.get(path) ?? [];
    this.#lists.set(path, [...kept, answer].slice(-KEPT_ANSWERS));
  }

  async #ask(exchange: Exchange): Promise<Answer> {
    return answerOf(await this.#open(exchange));
  }

  async #open({ asked: what, headers, body, answer }: Exchange): Promise<IncomingMessage> {
    const to = new URL(what.path, this.#options.server);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = request(to, { method: what.method, headers, agent: this.#agent }, resolve);
    sent.on('error', reject);
    if (what.isWatch) answer.on('close', () => sent.destroy());
    sent.end(body);
    return promise;
  }

  async #watch(exchange: Exchange): Promise<void> {
    const { answer } = exchange;
    if (isGone(answer)) return;
    const got = await this.#open(exchange);
    if (got.statusCode !== 200) {
      // A refusal is no event.
      send(answer, await answerOf(got));
      return;
    }
    answer.writeHead(200, headersOf(got));
    const relay = new WatchRelay(
      {
        write: (text) => void answer.write(text),
        end: () => void answer.end(),
        destroy: (last) => breakAfter(answer, last),
      },
      {
        later: (ms, run) => void setTimeout(run, ms).unref(),
        onFault: (fault) => this.#count(watchKindOf(fault)),
      },
    );
    relay.fault = this.#watchFault;
    this.#watches.add(relay);
    answer.on('close', () => this.#watches.delete(relay));
    got.setEncoding('utf8');
    got.on('data', (text: string) => relay.push(text));
    got.on('end', () => relay.end());
    got.on('error', () => breakConnection(answer));
  }
}

/** A proxy before that cluster, listening at an address of this machine. */
export async function proxyOf(cluster: Cluster, address = '127.0.0.1'): Promise<FaultProxy> {
  const { authority } = cluster.pki;
  const certificate = await authority.issue({ commonName: 'proxy', ips: [address] });
  return new FaultProxy({ server: cluster.server, ca: authority.cert, certificate, address }).start();
}

const answerOf = async (got: IncomingMessage): Promise<Answer> => ({
  status: got.statusCode ?? 502,
  headers: headersOf(got),
  body: await wholeOf(got),
});

async function wholeOf(stream: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  // What comes back is read here.
  'accept-encoding',
]);

function forwarded({ headers }: Http2ServerRequest, body: Buffer): OutgoingHttpHeaders {
  const kept = Object.entries(headers).filter(([name]) => !name.startsWith(':') && !HOP_BY_HOP.has(name));
  return { ...Object.fromEntries(kept), ...(body.length > 0 && { 'content-length': body.length }) };
}

const headersOf = ({ headers }: IncomingMessage): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));

function send(answer: Http2ServerResponse, { status, headers, body }: Answer): void {
  if (isGone(answer)) return;
  answer.writeHead(status, headers);
  answer.end(body);
}

function refuse(
  answer: Http2ServerResponse,
  { code, retryAfter, message = 'injected' }: Extract<Fault, { kind: 'status' }>,
): void {
  const reason = { 410: 'Expired', 429: 'TooManyRequests', 504: 'Timeout' }[code];
  const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, reason, code };
  const headers = {
    'content-type': 'application/json',
    ...(retryAfter !== undefined && { 'retry-after': String(retryAfter) }),
  };
  send(answer, { status: code, headers, body: Buffer.from(JSON.stringify(status)) });
}

function emptied(answer: Answer): Answer {
  const { metadata, ...list } = JSON.parse(answer.body.toString('utf8')) as {
    metadata: { resourceVersion: string };
  };
  const { resourceVersion } = metadata;
  const body = JSON.stringify({ ...list, metadata: { resourceVersion }, items: [] });
  return { ...answer, body: Buffer.from(body) };
}

/** Whether nobody waits for it any more. An answer of HTTP/2 does not say so itself. */
const isGone = (answer: Http2ServerResponse): boolean =>
  // oxlint-disable-next-line typescript/no-unnecessary-condition -- an answer of HTTP/1 has no stream
  answer.stream === undefined ? answer.destroyed : answer.stream.destroyed;

/** Breaks the connection when this has left. */
function breakAfter(answer: Http2ServerResponse, last: string | Buffer = ''): void {
  if (last.length === 0) breakConnection(answer);
  else answer.write(last, () => breakConnection(answer));
}

/** HTTP/2 carries many requests on one connection: all of them break. */
function breakConnection(answer: Http2ServerResponse): void {
  const { session } = answer.stream ?? {};
  if (session === undefined) answer.socket?.destroy();
  else session.destroy();
}
