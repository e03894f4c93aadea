import type { IncomingMessage } from 'node:http';
import { TributaryError } from '../../lib/errors.ts';

export interface BodyLimits {
  /** Of one request. An API server takes at most 3 MiB for an object, and says of it once more who asks. */
  bytes: number;
  /** Of all requests that are being read. */
  total: number;
}

const DEFAULT_BODY_LIMITS: Readonly<BodyLimits> = {
  bytes: 4 * 1024 * 1024,
  total: 48 * 1024 * 1024,
};

/** Reads bodies, and keeps count of what is held at a time, so that strangers cannot take all memory. */
export class BodyReader {
  readonly #limits: BodyLimits;
  #held = 0;

  constructor(limits: BodyLimits = DEFAULT_BODY_LIMITS) {
    this.#limits = limits;
  }

  /** Throws Invalid for one that is too long, TooManyRequests where there is no room now, Aborted when the sender gives up. */
  async read(request: IncomingMessage): Promise<string> {
    if (Number(request.headers['content-length'] ?? 0) > this.#limits.bytes) throw tooLong(this.#limits);
    const chunks: Buffer[] = [];
    let length = 0;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Not `for await`, which would destroy the connection before the refusal is sent.
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      this.#held += chunk.length;
      chunks.push(chunk);
      if (length > this.#limits.bytes) reject(tooLong(this.#limits));
      else if (this.#held > this.#limits.total) reject(noRoom());
    });
    request.once('end', resolve);
    const gaveUp = (): void => reject(new TributaryError('Aborted', 'the sender gave up'));
    request.once('error', gaveUp);
    request.once('close', gaveUp);
    try {
      await promise;
      return Buffer.concat(chunks).toString('utf8');
    } catch (error) {
      request.removeAllListeners('data').pause();
      throw error;
    } finally {
      this.#held -= length;
    }
  }
}

const noRoom = (): TributaryError =>
  new TributaryError('TooManyRequests', 'too many requests are being read');

const tooLong = ({ bytes }: BodyLimits): TributaryError =>
  new TributaryError('Invalid', `the body is longer than ${bytes} bytes`, { status: 413 });
