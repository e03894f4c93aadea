import type { RawData, WebSocket } from 'ws';
import type { Clock } from '../../lib/clock.ts';
import { errorMessage } from '../../lib/errors.ts';
import { plainText } from '../../lib/untrusted.ts';

export interface ChannelEvents {
  message(text: string): void;
  /** Any sign of life that is not a message: a ping, or the answer to one of ours. */
  ping(): void;
  pong(): void;
  /** Once, whoever ended it. */
  closed(end: ChannelEnd): void;
}

export interface ChannelEnd {
  /** Of the WebSocket (RFC 6455, section 7.4); 1006 without a word. */
  code: number;
  reason: string;
}

/** Messages to one peer, in order, and the end of the connection. */
export interface Channel {
  /** Begins to deliver what arrives; nothing is delivered before. */
  open(events: ChannelEvents): void;
  send(text: string): void;
  ping(): void;
  /** Leaves what arrives in the kernel's buffers, so that the sender waits. */
  pause(): void;
  resume(): void;
  /** Tells the reason and ends the connection; cuts it off if the other end does not follow soon. */
  close(code: number, reason: string): void;
  terminate(): void;
}

/** RFC 6455, section 5.5: a control frame has 125 bytes, two of them the code. */
const MAX_REASON_BYTES = 123;
const CLOSE_MS = 2_000;
/** Limit of what a peer has not read yet; more than a few messages in flight together. */
const MAX_UNSENT_BYTES: number = 8 * 1024 * 1024;

/** Over a WebSocket that is open. */
export class WebSocketChannel implements Channel {
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  #failure: string | undefined;
  #cancel = (): void => undefined;

  constructor(socket: WebSocket, clock: Clock) {
    this.#socket = socket;
    this.#clock = clock;
  }

  open(events: ChannelEvents): void {
    const socket = this.#socket;
    socket.on('message', (data: RawData, isBinary: boolean) => {
      if (isBinary) this.close(1003, 'text messages only');
      else events.message((data as Buffer).toString('utf8'));
    });
    socket.on('ping', () => events.ping());
    socket.on('pong', () => events.pong());
    socket.on('error', (error) => (this.#failure = errorMessage(error)));
    socket.once('close', (code, reason) => {
      this.#cancel();
      const said = plainText(reason.toString('utf8'), MAX_REASON_BYTES);
      events.closed({ code, reason: said === '' ? (this.#failure ?? 'the connection ended') : said });
    });
    // The socket was closed before anybody listened.
    if (socket.readyState === socket.CLOSED) events.closed({ code: 1006, reason: 'the connection ended' });
  }

  send(text: string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#socket.bufferedAmount > MAX_UNSENT_BYTES) {
      this.#failure = 'the peer does not read';
      return this.terminate();
    }
    // An error also closes the socket; we learn of it there.
    this.#socket.send(text, () => undefined);
  }

  ping(): void {
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.#socket.ping(undefined, undefined, () => undefined);
    }
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(code: number, reason: string): void {
    this.#cancel();
    // A paused socket would never see the answer of the other end.
    this.resume();
    this.#socket.close(code, cut(reason));
    this.#cancel = this.#clock.after(CLOSE_MS, () => this.terminate());
  }

  terminate(): void {
    this.#socket.terminate();
  }
}

/** Cuts the reason to what fits, without half a character at the end. */
function cut(reason: string): string {
  let text = plainText(reason, MAX_REASON_BYTES);
  while (Buffer.byteLength(text) > MAX_REASON_BYTES) text = text.slice(0, -1);
  return text;
}
