import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import type { Clock } from '../lib/clock.ts';
import { pour } from './pour.ts';

interface SpliceOptions {
  clock: Clock;
  /** Both connections are cut when no byte has passed for about this long. */
  idleMs: number;
}

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
  const closed = (one: Duplex, other: Duplex): void => {
    // Nothing more can be sent or received, and nobody reads what the other still sends. After an end it gets what is on the way.
    if (one.readableEnded && other.writableEnded && !other.writableFinished) {
      other.once('finish', () => other.destroy());
    } else {
      other.destroy();
    }
    open -= 1;
    if (open === 0) resolve();
  };
  client.on('error', () => remote.destroy());
  remote.on('error', () => client.destroy());
  client.once('close', () => closed(client, remote));
  remote.once('close', () => closed(remote, client));
  // Either connection may have closed while the other was being opened.
  if (client.destroyed) remote.destroy();
  if (remote.destroyed) client.destroy();
  const cancel = watchIdle(client, options);
  pour(client, remote);
  pour(remote, client);
  await promise;
  cancel();
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
