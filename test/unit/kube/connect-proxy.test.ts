import { randomBytes } from 'node:crypto';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { configMaps } from '../../../src/api/resources.ts';
import { readHead } from '../../../src/kube/connect-proxy.ts';
import type { Credentials } from '../../../src/kube/credentials.ts';
import { type ClientOptions, createClient } from '../../../src/kube/http-client.ts';
import { Landed } from '../../../src/kube/landed.ts';
import { dialUpgrade } from '../../../src/kube/upgrade.ts';
import { parseProxy } from '../../../src/lib/proxy.ts';
import { selfSigned } from '../../support/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApiServer } from '../../support/fake-api/fake-api-server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { ConnectProxy } from '../../support/network/connect-proxy.ts';

const WHERE = 'milan.example:6443';

let proxy: ConnectProxy;
const cleanups: (() => Promise<void>)[] = [];
beforeEach(async () => {
  proxy = await new ConnectProxy().start();
  cleanups.push(async () => proxy.stop());
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** An API server that nobody but the proxy can find. */
async function hidden(http2 = true): Promise<Credentials> {
  const server = await new FakeApiServer({ http2 }).start();
  cleanups.push(async () => server.stop());
  server.seed(configMaps, { metadata: { name: 'a', namespace: 'ns' }, data: { v: '1' } });
  proxy.routes.set(WHERE, server.port);
  return {
    ...server.credentials(),
    server: new URL(`https://${WHERE}`),
    tlsServerName: 'localhost',
    proxy: parseProxy(proxy.url('me:secret'), 'proxy'),
  };
}

async function getA(credentials: Credentials, options: ClientOptions = {}): Promise<unknown> {
  const client = createClient(credentials, { random: () => 0.001, ...options });
  cleanups.push(async () => client.close());
  return client.get(configMaps, { name: 'a', namespace: 'ns' });
}

const credentialsHeader = `Basic ${Buffer.from('me:secret').toString('base64')}`;

test('requests reach a server that only the proxy finds, on one connection', async () => {
  const credentials = await hidden();
  expect(await getA(credentials)).toMatchObject({ data: { v: '1' } });
  expect(proxy.asked).toEqual([{ target: WHERE, authorization: credentialsHeader }]);
});

test('also where the server speaks HTTP/1.1 only', async () => {
  const credentials = await hidden(false);
  expect(await getA(credentials)).toMatchObject({ data: { v: '1' } });
  expect(proxy.asked.map(({ target }) => target)).toEqual([WHERE, WHERE]);
});

test('an upgrade goes through it, too', async () => {
  const credentials = await hidden(false);
  const answer = await dialUpgrade(credentials, { method: 'GET', path: '/nowhere', rawHeaders: [] });
  expect(answer.status).toBe(404);
  expect(proxy.asked.map(({ target }) => target)).toEqual([WHERE]);
});

test('so do the bytes of a stream, which come by another way than those of a direct one', async () => {
  const certificate = await selfSigned(['milan.example']);
  const server = createServer(certificate);
  server.on('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(async () => new Promise((resolve) => server.close(() => resolve())));
  proxy.routes.set(WHERE, (server.address() as AddressInfo).port);
  const way = parseProxy(proxy.url('me:secret'), 'proxy');
  const credentials = { server: new URL(`https://${WHERE}`), ca: certificate.cert, proxy: way };
  const rawHeaders = Object.entries({ Connection: 'Upgrade', Upgrade: 'x' });
  const { socket } = await dialUpgrade(credentials, { method: 'GET', path: '/exec', rawHeaders });
  expect(socket).toBeInstanceOf(Landed);
  const sent = randomBytes(1024 * 1024);
  const back: Buffer[] = [];
  // Now and then there is no more until it proceeds.
  (socket as Landed).takeAll((bytes) => {
    back.push(Buffer.from(bytes));
    setImmediate(() => (socket as Landed).proceed());
    return false;
  });
  socket.write(sent);
  await eventually('all bytes back', () => Buffer.concat(back).length === sent.length);
  expect(Buffer.concat(back).equals(sent)).toBe(true);
  socket.destroy();
});

test('its certificate is checked as ever: the proxy cannot be the server', async () => {
  const credentials = await hidden();
  const other = await new FakeApiServer().start();
  cleanups.push(async () => other.stop());
  proxy.routes.set(WHERE, other.port);
  await expect(getA(credentials)).rejects.toMatchObject({ code: 'Unreachable' });
  expect(other.connections).toBe(0);
});

const head = (status: string): string => `HTTP/1.1 ${status}\r\n`;

describe('a proxy that does not let us through is told with what to do', () => {
  test.each<[string, (socket: Socket) => void, string]>([
    [
      '407',
      (socket) => socket.write(head('407 Auth')),
      'does not accept the user and the password in its URL (407)',
    ],
    [
      '403',
      (socket) => socket.write(head('403 <b>no</b>')),
      'let it permit CONNECT to milan.example at port 6443',
    ],
    ['503', (socket) => socket.write(head('503 x')), 'cannot reach it (503): is it up'],
    ['a redirect', (socket) => socket.write(head('302 x')), 'does not permit it (302)'],
    [
      'garbage',
      (socket) => socket.write('SSH-2.0-x\r\n'),
      'does not speak HTTP: is it an HTTP proxy that knows CONNECT?',
    ],
    [
      'too much',
      (socket) => socket.write(`${head('200 x')}X: ${'x'.repeat(20_000)}`),
      'more than 16384 bytes of headers',
    ],
    ['data', (socket) => socket.write(`${head('200 x')}\r\nmore`), 'sends data that nobody has asked for'],
    ['an end', (socket) => socket.end(), 'closes the connection without an answer'],
  ])('%s', async (_name, answer, message) => {
    const credentials = await hidden();
    proxy.answer = answer;
    const failed: unknown = await getA(credentials).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'Unreachable' });
    const said = (failed as Error).message;
    expect(said).toContain(`cannot connect to ${WHERE}: the proxy ${proxy.name} `);
    expect(said).toContain(message);
    expect(said).not.toMatch(/secret|<b>/u);
  });

  test('407 to one that has no password', async () => {
    const credentials = await hidden();
    proxy.answer = (socket) => socket.write(head('407 Auth'));
    const asked = getA({ ...credentials, proxy: parseProxy(proxy.url(), 'proxy') });
    await expect(asked).rejects.toThrow('wants a user and a password (407): name them in its URL');
  });

  test('silence', async () => {
    const clock = new FakeClock();
    const credentials = await hidden();
    proxy.answer = () => undefined;
    const asked = getA(credentials, { clock, connectTimeoutMs: 10_000 }).catch((error: unknown) => error);
    await eventually('it was asked', () => proxy.asked.length === 1);
    await clock.advance(10_000);
    expect(await asked).toMatchObject({
      code: 'Unreachable',
      message: `connecting to ${WHERE} through the proxy ${proxy.name} (is it an HTTP proxy, and may it connect there?): no answer within 10000 ms`,
    });
  });

  test('nobody there', async () => {
    const credentials = await hidden();
    const { name } = proxy;
    await proxy.stop();
    await expect(getA(credentials)).rejects.toThrow(`the proxy ${name} cannot be reached: `);
    await proxy.start();
  });
});

test.each([
  ['', 'more'],
  ['HTT', 'more'],
  ['HTTP/1.1 20', 'more'],
  ['HTTP/1.1 200 OK\r\nA: b\r\n', 'more'],
  ['HTTP/1.0 200 OK\r\n\r\n', 'open'],
  ['HTTP/1.1 200\r\n\r\n', 'open'],
  ['HTTP/1.1 204 x\r\nA: b\r\n\r\n', 'open'],
  ['HTTP/1.1 200 OK\r\n\r\n\x16', 'surplus'],
  ['HTTP/2 200 OK\r\n\r\n', 'garbage'],
  ['HTTP/1.1 2000 OK\r\n\r\n', 'garbage'],
  ['HTTP/1.1 OK\r\n\r\n', 'garbage'],
  ['<html>', 'garbage'],
  ['HTTP/1.1 407 x\r\n', 407],
  ['HTTP/1.1 100 Continue\r\n\r\n', 100],
])('the answer %j means %s', (text, expected) => {
  expect(readHead(text)).toBe(expected);
});

test('a line without an end is not read for ever', () => {
  expect(readHead(`HTTP/1.1 ${'2'.repeat(20_000)}`)).toBe('tooLarge');
});
