import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import type { Clock } from '../lib/clock.ts';
import { pour } from './pour.ts';

interface SpliceOptions {
  clock: Clock;
  /** Both connections are cut when no byte has passed for about this long. */
  idleMs: number;
}

/** For a client that is slow: what it was still to get is lost if it takes longer. */
const LINGER_MS = 300_000;

/** How often an idle connection is looked at, per idle time; it is cut at most one such interval late. */
const CHECKS = 8;

/**
 * Joins two connections: bytes, back-pressure and the end of either direction pass on; an error or an abrupt
 * close of one destroys the other. Nothing is parsed, so every stream protocol works, also those to come.
 * Resolves when both are gone.
 */
export async function splice(client: Socket, remote: Duplex, options: SpliceOptions): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let open = 2;
  const closed = (): void => {
    open -= 1;
    if (open === 0) resolve();
  };
  client.on('error', () => remote.destroy());
  // After its end it has nothing more to say, and what it does not take any more it need not take.
  remote.on('error', () => {
    if (!remote.readableEnded) client.destroy();
  });
  client.once('close', () => {
    // Nobody reads what the other still sends. After an end it gets what is on the way.
    if (client.readableEnded && remote.writableEnded && !remote.writableFinished)
      remote.once('finish', () => remote.destroy());
    else remote.destroy();
    closed();
  });
  remote.once('close', () => {
    if (remote.readableEnded && client.writableEnded) linger(client, options.clock);
    else client.destroy();
    closed();
  });
  // Either connection may have closed while the other was being opened.
  if (client.destroyed) remote.destroy();
  if (remote.destroyed) client.destroy();
  const cancel = watchIdle(client, options);
  pour(client, remote, pour(remote, client));
  await promise;
  cancel();
}

/**
 * Reads on, for nobody, until the client has closed as well. If a connection is closed while there is something unread, or when more comes,
 * it is reset (RFC 1122, 4.2.2.13), and a reset overtakes what the client was still to get: megabytes may be on the way.
 */
function linger(client: Socket, clock: Clock): void {
  const cancel = clock.after(LINGER_MS, () => client.destroy());
  client.once('close', cancel);
  client.unpipe();
  client.resume();
}

/** Compares byte counts now and then instead of resetting a timer for every chunk. */
function watchIdle(client: Socket, { clock, idleMs }: SpliceOptions): () => void {
  const count = (): number => client.bytesRead + client.bytesWritten;
  let seen = count();
  let quietSince = clock.monotonic();
  let cancel = (): void => undefined;
  const check = (): void => {
    const now = count();
    if (now !== seen) {
      seen = now;
      quietSince = clock.monotonic();
    }
    if (clock.monotonic() - quietSince >= idleMs) client.destroy();
    else cancel = clock.after(idleMs / CHECKS, check);
  };
  cancel = clock.after(idleMs / CHECKS, check);
  return () => cancel();
}

/** Counts what is open and says no beyond a limit, so that no caller can exhaust the agent's sockets. */
export class StreamGate {
  readonly #limit: number;
  readonly #show: (open: number) => void;
  #open = 0;

  /** `show` is told after each change how many are open. */
  constructor(limit: number, show: (open: number) => void) {
    this.#limit = limit;
    this.#show = show;
  }

  /** The returned function gives the place back, once; undefined when all are taken. */
  enter(): (() => void) | undefined {
    if (this.#open >= this.#limit) return undefined;
    this.#show((this.#open += 1));
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#show((this.#open -= 1));
    };
  }
}
