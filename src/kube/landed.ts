import { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { dial, type DialOptions } from './dial.ts';

/** Takes bytes that are gone when it returns; false: no more until `proceed`, but what has been decrypted already still comes. */
export type Taker = (bytes: Buffer) => boolean;

/**
 * Where all connections of this kind put what they receive. One place is enough, since each read is dealt with before the next one. A
 * record of TLS has at most 16 KiB.
 */
const LANDING = Buffer.allocUnsafeSlow(16_384);

/**
 * A TLS connection whose bytes land in memory that is used again. Node.js makes a buffer of its own for each record else, and
 * many MB of them make V8 mark its whole heap again and again.
 */
export class Landed extends Duplex {
  /** For the dial. */
  readonly onread: NonNullable<DialOptions['onread']>;
  #carrier: TLSSocket | undefined;
  #taker: Taker = (bytes) => this.push(Buffer.from(bytes));

  constructor() {
    super({ allowHalfOpen: true });
    this.onread = { buffer: LANDING, callback: (count) => this.#taker(LANDING.subarray(0, count)) };
  }

  /** Of the connection that was dialled with `onread`. One through a proxy knows no such thing and emits its bytes. */
  attach(carrier: TLSSocket): void {
    this.#carrier = carrier;
    // Whoever listens learns of it; where nobody does (yet), it must not end the process.
    this.on('error', () => undefined);
    // What has come before its end is passed on, though the other side takes nothing more.
    carrier.on('error', (error) => {
      if (!carrier.readableEnded) this.destroy(error);
    });
    carrier.once('close', () => this.#closed(carrier.readableEnded));
    carrier.once('end', () => this.push(null));
    carrier.on('data', (bytes: Buffer) => {
      if (!this.#taker(bytes)) carrier.pause();
    });
    if (carrier.destroyed) this.destroy();
  }

  /** From now on all bytes go there, and nowhere else. */
  takeAll(taker: Taker): void {
    for (let bytes = this.#read(); bytes !== null; bytes = this.#read()) taker(bytes);
    this.#taker = taker;
    // So that the end is told.
    this.resume();
    this.proceed();
  }

  proceed(): void {
    this.#carrier?.resume();
  }

  hold(): void {
    this.#carrier?.pause();
  }

  /** After an end nothing is lost that has been received. */
  #closed(hasEnded: boolean): void {
    if (hasEnded && !this.readableEnded) this.once('end', () => this.destroy());
    else this.destroy();
  }

  /** An error of a write would end this side, too, before it has told its own end. */
  #unlessEnded(done: (error?: Error | null) => void): (error?: Error | null) => void {
    return (error) => done(this.#carrier?.readableEnded === true ? null : error);
  }

  #read(): Buffer | null {
    return this.read() as Buffer | null;
  }

  override _read(): void {
    this.proceed();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#carrier?.write(bytes, this.#unlessEnded(done));
  }

  override _writev(pieces: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    const last = pieces.length - 1;
    this.#carrier?.cork();
    const told = this.#unlessEnded(done);
    pieces.forEach(({ chunk }, index) => this.#carrier?.write(chunk, index === last ? told : undefined));
    this.#carrier?.uncork();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#carrier?.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#carrier?.destroy();
    done(error);
  }
}

/** HTTP/1.1, and either side may end before the other. */
export async function dialLanded(
  options: Pick<DialOptions, 'clock' | 'target' | 'timeoutMs' | 'signal'>,
): Promise<Landed> {
  const landed = new Landed();
  const { onread } = landed;
  landed.attach(await dial({ ...options, protocols: ['http/1.1'], allowHalfOpen: true, onread }));
  return landed;
}
