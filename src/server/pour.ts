import type { Duplex } from 'node:stream';

import { Landed } from '../kube/landed.ts';

/**
 * Passes on bytes, back-pressure and the end. All that comes in one turn of the event loop is written at its end, in one piece:
 * TLS gives it out in records of 16 KiB, and each would be a write of its own.
 */
export function pour(from: Duplex, to: Duplex): void {
  if (from instanceof Landed) pourLanded(from, to);
  else pourStream(from, to);
}

function pourStream(from: Duplex, to: Duplex): void {
  let isGathering = false;
  from.on('data', () => {
    if (isGathering) return;
    isGathering = true;
    to.cork();
    setImmediate(() => {
      isGathering = false;
      to.uncork();
    });
  });
  // Its listener comes second, so that the first piece is gathered, too.
  from.pipe(to);
}

/** Larger than what a socket takes before it asks to wait; larger ones were no faster. */
const BLOCK_BYTES = 131_072;
/** Kept for later, of all streams together. */
const SPARE_BLOCKS = 8;
const spareBlocks: Buffer[] = [];

function pourLanded(from: Landed, to: Duplex): void {
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
    if (!to.write(full.subarray(0, filled), done)) from.hold();
  };
  const gather = (): Buffer => {
    filled = 0;
    setImmediate(flush);
    return spareBlocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  };
  to.on('drain', () => from.proceed());
  from.once('end', () => {
    flush();
    to.end();
  });
  from.takeAll((bytes) => {
    for (let at = 0; at < bytes.length;) {
      block ??= gather();
      const copied = bytes.copy(block, filled, at);
      filled += copied;
      at += copied;
      if (filled === block.length) flush();
    }
    return !to.writableNeedDrain;
  });
}
