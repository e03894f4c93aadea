import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Credentials } from '../../../src/kube/credentials.ts';
import { type UpgradeResponse, dialUpgrade } from '../../../src/kube/upgrade.ts';
import { selfSigned } from '../../support/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let server: Server;
let credentials: Credentials;
let seen: { method: string; url: string; rawHeaders: string[] }[];
/** What the server does with an upgraded connection. */
let onUpgrade: (socket: Duplex) => void;
let sockets: Duplex[];

beforeEach(async () => {
  seen = [];
  sockets = [];
  onUpgrade = (socket) => {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nX-Stream: a\r\nX-Stream: b\r\nconnection: Upgrade\r\n\r\nearly',
    );
    socket.pipe(socket);
  };
  const certificate = await selfSigned();
  server = createServer({ ...certificate, allowHalfOpen: true } as object);
  server.on('request', (request) => {
    seen.push({ method: request.method ?? '', url: request.url ?? '', rawHeaders: request.rawHeaders });
  });
  server.on('upgrade', (request, socket: Duplex) => {
    seen.push({ method: request.method ?? '', url: request.url ?? '', rawHeaders: request.rawHeaders });
    socket.on('error', () => undefined);
    sockets.push(socket);
    if (request.url?.includes('refused') === true) {
      socket.end(`HTTP/1.1 403 Not you\r\nX-Why: because\r\n\r\n${'no'.repeat(100_000)}`);
    } else {
      onUpgrade(socket);
    }
  });
  server.on('connection', (socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  credentials = {
    server: new URL(`https://127.0.0.1:${port}/base`),
    ca: certificate.cert,
    token: () => Promise.resolve('secret'),
  };
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const HEADERS: [string, string][] = [
  ['X-Stream-Protocol-Version', 'v4.channel.k8s.io'],
  ['Connection', 'Upgrade'],
  ['upgrade', 'SPDY/3.1'],
  ['X-Stream-Protocol-Version', 'v3.channel.k8s.io'],
  ['Authorization', 'Bearer of-the-caller'],
  ['Host', 'elsewhere'],
  ['Content-Length', '7'],
];

const dial = (path = '/api/exec?command=a&command=b', method = 'POST'): Promise<UpgradeResponse> =>
  dialUpgrade(credentials, { method, path, rawHeaders: HEADERS });

test('headers go out and come back in order and as written, with our credentials', async () => {
  const { status, statusMessage, headers, socket, head } = await dial();
  expect([status, statusMessage]).toEqual([101, 'Switching Protocols']);
  expect(headers).toEqual([
    ['Upgrade', 'SPDY/3.1'],
    ['X-Stream', 'a'],
    ['X-Stream', 'b'],
    ['connection', 'Upgrade'],
  ]);
  expect(head.toString()).toBe('early');
  const { host } = credentials.server;
  expect(seen).toEqual([
    {
      method: 'POST',
      url: '/base/api/exec?command=a&command=b',
      rawHeaders: [
        'Host',
        host,
        ...HEADERS.slice(0, 4).flat(),
        'Authorization',
        'Bearer secret',
        'Content-Length',
        '0',
      ],
    },
  ]);
  socket.destroy();
});

test.each(['GET', 'POST'])('bytes pass in both directions after a %s, and no others', async (method) => {
  const { socket } = await dial('/api/exec', method);
  const sent = Buffer.alloc(3 * 1024 * 1024, 'tributary ');
  const digest = (data: Buffer): string => createHash('sha256').update(data).digest('hex');
  const received: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  socket.write(sent);
  await eventually('all bytes back', () => Buffer.concat(received).length >= sent.length);
  expect(digest(Buffer.concat(received))).toBe(digest(sent));
  socket.destroy();
});

test('one side may end while the other goes on', async () => {
  let fromClient = '';
  onUpgrade = (socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    socket.end('last words');
    socket.on('data', (chunk: Buffer) => (fromClient += chunk.toString()));
  };
  const { socket, head } = await dial();
  let fromServer = head.toString();
  let ended = false;
  socket.on('data', (chunk: Buffer) => (fromServer += chunk.toString()));
  socket.on('end', () => (ended = true));
  await eventually('the end', () => ended);
  expect(fromServer).toBe('last words');
  expect(socket.writable).toBe(true);
  socket.write('still here');
  await eventually('the words', () => fromClient === 'still here');
  socket.destroy();
});

test('a refusal comes with its status and the beginning of its body', async () => {
  const { status, statusMessage, headers, body, socket } = await dial('/refused');
  expect([status, statusMessage]).toEqual([403, 'Not you']);
  expect(headers).toContainEqual(['X-Why', 'because']);
  expect(body).toHaveLength(64 * 1024);
  await eventually('closed', () => socket.destroyed);
});

test('a signal or the time limit ends the dial and the connection', async () => {
  const abort = new AbortController();
  const asked = dialUpgrade(credentials, {
    method: 'GET',
    path: '/stalls',
    rawHeaders: [],
    signal: abort.signal,
  });
  await eventually('the request', () => seen.length === 1);
  abort.abort(new Error('enough'));
  await expect(asked).rejects.toMatchObject({ code: 'Aborted' });
  const clock = new FakeClock();
  const slow = dialUpgrade(credentials, { method: 'GET', path: '/stalls', rawHeaders: [], clock });
  const settled = slow.catch((error: unknown) => error);
  await eventually('the request', () => seen.length === 2);
  await clock.advance(30_000);
  expect(await settled).toMatchObject({ code: 'Unreachable' });
  expect(clock.pending).toBe(0);
});

test('after the upgrade the signal has no more say: the socket belongs to the caller', async () => {
  const abort = new AbortController();
  const request = { method: 'GET', path: '/api/exec', rawHeaders: HEADERS, signal: abort.signal };
  const { socket } = await dialUpgrade(credentials, request);
  abort.abort();
  expect(socket.destroyed).toBe(false);
  socket.destroy();
});

test('a server that is away is Unreachable', async () => {
  await new Promise((resolve) => server.close(resolve));
  await expect(dial()).rejects.toMatchObject({ code: 'Unreachable' });
});
