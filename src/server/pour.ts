import type { Duplex } from 'node:stream';

import { Landed } from '../kube/landed.ts';

/**
 * Passes on bytes, back-pressure and the end. All that comes in one turn of the event loop is written at its end, in one piece:
 * TLS gives it out in records of 16 KiB, and each would be a write of its own.
 */
export function pour(
  from: Duplex,
  to: Duplex,
  readAhead: ReadAhead = (done) => done(),
): ReadAhead | undefined {
  if (from instanceof Landed) return new LandedPour(from, to).start().readAhead;
  pourStream(from, to, readAhead);
  return undefined;
}

/**
 * Takes what the other direction has sent by now, for the one that does not want it yet, and calls `done` when it has all of it, or
 * as much as there is room for.
 *
 * A server that has said all closes its connection, and whoever sends it more is answered by a reset: what has come and is not read yet
 * is lost. So nothing is sent to a server of which something may be unread. With a slow client megabytes are, and API servers send pings.
 */
export type ReadAhead = (done: () => void) => void;

function pourStream(from: Duplex, to: Duplex, readAhead: ReadAhead): void {
  let isGathering = false;
  from.on('data', () => {
    if (isGathering) return;
    isGathering = true;
    to.cork();
    setImmediate(() =>
      readAhead(() => {
        isGathering = false;
        to.uncork();
      }),
    );
  });
  // Its listener comes second, so that the first piece is gathered, too.
  from.pipe(to);
}

/** Larger than what a socket takes before it asks to wait; larger ones were no faster. */
const BLOCK_BYTES = 131_072;
/** Kept for later, of all streams together. */
const SPARE_BLOCKS = 8;
const spareBlocks: Buffer[] = [];

/** As much as the kernel keeps of a connection by default (tcp_rmem), and a little more. */
const AHEAD_BYTES = 8 * 1024 * 1024;
/** Of all streams together: clients that do not read must not fill the memory. */
const AHEAD_OF_ALL_BYTES = 48 * 1024 * 1024;
let aheadOfAll = 0;

/** What lands is copied into blocks, and a block is written when it is full or the turn is over. */
class LandedPour {
  readonly #from: Landed;
  readonly #to: Duplex;
  #block: Buffer | undefined;
  #filled = 0;
  /** Bytes that wait for a client which does not take them yet. */
  #ahead = 0;
  /** How many bytes may still be read ahead; zero while nobody has asked. */
  #budget = 0;
  /** Since it was looked at last. */
  #hasCome = false;

  constructor(from: Landed, to: Duplex) {
    this.#from = from;
    this.#to = to;
  }

  start(): this {
    const [from, to] = [this.#from, this.#to];
    to.on('drain', () => {
      this.#forget();
      from.proceed();
    });
    to.once('close', () => this.#forget());
    from.once('end', () => {
      this.#flush();
      to.end();
    });
    from.takeAll((bytes) => this.#take(bytes));
    return this;
  }

  readonly readAhead: ReadAhead = (done) => {
    this.#budget = AHEAD_BYTES;
    this.#hasCome = true;
    this.#from.proceed();
    this.#look(done);
  };

  #look(done: () => void): void {
    // A turn of the event loop reads what had come before it.
    if (this.#hasCome && this.#budget > 0 && aheadOfAll < AHEAD_OF_ALL_BYTES && !this.#to.destroyed) {
      this.#hasCome = false;
      setImmediate(() => this.#look(done));
      return;
    }
    this.#budget = 0;
    if (this.#to.writableNeedDrain) this.#from.hold();
    done();
  }

  #take(bytes: Buffer): boolean {
    this.#hasCome = true;
    if (this.#budget > 0) this.#count(bytes.length);
    for (let at = 0; at < bytes.length;) {
      this.#block ??= this.#gather();
      const copied = bytes.copy(this.#block, this.#filled, at);
      this.#filled += copied;
      at += copied;
      if (this.#filled === this.#block.length) this.#flush();
    }
    return this.#budget > 0 || !this.#to.writableNeedDrain;
  }

  #count(bytes: number): void {
    this.#budget -= bytes;
    if (!this.#to.writableNeedDrain || this.#to.destroyed) return;
    this.#ahead += bytes;
    aheadOfAll += bytes;
  }

  #forget(): void {
    aheadOfAll -= this.#ahead;
    this.#ahead = 0;
  }

  #gather(): Buffer {
    this.#filled = 0;
    setImmediate(() => this.#flush());
    return spareBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }

  #flush(): void {
    const full = this.#block;
    if (full === undefined) return;
    this.#block = undefined;
    // Only what has been written, or is certain not to be, may be overwritten.
    const done = (): void => {
      if (spareBlocks.length < SPARE_BLOCKS) spareBlocks.push(full);
    };
    if (!this.#to.write(full.subarray(0, this.#filled), done) && this.#budget <= 0) this.#from.hold();
  }
}
