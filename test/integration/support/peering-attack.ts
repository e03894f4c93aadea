/** Strangers at a peering endpoint, with everything that can be wrong from the first byte to the last message. */
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import type { KeyPair } from '../../../src/lib/source.ts';
import { badMessage } from '../../support/peering/bad-message.ts';
import { fc } from '../../support/property.ts';

export interface Victim {
  host: string;
  port: number;
  /** A valid certificate of an unknown cluster. */
  stranger: KeyPair;
  /** A leaf of one identity before the identity certificate of another. */
  forged: KeyPair;
}

const GIVE_UP_MS = 2000;
const AT_ONCE = 16;
const OVERSIZED = 'x'.repeat(1_100_000);
const HTTP = [
  'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /v1/link HTTP/1.1\r\nHost: x\r\n\r\n',
  'POST /v1/link HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello',
  'GET /v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  'GET /v1/link HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 99\r\n\r\n',
  `GET /v1/link HTTP/1.1\r\nX: ${'y'.repeat(70_000)}\r\n\r\n`,
  'CONNECT 127.0.0.1:6443 HTTP/1.1\r\nHost: x\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '\u0000\u0001\u0002',
];

/** Ends when the other side has hung up, or after a while by itself. */
async function untilClosed(
  socket: { destroy(): unknown; resume(): unknown } & NodeJS.EventEmitter,
): Promise<void> {
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), GIVE_UP_MS);
  await once(socket, 'close').catch(() => undefined);
  clearTimeout(timer);
}

async function overTcp({ host, port }: Victim, bytes: Buffer): Promise<void> {
  const socket = connectTcp({ host, port });
  socket.on('error', () => undefined);
  socket.once('connect', () => socket.end(bytes));
  await untilClosed(socket);
}

const tlsOptions = ({ host, port }: Victim, keys?: KeyPair): ConnectionOptions => ({
  host,
  port,
  rejectUnauthorized: false,
  ALPNProtocols: ['http/1.1'],
  ...(keys !== undefined && { cert: keys.certificate, key: keys.key }),
});

async function overTls(victim: Victim, text: string, keys?: KeyPair): Promise<void> {
  const socket: TLSSocket = connectTls(tlsOptions(victim, keys));
  socket.on('error', () => undefined);
  socket.once('secureConnect', () => socket.write(text));
  await untilClosed(socket);
}

async function overWebSocket(
  victim: Victim,
  path: string,
  messages: readonly (string | Buffer)[],
): Promise<void> {
  const { host, port, stranger } = victim;
  const socket = new WebSocket(`wss://${host}:${port}${path}`, {
    ...tlsOptions(victim, stranger),
    handshakeTimeout: GIVE_UP_MS,
  });
  socket.on('error', () => undefined);
  socket.once('open', () => {
    for (const message of messages) socket.send(message, () => undefined);
  });
  const timer = setTimeout(() => socket.terminate(), GIVE_UP_MS);
  await once(socket, 'close').catch(() => undefined);
  clearTimeout(timer);
}

/** So many attempts, the same ones for the same seed; resolves when all connections are closed. */
export async function attack(victim: Victim, count: number, seed: number): Promise<void> {
  const bytes = fc.sample(fc.uint8Array({ maxLength: 2000 }), { numRuns: count, seed });
  const texts = fc.sample(fc.array(badMessage, { minLength: 1, maxLength: 5 }), { numRuns: count, seed });
  const hello = JSON.stringify({
    type: 'hello',
    hello: { clusterName: 'x', protocols: [1], software: 'x', endpoints: [], networkProofs: [] },
  });
  const kinds: ((index: number) => Promise<void>)[] = [
    async (n) => overTcp(victim, Buffer.from(bytes[n] ?? [])),
    // The beginning of a TLS record, and then nothing that belongs there.
    async (n) => overTcp(victim, Buffer.concat([Buffer.from([22, 3, 1, 2, 0]), Buffer.from(bytes[n] ?? [])])),
    async (n) => overTls(victim, HTTP[n % HTTP.length] ?? ''),
    async (n) => overTls(victim, HTTP[n % HTTP.length] ?? '', victim.stranger),
    async (n) => overTls(victim, HTTP[n % HTTP.length] ?? '', victim.forged),
    async (n) => overWebSocket(victim, '/v1/link', texts[n] ?? []),
    async (n) => overWebSocket(victim, '/v1/link', [hello, ...(texts[n] ?? [])]),
    async (n) =>
      overWebSocket(victim, n % 2 === 0 ? '/v1/api' : `/v1/streams/${n}`, ['x', Buffer.from([1, 2])]),
    async () => overWebSocket(victim, '/v1/link', [OVERSIZED]),
  ];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) await kinds[n % kinds.length]?.(n);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
