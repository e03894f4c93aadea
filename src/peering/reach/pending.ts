import { randomBytes } from 'node:crypto';
import type { WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { TributaryError } from '../../lib/errors.ts';

/** 128 random bits as hexadecimal: nobody guesses one. */
const ID = /^[0-9a-f]{32}$/;

export const isStreamID = (text: unknown): text is string => typeof text === 'string' && ID.test(text);

interface Expected {
  clusterID: string;
  arrived: (socket: WebSocket) => void;
}

/** Streams that we have asked peers to dial back: each may come once, from one peer, within a time. */
export class PendingStreams {
  readonly #expected = new Map<string, Expected>();
  readonly #clock: Clock;
  readonly #newID: () => string;

  constructor(clock: Clock, newID: () => string = () => randomBytes(16).toString('hex')) {
    this.#clock = clock;
    this.#newID = newID;
  }

  get size(): number {
    return this.#expected.size;
  }

  expects(clusterID: string, id: string): boolean {
    return this.#expected.get(id)?.clusterID === clusterID;
  }

  /** A new id and the socket that will come under it; the id is void after `ms`, or when the signal fires. */
  expect(clusterID: string, ms: number, signal: AbortSignal): { id: string; socket: Promise<WebSocket> } {
    const id = this.#newID();
    const { promise, resolve, reject } = Promise.withResolvers<WebSocket>();
    const forget = (): void => {
      this.#expected.delete(id);
      cancel();
      signal.removeEventListener('abort', onAbort);
    };
    const fail = (why: string): void => {
      forget();
      reject(new TributaryError('Unreachable', why));
    };
    const onAbort = (): void => fail('no longer wanted');
    const cancel = this.#clock.after(ms, () =>
      fail(`cluster ${clusterID} did not dial back within ${ms} ms`),
    );
    signal.addEventListener('abort', onAbort, { once: true });
    this.#expected.set(id, {
      clusterID,
      arrived: (socket) => {
        forget();
        resolve(socket);
      },
    });
    if (signal.aborted) onAbort();
    return { id, socket: promise };
  }

  /** Hands over the socket; false where nobody waits for this id from this peer. */
  arrive(clusterID: string, id: string, socket: WebSocket): boolean {
    if (!this.expects(clusterID, id)) return false;
    this.#expected.get(id)?.arrived(socket);
    return true;
  }
}
