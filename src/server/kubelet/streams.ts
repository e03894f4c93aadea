import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import type { Basics } from '../../lib/basics.ts';
import type { Clock } from '../../lib/clock.ts';
import type { UpgradeResponse } from '../../kube/upgrade.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { errorMessage } from '../../lib/errors.ts';
import { remoteRefusal } from './answers.ts';
import type { KubeletAuth } from './auth.ts';
import type { KubeletBackend, PodLocation } from './backend.ts';
import { pathClass, type ServerMetrics } from './metrics.ts';
import { locatePod, type Refusal, splitTarget, type Target } from './pod-path.ts';
import { splice, StreamGate } from '../splice.ts';
import {
  answerHeaders,
  formatHead,
  headerValue,
  parseStreamRequest,
  type StreamRequest,
  upgradeHeaders,
} from './stream-request.ts';
import { streamWithoutBody } from './without-body.ts';

/** As long as the kubelet lets a stream be silent. */
export const STREAM_IDLE_MS: number = 4 * 60 * 60_000;
/** From the request to the foreign server's answer. */
const DIAL_DEADLINE_MS = 30_000;
/** For a client to read an answer and to close. */
const ANSWER_MS = 5_000;

interface StreamsOptions extends Basics {
  backend: KubeletBackend;
  auth: KubeletAuth;
  metrics: ServerMetrics;
  maxStreams: number;
  /** Called with the connection of somebody who may do what they ask for. */
  proved: (socket: Socket) => void;
}

interface Reply extends Refusal {
  contentType?: string;
  headers?: [string, string][];
}

/**
 * exec, attach and portForward: an upgraded connection is joined to one that the foreign API server upgraded for
 * the same request. Who may do what is decided here before anything is dialled; what is said then is between
 * client and container.
 */
export class Streams {
  readonly #options: StreamsOptions;
  readonly #gate: StreamGate;
  readonly #sockets = new Set<Duplex>();

  constructor(options: StreamsOptions) {
    this.#options = options;
    this.#gate = new StreamGate(options.maxStreams, (open) => options.metrics.openStreams('upgraded', open));
  }

  /** Cuts every stream; for the end of the process. */
  closeAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** For node's `upgrade` event. Never rejects: every failure becomes an answer or a closed connection. */
  async serve(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const { clock, log, metrics } = this.#options;
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
    const target = splitTarget(request.url ?? '');
    const path = target?.path ?? '';
    const count = (code: number): void => metrics.answered(pathClass(path), request.method ?? '', code);
    try {
      const reply =
        target === undefined
          ? { status: 400, text: 'invalid path' }
          : await this.#open(target, { request, socket, head }, count);
      if (reply === undefined) return;
      count(reply.status);
      answer(socket, reply, clock);
    } catch (error) {
      log.warn('stream failed', { path, error: errorMessage(error) });
      count(500);
      answer(socket, { status: 500, text: 'internal error' }, clock);
    }
  }

  /** A reply is what the client gets instead of a stream; undefined when there was one, and it has ended. */
  async #open(
    target: Target,
    { request, socket, head }: { request: IncomingMessage; socket: Socket; head: Buffer },
    count: (code: number) => void,
  ): Promise<Reply | undefined> {
    const { auth, proved } = this.#options;
    const refusal = await auth.refusal(request, target.path);
    if (refusal !== undefined) return refusal;
    proved(socket);
    const stream = parseStreamRequest(target, request);
    if ('status' in stream) return stream;
    const leave = this.#gate.enter();
    if (leave === undefined) return { status: 429, text: 'too many streams are open on this node' };
    try {
      const result = await this.#dial(stream, request, socket);
      if ('text' in result) return result;
      count(101);
      await this.#join(socket, head, result);
      return undefined;
    } finally {
      leave();
    }
  }

  async #dial(
    stream: StreamRequest,
    request: IncomingMessage,
    socket: Socket,
  ): Promise<UpgradeResponse | Reply> {
    const { backend, clock, log } = this.#options;
    const gone = new AbortController();
    const onClose = (): void => gone.abort(new Error('the client has gone'));
    if (socket.destroyed || socket.readableEnded) onClose();
    // A client that ends its side before it knows whether there is a stream has gone.
    socket.once('close', onClose).once('end', onClose);
    using deadline = startDeadline(clock, DIAL_DEADLINE_MS, 'foreign API server', gone.signal);
    const { signal } = deadline;
    try {
      const withoutBody = (): Refusal => streamWithoutBody(stream);
      const location = await locatePod(backend, stream.home, { signal, withoutBody });
      if ('status' in location) return location;
      const { method = 'GET' } = request;
      const rawHeaders = upgradeHeaders(method, request.rawHeaders);
      const path = location.path + stream.suffix;
      const result = await backend.upgrade({ method, path, rawHeaders, signal });
      return result.status === 101 ? result : this.#refused(result, stream, location);
    } catch (error) {
      if (!gone.signal.aborted) log.warn('cannot open a stream', { error: errorMessage(error) });
      return { status: 502, text: `error dialing the foreign API server: ${errorMessage(error)}` };
    } finally {
      socket.off('close', onClose).off('end', onClose);
    }
  }

  #refused(result: UpgradeResponse, stream: StreamRequest, location: PodLocation): Reply {
    result.socket.on('error', () => undefined);
    result.socket.destroy();
    const refused = { status: result.status, body: result.body.toString('utf8') };
    const { status, text, json } = remoteRefusal(refused, stream.home, location);
    const headers = answerHeaders(result.headers).filter(([name]) => /^x-accepted-stream-/i.test(name));
    const contentType = json === undefined ? 'text/plain; charset=utf-8' : 'application/json';
    return { status, text: json ?? text, contentType, headers };
  }

  async #join(socket: Socket, head: Buffer, result: UpgradeResponse): Promise<void> {
    const { clock } = this.#options;
    const remote = result.socket;
    this.#sockets.add(remote);
    remote.once('close', () => this.#sockets.delete(remote));
    socket.setNoDelay(true);
    const protocol = headerValue(result.headers, 'upgrade') ?? '';
    const headers = answerHeaders(result.headers).filter(([name]) => name.toLowerCase() !== 'upgrade');
    socket.write(
      formatHead(101, 'Switching Protocols', [['Connection', 'Upgrade'], ['Upgrade', protocol], ...headers]),
    );
    if (result.head.length > 0) socket.write(result.head);
    if (head.length > 0) remote.write(head);
    await splice(socket, remote, { clock, idleMs: STREAM_IDLE_MS });
  }
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
};

/** A complete answer on a connection that node:http no longer looks after. */
function answer(socket: Socket, reply: Reply, clock: Clock): void {
  if (socket.destroyed) return;
  const body = Buffer.from(reply.text);
  const headers: [string, string][] = [
    ['Content-Type', reply.contentType ?? 'text/plain; charset=utf-8'],
    ['X-Content-Type-Options', 'nosniff'],
    ['Content-Length', String(body.length)],
    ['Connection', 'close'],
    ...(reply.status === 429 ? [['Retry-After', '1'] as [string, string]] : []),
    ...(reply.headers ?? []),
  ];
  const head = formatHead(reply.status, REASONS[reply.status] ?? 'Error', headers);
  // Nobody needs what the client still sends, but reading it prevents a reset from overtaking the answer.
  socket.resume();
  // One that keeps its side open would be there for ever.
  socket.once(
    'close',
    clock.after(ANSWER_MS, () => socket.destroy()),
  );
  socket.end(Buffer.concat([Buffer.from(head), body]));
}
