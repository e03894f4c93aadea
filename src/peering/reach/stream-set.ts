import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import type { ReachLimits } from './limits.ts';
import { ApiStream } from './stream.ts';

/** A place for one stream, taken before either of its connections is made. */
export interface Seat {
  /** Fires when the stream is to go. */
  readonly signal: AbortSignal;
  /** The two are one from now on; the seat is free again when both are gone. */
  join(socket: Socket, ws: WebSocket): ApiStream;
  /** Without effect after `join`. */
  leave(): void;
}

interface Taken {
  clusterID: string;
  abort: AbortController;
  stream?: ApiStream;
}

/** The streams of one direction of lending: counted, kept alive, cut by peer. */
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

  /** Undefined where that peer, or all together, have as many as may be. */
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
      // After a stop of this process, what has come meanwhile was not read yet: judge next time.
      const late = this.#clock.monotonic() - this.#lastBeat > beatMs * 2;
      for (const { stream } of this.#taken) stream?.beat(late ? Infinity : silentBeats);
      this.#stopBeat = this.#taken.size > 0 ? this.#nextBeat() : undefined;
    });
  }
}
