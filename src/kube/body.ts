import type { Readable } from 'node:stream';
import { TributaryError, errorCode, errorMessage } from '../lib/errors.ts';

export interface CollectOptions {
  maxBytes: number;
  /** What to do with a longer body: throw, or keep its beginning. */
  excess: 'throw' | 'cut';
}

/** Reads the whole body, up to the limit. Afterwards the stream is closed. */
export async function collect(body: Readable, { maxBytes, excess }: CollectOptions): Promise<Buffer> {
  const { chunks, size } = await read(body, maxBytes);
  if (size <= maxBytes) return Buffer.concat(chunks, size);
  if (excess === 'cut') return Buffer.concat(chunks, maxBytes);
  throw new TributaryError('Unavailable', `the answer is longer than ${maxBytes} bytes`);
}

/** A little more than the limit, if there is more. (The iterator of a stream would do, and was an eighth of what a request allocates.) */
async function read(body: Readable, maxBytes: number): Promise<{ chunks: Buffer[]; size: number }> {
  const chunks: Buffer[] = [];
  let size = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // It stays: an error nobody listens to would end the process.
  body.on('error', reject);
  body.once('end', resolve);
  body.once('close', () => {
    // An error with its stack is too dear to be made for nobody.
    if (!body.readableEnded) reject(body.errored ?? new Error('the stream was closed before its end'));
  });
  body.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    if (size <= maxBytes) return;
    body.pause();
    resolve();
  });
  if (body.destroyed) reject(body.errored ?? new Error('the stream is closed'));
  try {
    await promise;
  } catch (error) {
    throw readError(error);
  } finally {
    body.destroy();
  }
  return { chunks, size };
}

/** Longer than any object an API server stores (etcd takes 1.5 MB). */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/**
 * The complete lines of a stream. Chunks are searched once and joined once a line, so a long line costs no more
 * than its length. An unfinished last line is dropped: the stream was cut, and a watch resumes before it.
 */
export async function* lines(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let pieces: Buffer[] = [];
  let held = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const piece = chunk.subarray(start, end);
      start = end + 1;
      if (held === 0) {
        yield piece;
        continue;
      }
      pieces.push(piece);
      const line = Buffer.concat(pieces, held + piece.length);
      pieces = [];
      held = 0;
      yield line;
    }
    if (start === chunk.length) continue;
    pieces.push(chunk.subarray(start));
    held += chunk.length - start;
    if (held > MAX_LINE_BYTES) {
      throw new TributaryError('Unavailable', `a line of the watch is longer than ${MAX_LINE_BYTES} bytes`);
    }
  }
}

/** The error that ended the reading of a body: our own error if there is one, otherwise Unreachable. */
export function readError(error: unknown): TributaryError {
  if (errorCode(error) !== undefined && (error as { name?: unknown }).name === 'TributaryError') {
    return error as TributaryError;
  }
  return new TributaryError('Unreachable', `the answer broke off: ${errorMessage(error)}`, { cause: error });
}
