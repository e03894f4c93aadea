import { Readable } from 'node:stream';
import type { RawResponse } from '../../../src/kube/client.ts';
import type { Failure, WireRequest } from '../../../src/kube/http2-connection.ts';
import type { CarrierStats } from '../../../src/kube/sockets.ts';
import type { Carrier } from '../../../src/kube/transport.ts';
import { abortError } from '../../../src/lib/deadline.ts';
import { TributaryError } from '../../../src/lib/errors.ts';
import type { Arrival } from './fake-api.ts';
import type { Response } from './watch.ts';
import { work } from '../settle.ts';

export interface LocalCarrierOptions {
  /** Whether nobody listens. */
  isAway: () => boolean;
  answer: (arrival: Arrival, response: Response) => void;
  onClose: () => void;
}

/** Requests of one client to a server in this process. Each arrives in its own turn of the event loop, as from a socket. */
export class LocalCarrier implements Carrier {
  readonly #options: LocalCarrierOptions;
  readonly #open = new Set<LocalResponse>();

  constructor(options: LocalCarrierOptions) {
    this.#options = options;
  }

  get stats(): CarrierStats {
    const connectionsOpen = this.#options.isAway() ? 0 : 1;
    const none = { bytesReceived: 0, bytesSent: 0 };
    return { connectionsOpened: 1, connectionsOpen, streamsOpen: this.#open.size, ...none };
  }

  async request({ method, path, headers, body, signal }: WireRequest): Promise<RawResponse | Failure> {
    if (signal?.aborted === true) throw abortError(signal);
    if (this.#options.isAway()) throw new TributaryError('Unreachable', 'cannot connect: nobody listens');
    const response = new LocalResponse();
    this.#open.add(response);
    const onAbort = (): void => {
      if (signal !== undefined) response.giveUp(abortError(signal));
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    response.on('close', () => {
      this.#open.delete(response);
      signal?.removeEventListener('abort', onAbort);
    });
    const text = body === undefined ? '' : Buffer.from(body).toString('utf8');
    work.begin();
    setImmediate(() => {
      work.end();
      if (!response.destroyed)
        this.#options.answer({ method, url: path, headers, text: () => text }, response);
    });
    return response.head;
  }

  /** All answers break off. */
  cut(): void {
    for (const response of this.#open) response.break();
  }

  async close(): Promise<void> {
    for (const response of this.#open) {
      response.break(new TributaryError('Unreachable', 'the client was closed'));
    }
    this.#options.onClose();
  }
}

/** Both ends of an answer: what the server writes, and the body that the client reads. */
class LocalResponse implements Response {
  readonly #body = new Readable({ read: () => undefined });
  readonly #head = Promise.withResolvers<RawResponse | Failure>();
  headersSent = false;

  constructor() {
    // The reader of a broken answer gets an error; if there is no reader, it is not an error of the process.
    this.#body.on('error', () => undefined);
    this.#body.on('close', () => this.break());
  }

  get head(): Promise<RawResponse | Failure> {
    return this.#head.promise;
  }

  get destroyed(): boolean {
    return this.#body.destroyed;
  }

  writeHead(status: number, headers: Record<string, string>): void {
    this.headersSent = true;
    this.#head.resolve({ status, headers, body: this.#body });
  }

  write(text: string): void {
    if (!this.headersSent) this.writeHead(200, {});
    if (!this.destroyed) this.#body.push(Buffer.from(text, 'utf8'));
  }

  end(text?: string): void {
    this.write(text ?? '');
    if (!this.destroyed) this.#body.push(null);
  }

  destroy(): void {
    this.break();
  }

  break(error: TributaryError = new TributaryError('Unreachable', 'the connection was cut')): void {
    this.#head.resolve({ error, failure: 'broken' });
    this.#body.destroy(error);
  }

  /** By the caller, who may not ask again. */
  giveUp(error: TributaryError): void {
    this.#head.reject(error);
    this.#body.destroy(error);
  }

  on(event: 'close' | 'error', listener: () => void): void {
    this.#body.on(event, listener);
  }
}
