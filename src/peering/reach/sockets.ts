import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { abortError, untilAborted } from '../../lib/deadline.ts';
import { errorMessage, TributaryError } from '../../lib/errors.ts';

/** Idle time before TCP probes a silent peer; libuv then probes each second, ten times. Milliseconds. */
const TCP_KEEPALIVE_MS = 15_000;

/** A TCP connection that is not read yet. */
export async function connectTcp(
  { host, port }: { host: string; port: number },
  signal: AbortSignal,
): Promise<Socket> {
  if (signal.aborted) throw abortError(signal);
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({
    host,
    port,
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEPALIVE_MS,
  });
  socket.once('connect', () => resolve(socket));
  socket.on('error', (cause) =>
    reject(
      new TributaryError('Unreachable', `cannot connect to ${host}:${port}: ${errorMessage(cause)}`, {
        cause,
      }),
    ),
  );
  try {
    return await untilAborted(promise, signal);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Takes over a WebSocket before anything of it is read. */
export function hold(ws: WebSocket): WebSocket {
  // An error is followed by a close, which is handled; but without a listener the error would end the process.
  ws.on('error', () => undefined);
  ws.pause();
  return ws;
}

export function refuse(ws: WebSocket, code: number, why: string): void {
  // A paused socket never reads the answer to its close.
  ws.resume();
  ws.close(code, why);
}

export interface ListenAt {
  host: string;
  /** Inclusive; default: a free one. */
  ports?: { first: number; last: number };
}

/** Accepts TCP connections for one peer; they are handed over paused. */
export class PeerListener {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /**
   * Takes the first free port of the range, beginning at one that depends on the peer: so a restart most often finds
   * the same port, and nobody has to be told a new one.
   */
  static async open(
    clusterID: string,
    { host, ports }: ListenAt,
    accepted: (socket: Socket) => void,
  ): Promise<PeerListener> {
    const server = createServer(
      {
        allowHalfOpen: true,
        pauseOnConnect: true,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: TCP_KEEPALIVE_MS,
      },
      accepted,
    );
    let problem: unknown;
    for (const port of candidates(clusterID, ports)) {
      try {
        await listen(server, host, port);
        // A connection that cannot be accepted, for want of file descriptors say, ends with that.
        server.on('error', () => undefined);
        return new PeerListener(server);
      } catch (error) {
        problem = error;
        if ((error as { code?: unknown }).code !== 'EADDRINUSE') break;
      }
    }
    throw new Error(`cannot listen for cluster ${clusterID} at ${host}: ${errorMessage(problem)}`, {
      cause: problem,
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Accepts no more connections; those that there are stay. */
  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    await promise;
  }
}

function* candidates(clusterID: string, ports: ListenAt['ports']): Iterable<number> {
  if (ports === undefined) {
    yield 0;
    return;
  }
  const count = Math.max(1, ports.last - ports.first + 1);
  let start = 0;
  for (const letter of clusterID) start = (start * 31 + letter.charCodeAt(0)) % count;
  for (let step = 0; step < count; step += 1) yield ports.first + ((start + step) % count);
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  const listening = once(server, 'listening');
  // Without a host Node takes all addresses, of both families where there are both.
  server.listen({ port, ...(host !== '::' && { host }) });
  await listening;
}
