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
  if (from instanceof Landed) return pourLanded(from, to);
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

function pourLanded(from: Landed, to: Duplex): ReadAhead {
  /** Held for a client that does not take it yet. */
  let ahead = 0;
  /** How much may still be read ahead; zero while nobody has asked. */
  let budget = 0;
  let hasCome = false;
  const forget = (): void => {
    aheadOfAll -= ahead;
    ahead = 0;
  };
  let block: Buffer | undefined;
  let filled = 0;
  const flush = (): void => {
    if (block === undefined) return;
    const full = block;
    block = undefined;
    // Only what has been written, or is certain not to be, may be overwritten.
    const done = (): void => {
      if (spareBlocks.length < SPARE_BLOCKS) spareBlocks.push(full);
    };
    if (!to.write(full.subarray(0, filled), done) && budget <= 0) from.hold();
  };
  const gather = (): Buffer => {
    filled = 0;
    setImmediate(flush);
    return spareBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  };
  to.on('drain', () => {
    forget();
    from.proceed();
  });
  to.once('close', forget);
  from.once('end', () => {
    flush();
    to.end();
  });
  from.takeAll((bytes) => {
    hasCome = true;
    if (budget > 0) {
      budget -= bytes.length;
      if (to.writableNeedDrain) {
        ahead += bytes.length;
        aheadOfAll += bytes.length;
      }
    }
    for (let at = 0; at < bytes.length;) {
      block ??= gather();
      const copied = bytes.copy(block, filled, at);
      filled += copied;
      at += copied;
      if (filled === block.length) flush();
    }
    return budget > 0 || !to.writableNeedDrain;
  });
  return (done) => {
    const look = (): void => {
      // A turn of the event loop reads what had come before it.
      if (hasCome && budget > 0 && aheadOfAll < AHEAD_OF_ALL_BYTES && !to.destroyed) {
        hasCome = false;
        setImmediate(look);
        return;
      }
      budget = 0;
      if (to.writableNeedDrain) from.hold();
      done();
    };
    budget = AHEAD_BYTES;
    hasCome = true;
    from.proceed();
    look();
  };
}
