import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Credentials } from '../../../src/kube/credentials.ts';
import { SpareConnection } from '../../../src/kube/spare-connection.ts';
import { type UpgradeResponse, dialUpgrade } from '../../../src/kube/upgrade.ts';
import { selfSigned } from '../../support/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** One connection as the server sees it. */
interface Arrival {
  socket: TLSSocket;
  requests: string[];
}

let server: Server;
let credentials: Credentials;
let arrivals: Arrival[];
let clock: FakeClock;
let spare: SpareConnection;

beforeEach(async () => {
  arrivals = [];
  clock = new FakeClock();
  spare = new SpareConnection(clock);
  const certificate = await selfSigned();
  server = createServer({ ...certificate, ALPNProtocols: ['http/1.1'] });
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    socket.on('error', () => undefined);
    arrivals.push({ socket, requests: [] });
  });
  server.on('upgrade', (request, socket) => {
    arrivals.find((arrival) => arrival.socket === socket)?.requests.push(request.url ?? '');
    if (request.url === '/refused') return socket.end('HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    return socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  credentials = { server: new URL(`https://127.0.0.1:${port}`), ca: certificate.cert };
});

afterEach(async () => {
  spare.stop();
  for (const { socket } of arrivals) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const dial = async (path = '/exec', as = credentials): Promise<UpgradeResponse> =>
  dialUpgrade(as, {
    method: 'GET',
    path,
    rawHeaders: [
      ['Connection', 'Upgrade'],
      ['Upgrade', 'x'],
    ],
    clock,
    spare,
  });

/** Opens a stream and ends it. */
async function use(path?: string): Promise<void> {
  const { socket } = await dial(path);
  socket.destroy();
}

/** The client's side is ready soon after the server's; its timer shows it. */
const waits = async (count: number): Promise<void> =>
  eventually('a connection that waits', () => arrivals.length === count && clock.pending === 1);

const requests = (): string[][] => arrivals.map((arrival) => arrival.requests);

test('when a stream has ended, a connection waits on which nothing is said; the next upgrade takes it', async () => {
  await use('/first');
  await waits(2);
  expect(requests()).toEqual([['/first'], []]);
  expect(arrivals[1]?.socket.bytesRead).toBe(0);
  const { socket } = await dial('/second');
  expect(requests()).toEqual([['/first'], ['/second']]);
  const echo = new Promise((resolve) => socket.once('data', resolve));
  socket.write('word');
  expect(String(await echo)).toBe('word');
  expect(clock.pending).toBe(0);
  socket.destroy();
  await waits(3);
});

test('while a stream is open there is none, and none after a refusal', async () => {
  const { socket } = await dial();
  await use('/refused');
  await eventually('closed', () => arrivals[1]?.socket.destroyed === true);
  expect(arrivals).toHaveLength(2);
  expect(clock.pending).toBe(0);
  socket.destroy();
  await waits(3);
});

test('of many streams that end at once comes one', async () => {
  const opened = await Promise.all(Array.from({ length: 8 }, async () => dial()));
  for (const { socket } of opened) socket.destroy();
  await waits(9);
  await use();
  expect(arrivals).toHaveLength(9);
  await waits(10);
});

test('whoever has gone before is not asked for: it goes on waiting, and nothing is said on it', async () => {
  await use();
  await waits(2);
  const request = { method: 'GET', path: '/gone', rawHeaders: [], clock, spare };
  const gone = dialUpgrade(credentials, { ...request, signal: AbortSignal.abort() });
  await expect(gone).rejects.toMatchObject({ code: 'Aborted' });
  await use('/next');
  expect(requests().slice(0, 2)).toEqual([['/exec'], ['/next']]);
});

test('it does not wait for long', async () => {
  await use();
  await waits(2);
  await clock.advance(20_000);
  await eventually('closed', () => arrivals[1]?.socket.destroyed === true);
  await use('/later');
  expect(requests().slice(2)).toEqual([['/later']]);
});

test.each([
  ['other credentials', (): Credentials => ({ ...credentials })],
  ['none any more', () => undefined],
])('%s close it', async (_what, other) => {
  await use();
  await waits(2);
  spare.use(other());
  expect(clock.pending).toBe(0);
  await eventually('closed', () => arrivals[1]?.socket.destroyed === true);
  expect(arrivals[1]?.requests).toEqual([]);
});

test('whoever comes with other credentials gets none of the former ones, and nobody gets it later', async () => {
  await use();
  await waits(2);
  const other = await dial('/other', { ...credentials });
  await eventually('closed', () => arrivals[1]?.socket.destroyed === true);
  const { socket } = await dial('/again');
  expect(requests()).toEqual([['/exec'], [], ['/other'], ['/again']]);
  other.socket.destroy();
  socket.destroy();
});

test('who comes while it is being dialled gets it, and no other is dialled', async () => {
  const { socket } = await dial('/first');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.destroy();
  await closed;
  const next = await dial('/next');
  expect(requests()).toEqual([['/first'], ['/next']]);
  expect(clock.pending).toBe(0);
  next.socket.destroy();
  await waits(3);
});

test('who goes while it is being dialled has it closed', async () => {
  const { socket } = await dial('/first');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.destroy();
  await closed;
  const gone = new AbortController();
  const taken = spare.take(credentials, gone.signal);
  gone.abort();
  await expect(taken).rejects.toMatchObject({ code: 'Aborted' });
  const connections = promisify(server.getConnections.bind(server));
  await eventually('closed', async () => (await connections()) === 0);
  expect(clock.pending).toBe(0);
  expect(requests().flat()).toEqual(['/first']);
});

test('what is still being dialled is given up with its credentials', async () => {
  const { socket } = await dial();
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.destroy();
  await closed;
  spare.stop();
  const next = await dial('/next', { ...credentials });
  await eventually('closed', () => arrivals.every((at) => at.socket.destroyed || at.requests.length > 0));
  expect(requests().flat()).toEqual(['/exec', '/next']);
  next.socket.destroy();
});

test.each([
  ['ends it', (socket: TLSSocket) => socket.end()],
  ['speaks before it is asked', (socket: TLSSocket) => socket.write('HTTP/1.1 408 Too late\r\n\r\n')],
  ['breaks it', (socket: TLSSocket) => socket.destroy()],
])('a server that %s makes it useless', async (_what, does) => {
  await use();
  await waits(2);
  const waiting = arrivals[1]?.socket;
  if (waiting !== undefined) does(waiting);
  await eventually('closed', () => waiting?.destroyed === true && clock.pending === 0);
  await use('/next');
  expect(requests().slice(1, 3)).toEqual([[], ['/next']]);
});

test('a server that is away makes no noise; the next upgrade says it', async () => {
  const { socket } = await dial();
  server.close();
  for (const arrival of arrivals) arrival.socket.destroy();
  socket.destroy();
  await expect(dial()).rejects.toMatchObject({ code: 'Unreachable' });
  await eventually('nothing under way', () => clock.pending === 0);
});
