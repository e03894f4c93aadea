import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Basics } from '../../lib/basics.ts';
import { startDeadline } from '../../lib/deadline.ts';
import { errorMessage, hasCode, TributaryError } from '../../lib/errors.ts';
import type { Component } from '../../lib/lifecycle.ts';
import { QuietLog } from '../../lib/quiet-log.ts';
import type { ApiReach } from '../ports.ts';
import { PeerDialler, PeerEndpoints, type Way } from './dialler.ts';
import { isStreamID } from './pending.ts';
import { DEFAULT_LIMITS, type ReachLimits, type ReachPeers } from './ports.ts';
import { connectTcp, hold, type ListenAt, PeerListener, refuse } from './sockets.ts';
import { CLOSE, type Seat, StreamSet } from './streams.ts';

interface ReachOptions extends Basics {
  peers: ReachPeers;
  /** We as provider: whether that peer's grant is Active now. */
  mayReach: (clusterID: string) => boolean;
  /** We as provider: our own API server; we connect to nothing else. */
  apiServer: () => { host: string; port: number };
  /** We as consumer: where local listeners are, and the address under which agents reach them (default: the same). */
  listen: ListenAt & { advertised?: string };
  limits?: Partial<ReachLimits>;
}

type Caller = Readonly<{ clusterID: string }>;

/**
 * Streams to API servers. As consumer we have a local listener for each provider; each connection to it is joined to a
 * WebSocket to that provider, which we have dialled or the provider has dialled back. As provider we join such WebSockets
 * to our own API server. The link is only needed to ask for dialling back: streams outlive it.
 */
export class Reach implements ApiReach, Component {
  readonly name = 'api reach';
  readonly #options: ReachOptions;
  readonly #limits: ReachLimits;
  readonly #endpoints: PeerEndpoints;
  readonly #dialler: PeerDialler;
  readonly #borrowed: StreamSet;
  readonly #lent: StreamSet;
  readonly #listeners = new Map<string, Promise<PeerListener>>();
  readonly #quiet: QuietLog;
  #stopped = false;

  constructor(options: ReachOptions) {
    const { peers, limits, clock, log } = options;
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...limits };
    this.#quiet = new QuietLog({ log, clock });
    this.#endpoints = new PeerEndpoints(peers, clock);
    this.#dialler = new PeerDialler({ peers, endpoints: this.#endpoints, limits: this.#limits, clock });
    const ended =
      (side: string) =>
      (clusterID: string, why: string | undefined): void =>
        log.debug('stream ended', { side, clusterID, ...(why !== undefined && { why }) });
    this.#borrowed = new StreamSet(this.#limits, clock, ended('consumer'));
    this.#lent = new StreamSet(this.#limits, clock, ended('provider'));
  }

  /** How many streams there are or are being made, for metrics. */
  get streams(): { borrowed: number; lent: number } {
    return { borrowed: this.#borrowed.size, lent: this.#lent.size };
  }

  /** How the last stream to that provider was made. */
  wayTo(clusterID: string): Way | undefined {
    return this.#dialler.last(clusterID);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#listeners.keys()].map(async (clusterID) => this.close(clusterID)));
    this.#borrowed.cut('stopped');
    this.#lent.cut('stopped');
  }

  async open(clusterID: string): Promise<{ server: string }> {
    if (this.#stopped) throw new TributaryError('Aborted', 'stopped');
    const { listen } = this.#options;
    let opening = this.#listeners.get(clusterID);
    if (opening === undefined) {
      opening = PeerListener.open(clusterID, listen, (socket) => void this.#borrow(clusterID, socket));
      this.#listeners.set(clusterID, opening);
      opening.catch(() => this.#listeners.delete(clusterID));
    }
    const { port } = await opening;
    const host = listen.advertised ?? listen.host;
    return { server: `https://${host.includes(':') ? `[${host}]` : host}:${port}` };
  }

  async close(clusterID: string): Promise<void> {
    const opening = this.#listeners.get(clusterID);
    this.#listeners.delete(clusterID);
    this.#borrowed.cut('no longer used', clusterID);
    this.#dialler.forget(clusterID);
    this.#endpoints.forget(clusterID);
    this.#quiet.forget(clusterID);
    const listener = await opening?.catch(() => undefined);
    // Connections that it accepted before it was closed.
    const closed = listener?.close();
    this.#borrowed.cut('no longer used', clusterID);
    await closed;
  }

  /** For a peer that came to `/v1/api`: it wants our API server. */
  acceptApi(socket: WebSocket, { clusterID }: Caller): void {
    hold(socket);
    this.#lend(clusterID, async () => Promise.resolve(socket)).catch((error: unknown) => {
      refuse(socket, ...closeReason(error));
      this.#tell(clusterID, 'a stream to our API server was refused', error);
    });
  }

  /** For a peer that came to `/v1/streams/<id>`, which only one that we have asked may do. */
  acceptStream(socket: WebSocket, { clusterID }: Caller, stream: string): void {
    hold(socket);
    if (this.#dialler.pending.arrive(clusterID, stream, socket)) return;
    refuse(socket, CLOSE.refused, 'no such stream is expected');
    this.#tell(
      clusterID,
      'a stream that nobody expects was refused',
      new Error('unknown, used or expired id'),
    );
  }

  /** Answers the call `dial` of a peer that cannot dial us and wants our API server. Throws what the peer is to be told. */
  async dialBack({ clusterID }: Caller, { stream }: { stream: string }, signal: AbortSignal): Promise<void> {
    if (!isStreamID(stream))
      throw new TributaryError('Invalid', 'stream is not an id of 32 hexadecimal digits');
    const path = `/v1/streams/${stream}`;
    const ms = this.#limits.connectMs;
    const open = async (inner: AbortSignal): Promise<WebSocket> =>
      this.#endpoints.dial({ clusterID, path, ms }, inner).catch((error: unknown) => {
        this.#tell(clusterID, 'cannot dial a peer back', error);
        // What answered at which of its endpoints would tell it about our network.
        throw new TributaryError('Unreachable', 'none of your endpoints could be dialled from here');
      });
    await this.#lend(clusterID, open, signal);
  }

  /** Cuts all streams of that peer to our API server, at once. */
  revoke(clusterID: string): void {
    this.#lent.cut('access was revoked', clusterID);
  }

  /** As consumer: serves one connection of an agent. */
  async #borrow(clusterID: string, socket: Socket): Promise<void> {
    socket.on('error', () => undefined);
    const seat = this.#borrowed.take(clusterID);
    if (seat === undefined || this.#stopped || !this.#listeners.has(clusterID)) {
      seat?.leave();
      socket.destroy();
      if (seat === undefined)
        this.#tell(clusterID, 'a connection was refused', new Error('too many streams'));
      return;
    }
    try {
      const ws = await this.#dialler.connect(clusterID, seat.signal);
      this.#quiet.forget(clusterID);
      seat.join(socket, ws);
    } catch (error) {
      seat.leave();
      // To the agent it looks as if the API server were away.
      socket.destroy();
      if (!seat.signal.aborted) this.#tell(clusterID, 'cannot reach the API server of a provider', error);
    }
  }

  /** As provider: joins one stream, from a socket that is there or is dialled. */
  async #lend(
    clusterID: string,
    open: (signal: AbortSignal) => Promise<WebSocket>,
    parent?: AbortSignal,
  ): Promise<void> {
    const { mayReach, apiServer, clock } = this.#options;
    if (this.#stopped || !mayReach(clusterID)) {
      throw new TributaryError('Forbidden', 'no peering lets you use our API server');
    }
    const seat = this.#lent.take(clusterID);
    if (seat === undefined) throw new TributaryError('TooManyRequests', 'too many streams');
    using either = startEither(seat.signal, parent);
    using deadline = startDeadline(clock, this.#limits.connectMs, 'joining the API server', either.signal);
    try {
      const tcp = connectTcp(apiServer(), deadline.signal);
      const [api, ws] = await Promise.allSettled([tcp, open(deadline.signal)]);
      joinBoth(seat, api, ws);
    } catch (error) {
      seat.leave();
      throw error;
    }
  }

  #tell(clusterID: string, message: string, error: unknown): void {
    this.#quiet.warn(clusterID, message, { clusterID, error: errorMessage(error) });
  }
}

/** Joins them where there are both. Otherwise ends the one that is there and throws why the other is not. */
function joinBoth(seat: Seat, api: PromiseSettledResult<Socket>, ws: PromiseSettledResult<WebSocket>): void {
  if (api.status === 'fulfilled' && ws.status === 'fulfilled') {
    seat.join(api.value, ws.value);
    return;
  }
  if (api.status === 'fulfilled') api.value.destroy();
  if (ws.status === 'fulfilled') refuse(ws.value, CLOSE.broken, 'the API server cannot be reached');
  throw (api.status === 'rejected' ? api.reason : (ws as PromiseRejectedResult).reason) as Error;
}

function startEither(first: AbortSignal, second?: AbortSignal): Disposable & { signal: AbortSignal } {
  const joint = new AbortController();
  const signals = second === undefined ? [first] : [first, second];
  const onAbort = (): void => joint.abort(signals.find(({ aborted }) => aborted)?.reason);
  for (const signal of signals) signal.addEventListener('abort', onAbort, { once: true });
  if (signals.some(({ aborted }) => aborted)) onAbort();
  return {
    signal: joint.signal,
    [Symbol.dispose]: () => signals.forEach((signal) => signal.removeEventListener('abort', onAbort)),
  };
}

/** What the peer is told; it says nothing about our network. */
function closeReason(error: unknown): [code: number, why: string] {
  if (hasCode(error, 'Forbidden')) return [CLOSE.refused, 'no peering lets you use our API server'];
  if (hasCode(error, 'TooManyRequests')) return [CLOSE.busy, 'too many streams'];
  return [CLOSE.broken, 'the API server cannot be reached'];
}
