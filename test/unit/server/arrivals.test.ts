import { connect, type Server, type Socket } from 'node:net';
import { createServer as createHttp, get } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect as connectTls, createServer as createTls } from 'node:tls';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { ArrivalLimits } from '../../../src/server/arrivals.ts';
import { Arrivals } from '../../../src/server/arrivals.ts';
import { clientHelloIn } from '../../../src/server/client-hello.ts';
import { listen, portOf } from '../../../src/server/listening.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { selfSigned } from '../../support/certificate.ts';

const servers: Server[] = [];
const clients: Socket[] = [];
const guards: Arrivals[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const guard of guards.splice(0)) guard.endAll();
  await Promise.all(servers.splice(0).map(async (server) => new Promise((done) => server.close(done))));
});

interface Guarded {
  server: Server;
  guard: Arrivals;
  port: number;
}

async function guarded(
  server: Server,
  how: 'guardTls' | 'guardHttps' | 'guardHttp',
  limits: Partial<ArrivalLimits> = {},
  isKnown?: (address: string) => boolean,
): Promise<Guarded> {
  const guard = new Arrivals({ clock: systemClock, limits, ...(isKnown && { isKnown }) });
  guard[how](server);
  await listen(server, '127.0.0.1', 0);
  servers.push(server);
  guards.push(guard);
  return { server, guard, port: portOf(server) ?? 0 };
}

async function tlsServer(
  limits: Partial<ArrivalLimits>,
  isKnown?: (address: string) => boolean,
): Promise<Guarded> {
  const server = createTls(await selfSigned(), (socket) => socket.on('error', () => undefined).end('hello'));
  server.on('tlsClientError', () => undefined);
  return guarded(server, 'guardTls', limits, isKnown);
}

/** Connected, and told when it is ended. */
async function client(port: number, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress });
  clients.push(socket);
  socket.on('error', () => undefined);
  socket.resume();
  await new Promise((done) => socket.once('connect', done));
  return socket;
}

/** What a TLS client is told. */
async function told(port: number, localAddress = '127.0.0.1'): Promise<string> {
  const socket = connectTls({ socket: await client(port, localAddress), rejectUnauthorized: false });
  clients.push(socket);
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await new Promise((done, fail) => socket.once('close', done).once('error', fail));
  return text;
}

describe('before a TLS server', () => {
  test('a client is served', async () => {
    const { port } = await tlsServer({});
    expect(await told(port)).toBe('hello');
  });

  test.each([
    ['is silent', []],
    ['sends a byte now and then', [22, 3, 1, 2, 0, 1, 0, 1]],
  ])('a client that %s is dropped when its time is over', async (_what, bytes) => {
    const { port, guard } = await tlsServer({ helloMs: 300 });
    const socket = await client(port);
    for (const byte of bytes) {
      socket.write(Buffer.from([byte]));
      await new Promise((done) => setImmediate(done));
    }
    await eventually('dropped', () => socket.destroyed, 5_000);
    await eventually('forgotten', () => guard.size === 0, 5_000);
  });

  test('what is no TLS is dropped at once', async () => {
    const { port } = await tlsServer({ helloMs: 60_000, proofMs: 60_000 });
    const socket = await client(port);
    socket.write('GET / HTTP/1.1\r\n\r\n');
    await eventually('dropped', () => socket.destroyed, 5_000);
  });

  test('when too many wait, the oldest one goes, and whoever comes is served', async () => {
    const { port, guard } = await tlsServer({ silent: 3, helloMs: 60_000 });
    const first = await client(port);
    const others = [await client(port), await client(port)];
    await eventually('all are there', () => guard.size === 3, 5_000);
    expect(await told(port)).toBe('hello');
    await eventually('the oldest is gone', () => first.destroyed, 5_000);
    expect(others.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  });

  test('who is known has places that no stranger takes', async () => {
    const { port, guard } = await tlsServer(
      { silent: 2, known: 1, helloMs: 60_000 },
      (it) => it === '127.0.0.9',
    );
    const friend = await client(port, '127.0.0.9');
    await eventually('is there', () => guard.size === 1, 5_000);
    const strangers: Socket[] = [];
    for (let count = 0; count < 8; count++) strangers.push(await client(port, `127.0.0.${20 + count}`));
    const isGone = (): boolean => strangers.filter(({ destroyed }) => destroyed).length === 6;
    await eventually('all strangers but two are gone', isGone, 5_000);
    expect(friend.destroyed).toBe(false);
  });
});

describe('before a server of requests', () => {
  test.each(['http', 'https'] as const)(
    '%s: an idle connection makes room, and none that is being answered',
    async (kind) => {
      let answer: (() => void) | undefined;
      const app = (
        request: { url?: string | undefined },
        response: { end: (text: string) => void },
      ): void => {
        const end = (): void => response.end('done');
        if (request.url === '/slow') answer = end;
        else end();
      };
      const server = kind === 'http' ? createHttp(app) : createHttps(await selfSigned(), app);
      const how = kind === 'http' ? 'guardHttp' : 'guardHttps';
      const { port, guard } = await guarded(server, how, { silent: 2, waiting: 2 });
      const ask = async (path: string): Promise<{ socket: Socket; text: () => string }> => {
        const at = { host: '127.0.0.1', port };
        const socket = kind === 'http' ? connect(at) : connectTls({ ...at, rejectUnauthorized: false });
        clients.push(socket);
        socket.on('error', () => undefined);
        await new Promise((done) => socket.once(kind === 'http' ? 'connect' : 'secureConnect', done));
        let text = '';
        socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
        socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
        return { socket, text: () => text };
      };
      const slow = await ask('/slow');
      await eventually('the slow request is there', () => answer !== undefined, 5_000);
      const idle = [await ask('/'), await ask('/'), await ask('/')];
      await eventually('one has made room', () => idle[0]?.socket.destroyed === true, 5_000);
      await eventually(
        'the others are answered',
        () => idle.slice(1).every(({ text }) => text().includes('done')),
        5_000,
      );
      expect(guard.size).toBe(3);
      answer?.();
      await eventually('the slow one is answered', () => slow.text().includes('done'), 5_000);
    },
  );

  test.each(['guardHttp', 'guardHttps'] as const)(
    '%s: a server that takes no upgrades answers as if nobody had asked for one',
    async (how) => {
      const app = (_request: unknown, response: { end: (text: string) => void }): void => response.end('ok');
      const server = how === 'guardHttp' ? createHttp(app) : createHttps(await selfSigned(), app);
      const { port, guard } = await guarded(server, how);
      const socket =
        how === 'guardHttp'
          ? await client(port)
          : connectTls({ socket: await client(port), rejectUnauthorized: false });
      clients.push(socket);
      socket.on('error', () => undefined);
      let text = '';
      socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
      socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
      await eventually('it is answered', () => text.endsWith('ok'), 5_000);
      await eventually('it is forgotten', () => guard.size === 0, 5_000);
    },
  );

  test('plain HTTP is asked and answered as before', async () => {
    const { port } = await guarded(
      createHttp((_request, response) => response.end('ok')),
      'guardHttp',
    );
    const status = await new Promise((done) =>
      get({ port, host: '127.0.0.1' }, ({ statusCode }) => done(statusCode)),
    );
    expect(status).toBe(200);
  });
});

test.each([
  [[], 'partly'],
  [[22], 'partly'],
  [[22, 3, 1, 0, 2, 1], 'partly'],
  [[22, 3, 1, 0, 2, 1, 0], 'whole'],
  [[22, 3, 1, 0, 2, 1, 0, 9], 'whole'],
  [[22, 3, 1, 0, 2, 2], 'never'],
  [[22, 2], 'never'],
  [[22, 3, 1, 0, 0], 'never'],
  [[22, 3, 1, 0xff, 0xff], 'never'],
  [[0x47, 0x45, 0x54], 'never'],
])('bytes %j are a ClientHello: %s', (bytes, found) => {
  expect(clientHelloIn(Buffer.from(bytes))).toBe(found);
});
