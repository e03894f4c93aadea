import { createSocket } from 'node:dgram';
import { connect, isIP, isIPv6 } from 'node:net';

import { abortError } from '../../lib/deadline.ts';
import { TributaryError } from '../../lib/errors.ts';
import type { Reply } from './message.ts';

/** A DNS server. */
export interface ServerAddress {
  address: string;
  port: number;
}

const DNS_PORT = 53;
/** No more servers are asked, since a look must end. */
const MAX_SERVERS = 8;

/** `address`, `address:port` or `[v6]:port`, as in SearchDomain and in `dns.getServers()`. Throws Invalid. */
export function parseServers(texts: readonly string[]): ServerAddress[] {
  return texts.slice(0, MAX_SERVERS).map(parseServer);
}

function parseServer(text: string): ServerAddress {
  if (isIP(text) !== 0) return { address: text, port: DNS_PORT };
  const { host = '', port = String(DNS_PORT) } =
    /^(?:\[(?<host>[^\]]+)\]|(?<host>[^:]+))(?::(?<port>\d{1,5}))?$/.exec(text)?.groups ?? {};
  const number = Number(port);
  if (isIP(host) === 0 || number < 1 || number > 65_535) {
    throw new TributaryError('Invalid', `DNS server "${text}" is not of the form address or address:port`);
  }
  return { address: host, port: number };
}

export const serverText = ({ address, port }: ServerAddress): string =>
  `${isIPv6(address) ? `[${address}]` : address}:${port}`;

/** A query to one server and what came back, over a socket of its own. */

interface ExchangeRequest {
  server: ServerAddress;
  message: Buffer;
  /** Reads a message. Undefined where it is not the answer. Throws where nothing better will come. */
  read: (bytes: Buffer) => Reply | undefined;
  signal: AbortSignal;
}

/** Throws Unreachable where the server cannot be spoken to, and the signal's reason. */
export type Exchange = (request: ExchangeRequest) => Promise<Reply>;

/**
 * Uses a new socket for each query, so that its port is one more number that a forger must guess (RFC 5452). The socket is connected:
 * the kernel drops what comes from another address, and tells at once when nobody listens. A message that is not the answer is passed
 * over, and we still wait for the real one.
 */
export const exchangeUdp: Exchange = async ({ server, message, read, signal }) => {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const socket = createSocket(isIPv6(server.address) ? 'udp6' : 'udp4');
  const onAbort = (): void => reject(abortError(signal));
  signal.addEventListener('abort', onAbort, { once: true });
  socket.on('error', (error) => reject(unreachable(server, error)));
  socket.on('message', (bytes) => settle(() => read(bytes), { resolve, reject }));
  // Not by a callback: the callback would get the error, and the listener above would never hear of it.
  socket.on('connect', () => socket.send(message));
  socket.connect(server.port, server.address);
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
    socket.close();
  }
};

/** For answers that do not fit a datagram (RFC 7766). */
export const exchangeTcp: Exchange = async ({ server, message, read, signal }) => {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const socket = connect({ host: server.address, port: server.port });
  const onAbort = (): void => reject(abortError(signal));
  signal.addEventListener('abort', onAbort, { once: true });
  socket.on('error', (error) => reject(unreachable(server, error)));
  socket.on('close', () => reject(unreachable(server, new Error('closed without an answer'))));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  socket.write(Buffer.concat([length, message]));
  const framed = new Framed((bytes) => settle(() => read(bytes), { resolve, reject }));
  socket.on('data', (chunk: Buffer) => framed.push(chunk));
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
    socket.destroy();
  }
};

/** Cuts a stream into messages of up to 64 KiB by their two bytes of length; holds one at most. */
class Framed {
  readonly #onMessage: (bytes: Buffer) => void;
  #chunks: Buffer[] = [];
  #size = 0;

  constructor(onMessage: (bytes: Buffer) => void) {
    this.#onMessage = onMessage;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    while (this.#size >= this.#wanted()) {
      const all = Buffer.concat(this.#chunks);
      const end = this.#wanted();
      this.#chunks = [all.subarray(end)];
      this.#size = all.length - end;
      this.#onMessage(all.subarray(2, end));
    }
  }

  /** Bytes of the first message with its length. The bytes that say the length may come one at a time. */
  #wanted(): number {
    if (this.#size < 2) return 2;
    const [first = Buffer.alloc(0)] = this.#chunks;
    if (first.length < 2) this.#chunks = [Buffer.concat(this.#chunks)];
    return 2 + (this.#chunks[0] as Buffer).readUInt16BE(0);
  }
}

function settle(
  read: () => Reply | undefined,
  { resolve, reject }: { resolve: (reply: Reply) => void; reject: (error: unknown) => void },
): void {
  try {
    const reply = read();
    if (reply !== undefined) resolve(reply);
  } catch (error) {
    reject(error);
  }
}

const unreachable = (server: ServerAddress, cause: Error): TributaryError =>
  new TributaryError('Unreachable', `DNS server ${serverText(server)}`, { cause });
