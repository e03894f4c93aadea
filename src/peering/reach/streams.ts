import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import type { ReachLimits } from './ports.ts';

/** Close codes of a stream (RFC 6455, section 7.4). */
export const CLOSE = {
  /** Both directions have ended in order. */
  done: 1000,
  /** A message was not binary. */
  unsupported: 1003,
  /** Not permitted, not (any more) expected. */
  refused: 1008,
  /** One of the two connections broke. */
  broken: 1011,
  /** Too many streams. */
  busy: 1013,
} as const;

/** Bytes that wait for the WebSocket, besides those in the kernel. Above the first limit TCP is not read, until below the second. */
const HIGH_WATER = 256 * 1024;
const LOW_WATER = 64 * 1024;

/** The end of one direction: a WebSocket has no half-close, and TCP never delivers an empty chunk. */
const END = Buffer.alloc(0);

/**
 * One TCP connection joined to one WebSocket: bytes, back-pressure and the end of either direction pass on; when one
 * breaks, so does the other. Each binary message is a piece of the byte stream, an empty one its end. TLS runs inside
 * from end to end, so nothing here can be read or forged by whoever is between.
 */
class ApiStream {
  /** Resolves when both are gone, with the reason where it was no orderly end. */
  readonly closed: Promise<string | undefined>;
  readonly #socket: Socket;
  readonly #ws: WebSocket;
  readonly #resolve: (why: string | undefined) => void;
  #why: string | undefined;
  #sentEnd = false;
  #gotEnd = false;
  /** Whether something came from the other side since the last beat. */
  #heard = true;
  #silentBeats = 0;
  readonly traffic = { toPeer: 0, fromPeer: 0 };

  /** Both must be paused, so that nothing came before somebody listens. */
  constructor(socket: Socket, ws: WebSocket) {
    this.#socket = socket;
    this.#ws = ws;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    this.closed = promise;
    this.#resolve = resolve;
    this.#joinSocket();
    this.#joinWebSocket();
    // Either may have closed while the other was made.
    if (socket.destroyed || ws.readyState !== ws.OPEN) {
      this.cut('a side was gone before the stream began');
      // Their events may be over.
      this.#settle();
      return;
    }
    ws.resume();
    socket.resume();
  }

  /** Shows the other side that we live; cuts the stream after so many beats without a sign from there. */
  beat(mostSilent: number): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    // While our own reader is slow we do not listen, so silence says nothing about the other side.
    this.#silentBeats = this.#heard || this.#ws.isPaused ? 0 : this.#silentBeats + 1;
    this.#heard = false;
    if (this.#silentBeats >= mostSilent) this.cut('the other side is silent');
    else this.#ws.ping();
  }

  /** Ends both now; bytes on the way are lost. */
  cut(why: string): void {
    this.#why ??= why;
    this.#socket.destroy();
    this.#ws.terminate();
  }

  #joinSocket(): void {
    const socket = this.#socket;
    const ws = this.#ws;
    const sent = (): void => {
      if (ws.bufferedAmount <= LOW_WATER && socket.isPaused()) socket.resume();
    };
    socket.on('data', (chunk: Buffer) => {
      this.traffic.toPeer += chunk.length;
      ws.send(chunk, sent);
      if (ws.bufferedAmount > HIGH_WATER) socket.pause();
    });
    socket.on('end', () => {
      this.#sentEnd = true;
      if (ws.readyState === ws.OPEN) ws.send(END);
    });
    socket.on('drain', () => ws.resume());
    socket.on('error', (error) => (this.#why ??= errorMessage(error)));
    socket.once('close', () => {
      const orderly = this.#sentEnd && this.#gotEnd;
      if (!orderly) this.#why ??= 'the connection was closed';
      // After what is still to be sent; it terminates by itself when the other side does not answer.
      ws.close(orderly ? CLOSE.done : CLOSE.broken);
      // Otherwise a close that comes in is never read.
      ws.resume();
      this.#settle();
    });
  }

  #joinWebSocket(): void {
    const socket = this.#socket;
    const ws = this.#ws;
    const heard = (): void => void (this.#heard = true);
    ws.on('ping', heard);
    ws.on('pong', heard);
    ws.on('message', (data: RawData, isBinary: boolean) => {
      this.#heard = true;
      this.#receive(data, isBinary);
    });
    ws.on('error', (error) => {
      this.#why ??= errorMessage(error);
      socket.destroy();
    });
    ws.once('close', (code: number) => {
      if (code !== CLOSE.done) this.#why ??= `the other side closed the stream (${code})`;
      // What is still to be written is written, then the connection ends.
      if (code === CLOSE.done) socket.destroySoon();
      else socket.destroy();
      this.#settle();
    });
  }

  #receive(data: RawData, isBinary: boolean): void {
    const socket = this.#socket;
    if (!isBinary || !Buffer.isBuffer(data)) {
      this.#why ??= 'a message was not binary';
      this.#ws.close(CLOSE.unsupported);
      socket.destroy();
    } else if (data.length === 0) {
      this.#gotEnd = true;
      socket.end();
    } else if (socket.writable) {
      this.traffic.fromPeer += data.length;
      if (!socket.write(data)) this.#ws.pause();
    }
  }

  #settle(): void {
    if (this.#socket.closed && this.#ws.readyState === this.#ws.CLOSED) this.#resolve(this.#why);
  }
}

/** A place for one stream, taken before either of its connections is made. */
export interface Seat {
  /** Fires when the stream is to go. */
  readonly signal: AbortSignal;
  /** Joins the two; the seat is free again when both are gone. */
  join(socket: Socket, ws: WebSocket): ApiStream;
  /** Without effect after `join`. */
  leave(): void;
}

interface Taken {
  clusterID: string;
  abort: AbortController;
  stream?: ApiStream;
}

/** The streams of one direction of lending: counts them, keeps them alive, cuts them by peer. */
export class StreamSet {
  readonly #taken = new Set<Taken>();
  readonly #limits: ReachLimits;
  readonly #clock: Clock;
  readonly #ended: (clusterID: string, why: string | undefined) => void;
  #stopBeat: (() => void) | undefined;
  #lastBeat = 0;

  constructor(
    limits: ReachLimits,
    clock: Clock,
    ended: (clusterID: string, why: string | undefined) => void,
  ) {
    this.#limits = limits;
    this.#clock = clock;
    this.#ended = ended;
  }

  get size(): number {
    return this.#taken.size;
  }

  of(clusterID: string): number {
    let count = 0;
    for (const taken of this.#taken) if (taken.clusterID === clusterID) count += 1;
    return count;
  }

  /** Undefined where that peer, or all peers together, have the most streams that are allowed. */
  take(clusterID: string): Seat | undefined {
    const { streams, streamsPerPeer } = this.#limits;
    if (this.size >= streams || this.of(clusterID) >= streamsPerPeer) return undefined;
    const taken: Taken = { clusterID, abort: new AbortController() };
    this.#taken.add(taken);
    this.#stopBeat ??= this.#nextBeat();
    return {
      signal: taken.abort.signal,
      join: (socket, ws) => this.#join(taken, socket, ws),
      leave: () => {
        if (taken.stream === undefined) this.#free(taken);
      },
    };
  }

  /** All, or those of one peer. */
  cut(why: string, clusterID?: string): void {
    for (const taken of this.#taken) {
      if (clusterID !== undefined && taken.clusterID !== clusterID) continue;
      taken.abort.abort(new Error(why));
      taken.stream?.cut(why);
    }
  }

  #join(taken: Taken, socket: Socket, ws: WebSocket): ApiStream {
    const stream = new ApiStream(socket, ws);
    taken.stream = stream;
    void stream.closed.then((why) => {
      this.#free(taken);
      this.#ended(taken.clusterID, why);
    });
    if (taken.abort.signal.aborted) stream.cut('no longer wanted');
    return stream;
  }

  #free(taken: Taken): void {
    this.#taken.delete(taken);
    if (this.#taken.size > 0) return;
    this.#stopBeat?.();
    this.#stopBeat = undefined;
  }

  #nextBeat(): () => void {
    const { beatMs, silentBeats } = this.#limits;
    this.#lastBeat = this.#clock.monotonic();
    return this.#clock.after(beatMs, () => {
      // After a pause of this process, what has arrived was not read yet: wait for the next beat.
      const late = this.#clock.monotonic() - this.#lastBeat > beatMs * 2;
      for (const { stream } of this.#taken) stream?.beat(late ? Infinity : silentBeats);
      this.#stopBeat = this.#taken.size > 0 ? this.#nextBeat() : undefined;
    });
  }
}
