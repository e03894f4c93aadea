/** Two clusters on loopback: endpoints that take WebSockets, and an API server behind one of them. */
import { createServer, type Server } from 'node:http';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server as TcpServer,
  type Socket,
} from 'node:net';
import 'reflect-metadata';
import { WebSocket, WebSocketServer } from 'ws';
import { type Clock, systemClock } from '../../../../src/lib/clock.ts';
import { type Logger, silentLogger } from '../../../../src/lib/log.ts';
import type { ReachLimits, ReachPeers } from '../../../../src/peering/reach/ports.ts';
import { Reach } from '../../../../src/peering/reach/reach.ts';

/** Where who dials says who it is; the real endpoint knows it from TLS. */
const WHO = 'x-cluster';

export async function listening(server: {
  listen(port: number, host: string, cb: () => void): unknown;
}): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
}

export const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;

export class Side {
  readonly id: string;
  readonly reach: Reach;
  readonly sockets: Set<WebSocket> = new Set();
  readonly #server: Server;
  readonly #wss = new WebSocketServer({ noServer: true, perMessageDeflate: false });

  private constructor(id: string, reach: (side: Side) => Reach) {
    this.id = id;
    this.#server = createServer();
    this.reach = reach(this);
    this.#server.on('upgrade', (request, socket, head) => {
      this.#wss.handleUpgrade(request, socket, head, (ws) => {
        this.sockets.add(ws);
        ws.once('close', () => this.sockets.delete(ws));
        const caller = { clusterID: String(request.headers[WHO]) };
        const [, stream] = /^\/v1\/streams\/(.+)$/.exec(request.url ?? '') ?? [];
        if (stream === undefined) this.reach.acceptApi(ws, caller);
        else this.reach.acceptStream(ws, caller, stream);
      });
    });
  }

  static async up(id: string, reach: (side: Side) => Reach): Promise<Side> {
    const side = new Side(id, reach);
    await listening(side.#server);
    return side;
  }

  get endpoint(): string {
    return `127.0.0.1:${portOf(this.#server)}`;
  }

  /** The network cuts everything that came in. */
  dropSockets(): void {
    for (const ws of this.sockets) ws.terminate();
  }

  async down(): Promise<void> {
    await this.reach.stop();
    this.dropSockets();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

export async function dialAs(
  id: string,
  { endpoint, path }: { endpoint: string; path: string },
  signal: AbortSignal,
): Promise<WebSocket> {
  const ws = new WebSocket(`ws://${endpoint}${path}`, { headers: { [WHO]: id }, perMessageDeflate: false });
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
  ws.once('open', () => {
    ws.pause();
    resolve(ws);
  });
  ws.once('error', reject);
  signal.addEventListener('abort', () => ws.terminate(), { once: true });
  return promise;
}

export interface PairOptions {
  /** Whether the consumer can dial the provider. Default true. */
  direct?: boolean;
  limits?: Partial<ReachLimits>;
  clock?: Clock;
  log?: Logger;
  api: () => number;
}

export interface Pair {
  consumer: Side;
  provider: Side;
  state: { linked: boolean; granted: boolean; direct: boolean; asked: string[] };
  down(): Promise<void>;
}

/** `consumer` borrows from `provider`; a link is up. */
export async function pairUp(options: PairOptions): Promise<Pair> {
  const { direct = true, limits, clock = systemClock, log = silentLogger, api } = options;
  const state = { linked: true, granted: true, direct, asked: [] as string[] };
  const sides: { consumer?: Side; provider?: Side } = {};
  const common = {
    mayReach: () => state.granted,
    apiServer: () => ({ host: '127.0.0.1', port: api() }),
    listen: { host: '127.0.0.1' },
    ...(limits && { limits }),
    clock,
    log,
  };
  const peers = (id: string, other: () => Side | undefined, endpoints: () => string[]): ReachPeers => ({
    isLinked: () => state.linked,
    endpoints,
    askDial: async (_clusterID, stream, signal) => {
      if (!state.linked) throw new Error('no link');
      state.asked.push(stream);
      return other()?.reach.dialBack({ clusterID: id }, { stream }, signal);
    },
    dial: async (target, signal) => dialAs(id, target, signal),
  });
  const consumer = await Side.up(
    'consumer',
    () =>
      new Reach({
        ...common,
        peers: peers(
          'consumer',
          () => sides.provider,
          () => (state.direct ? [sides.provider?.endpoint ?? ''] : []),
        ),
      }),
  );
  const provider = await Side.up(
    'provider',
    () =>
      new Reach({
        ...common,
        peers: peers(
          'provider',
          () => sides.consumer,
          () => [consumer.endpoint],
        ),
      }),
  );
  sides.consumer = consumer;
  sides.provider = provider;
  return {
    consumer,
    provider,
    state,
    down: async () => {
      await consumer.down();
      await provider.down();
    },
  };
}

/** A TCP server whose connections are known. */
export class TcpApi {
  readonly sockets: Set<Socket> = new Set();
  readonly #server: TcpServer;

  private constructor(handler: (socket: Socket) => void) {
    this.#server = createTcpServer({ allowHalfOpen: true }, (socket) => {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => this.sockets.delete(socket));
      handler(socket);
    });
  }

  static async up(handler: (socket: Socket) => void): Promise<TcpApi> {
    const api = new TcpApi(handler);
    await listening(api.#server);
    return api;
  }

  get port(): number {
    return portOf(this.#server);
  }

  async down(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** What came in, so that a test may look while it comes. */
export const collected = (socket: Socket): Buffer[] => {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  return chunks;
};
export const size = (chunks: readonly Buffer[]): number =>
  chunks.reduce((sum, { length }) => sum + length, 0);

export async function opened({ consumer }: Pair): Promise<Socket> {
  const { server } = await consumer.reach.open('provider');
  const { hostname, port } = new URL(server);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  return socket;
}

/** Also where nobody else reads: an end that is not read is never seen. */
export const closed = async (socket: Socket): Promise<void> => {
  socket.resume();
  if (!socket.closed) await new Promise<void>((resolve) => void socket.once('close', () => resolve()));
};
