import { afterEach, expect, test } from '@jest/globals';
import { configMaps } from '../../../src/api/resources.ts';
import type { ConfigMap } from '../../../src/api/wire.ts';
import type { Credentials } from '../../../src/kube/credentials.ts';
import { rereadToken } from '../../../src/kube/credentials.ts';
import { type ClientOptions, type HttpClient, createClient } from '../../../src/kube/http-client.ts';
import { selfSigned } from '../../support/certificate.ts';
import { eventually } from '../../support/eventually.ts';
import { FakeApiServer, type FakeApiServerOptions } from '../../support/fake-api/fake-api-server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type TcpProxy, startTcpProxy } from '../../support/network/tcp-proxy.ts';

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function serve(options: FakeApiServerOptions = {}): Promise<FakeApiServer> {
  const server = await new FakeApiServer(options).start();
  cleanups.push(() => server.stop());
  server.seed(configMaps, { metadata: { name: 'a', namespace: 'ns' }, data: { v: '1' } });
  return server;
}

function connect(credentials: Credentials, options: ClientOptions = {}): HttpClient {
  const client = createClient(credentials, { random: () => 0.001, ...options });
  cleanups.push(() => client.close());
  return client;
}

async function relay(server: FakeApiServer): Promise<TcpProxy> {
  const proxy = await startTcpProxy(server.port);
  cleanups.push(() => proxy.close());
  return proxy;
}

const A = { name: 'a', namespace: 'ns' };
const getA = (client: HttpClient, signal?: AbortSignal): Promise<ConfigMap> =>
  client.get(configMaps, A, signal === undefined ? {} : { signal });

/** Watches until it ends; resolves with the error that ended it, or undefined. */
function watching(
  client: HttpClient,
  signal?: AbortSignal,
): { opened: () => boolean; ended: Promise<unknown> } {
  let opened = false;
  const run = async (): Promise<unknown> => {
    try {
      const events = client.watch(configMaps, {
        namespace: 'ns',
        resourceVersion: '',
        onOpen: () => (opened = true),
        ...(signal && { signal }),
      });
      for await (const _event of events);
      return undefined;
    } catch (error) {
      return error;
    }
  };
  return { opened: () => opened, ended: run() };
}

test('nothing is dialled before the first call, and then one connection serves all', async () => {
  const server = await serve();
  const client = connect(server.credentials());
  expect(server.connections).toBe(0);
  const abort = new AbortController();
  const watches = Array.from({ length: 20 }, () => watching(client, abort.signal));
  await Promise.all(Array.from({ length: 200 }, () => getA(client)));
  await eventually('watches', () => watches.every(({ opened }) => opened()));
  expect(server.connections).toBe(1);
  await eventually('only the watches', () => client.stats.streamsOpen === 20);
  expect(client.stats.connectionsOpen).toBe(1);
  abort.abort();
  await Promise.all(watches.map(({ ended }) => ended));
  await eventually('streams closed at the server', () => server.watches.watchers.length === 0);
  expect(client.stats.streamsOpen).toBe(0);
});

test('more connections only while the server permits no more streams', async () => {
  const server = await serve({ maxConcurrentStreams: 5 });
  const client = connect(server.credentials(), { pingIdleMs: 20 });
  const abort = new AbortController();
  const watches = Array.from({ length: 12 }, () => watching(client, abort.signal));
  await eventually('watches', () => watches.every(({ opened }) => opened()));
  expect(server.connections).toBe(3);
  await Promise.all(Array.from({ length: 30 }, () => getA(client)));
  // 42 streams at most.
  expect(server.connections).toBeLessThanOrEqual(9);
  abort.abort();
  await Promise.all(watches.map(({ ended }) => ended));
  await eventually('the spare ones are closed', () => client.stats.connectionsOpen === 1);
  await getA(client);
});

test('hundreds of watches hold up no request', async () => {
  const server = await serve({ maxConcurrentStreams: 5 });
  const client = connect(server.credentials());
  const abort = new AbortController();
  // As of 128 virtual nodes in one process, in proportion.
  const watches = Array.from({ length: 45 }, () => watching(client, abort.signal));
  await eventually('watches', () => watches.every(({ opened }) => opened()));
  expect(await getA(client)).toMatchObject({ data: { v: '1' } });
  expect(server.connections).toBe(10);
  abort.abort();
  await Promise.all(watches.map(({ ended }) => ended));
});

test('a half-open connection is found within 30 s, and the next call dials anew', async () => {
  const server = await serve();
  const proxy = await relay(server);
  const clock = new FakeClock();
  const client = connect(server.credentials(proxy.port), { clock });
  const { opened, ended } = watching(client);
  await eventually('the watch', opened);
  proxy.silence();
  let error: unknown;
  void ended.then((value) => (error = value));
  await clock.advance(22_000);
  expect(error).toBeUndefined();
  await clock.advance(4_000);
  expect(error).toMatchObject({ code: 'Unreachable', message: expect.stringContaining('no sign of life') });
  proxy.restore();
  expect(await getA(client)).toMatchObject({ data: { v: '1' } });
  expect(proxy.connections).toBe(2);
});

test('a quiet watch on a healthy connection lives through pings', async () => {
  const server = await serve();
  const client = connect(server.credentials(), { pingIdleMs: 5, pingTimeoutMs: 1000 });
  const abort = new AbortController();
  const { opened, ended } = watching(client, abort.signal);
  await eventually('pings', () => opened() && server.pings >= 10);
  expect(server.watches.watchers).toHaveLength(1);
  expect(client.stats.connectionsOpened).toBe(1);
  abort.abort();
  expect(await ended).toMatchObject({ code: 'Aborted' });
});

test('GOAWAY loses no request: what was not processed goes out again on a new connection', async () => {
  const server = await serve();
  const client = connect(server.credentials());
  await getA(client);
  for (let round = 0; round < 20; round++) {
    const requests = Array.from({ length: 20 }, (_, index) =>
      client.create(configMaps, { metadata: { name: `r${round}-${index}`, namespace: 'ns' } }),
    );
    server.goaway();
    await Promise.all(requests);
  }
  expect(server.storage.list('configmaps')).toHaveLength(401);
  expect(client.stats.connectionsOpened).toBeGreaterThan(1);
});

/** The first connection takes no more requests, and a second one is there. */
async function leaveFirst(server: Awaited<ReturnType<typeof serve>>, client: HttpClient): Promise<void> {
  server.goaway();
  await eventually('a second connection', async () => {
    await getA(client);
    return server.connections === 2;
  });
}

test('a watch survives the GOAWAY of its connection', async () => {
  const server = await serve();
  const client = connect(server.credentials());
  const abort = new AbortController();
  const { opened, ended } = watching(client, abort.signal);
  await eventually('the watch', opened);
  await leaveFirst(server, client);
  expect(server.watches.watchers).toHaveLength(1);
  abort.abort();
  expect(await ended).toMatchObject({ code: 'Aborted' });
});

test('a quiet watch on a connection that takes no more requests is not taken for dead', async () => {
  const server = await serve();
  const clock = new FakeClock();
  const client = connect(server.credentials(), { clock });
  const abort = new AbortController();
  const { opened, ended } = watching(client, abort.signal);
  await eventually('the watch', opened);
  await leaveFirst(server, client);
  let error: unknown;
  void ended.then((value) => (error = value));
  for (let second = 0; second < 60; second++) {
    await clock.advance(1_000);
    await new Promise((done) => setImmediate(done));
  }
  expect(error).toBeUndefined();
  expect(server.watches.watchers).toHaveLength(1);
  abort.abort();
  expect(await ended).toMatchObject({ code: 'Aborted' });
});

test('after a restart of the server the next read succeeds', async () => {
  const server = await serve();
  const client = connect(server.credentials());
  for (let round = 0; round < 5; round++) {
    await getA(client);
    await server.stop();
    await server.start();
  }
  await getA(client);
});

test('a refused or unresolvable server, and an untrusted one, are Unreachable with the cause', async () => {
  const server = await serve();
  const credentials = server.credentials();
  const { cert } = await selfSigned();
  await expect(getA(connect({ ...credentials, ca: cert }))).rejects.toMatchObject({
    code: 'Unreachable',
    message: expect.stringMatching(/certificate/),
  });
  const wrongName = connect({ ...credentials, tlsServerName: 'elsewhere.example' });
  await expect(getA(wrongName)).rejects.toMatchObject({ code: 'Unreachable' });
  const rightName = connect({ ...credentials, tlsServerName: 'localhost' });
  await expect(getA(rightName)).resolves.toBeDefined();
  const elsewhere = { ...credentials, server: new URL(`https://localhost:${server.port}`) };
  const rightAddress = connect({ ...elsewhere, tlsServerName: '127.0.0.1' });
  await expect(getA(rightAddress)).resolves.toBeDefined();
  const wrongAddress = connect({ ...elsewhere, tlsServerName: '192.0.2.1' });
  await expect(getA(wrongAddress)).rejects.toMatchObject({ code: 'Unreachable' });
  await server.stop();
  await expect(getA(connect(credentials))).rejects.toMatchObject({
    code: 'Unreachable',
    message: expect.stringContaining('ECONNREFUSED'),
  });
});

test('where dials are spaced, a hundred calls to a dead server share one, and all are answered once it is back', async () => {
  const server = await serve();
  const proxy = await relay(server);
  const clock = new FakeClock();
  const via = { ...server.credentials(), server: new URL(`https://127.0.0.1:${proxy.port}`) };
  const client = connect(via, { clock, redial: { baseMs: 1000, capMs: 4000, floor: 0.5 } });
  const hundred = (): Promise<PromiseSettledResult<ConfigMap>>[] =>
    Array.from({ length: 100 }, async () => (await Promise.allSettled([getA(client)]))[0]);
  await server.stop();
  await expect(getA(client)).rejects.toMatchObject({ code: 'Unreachable' });
  expect(proxy.connections).toBe(1);
  const asked = hundred();
  await clock.advance(1000);
  const refused = await Promise.all(asked);
  expect(refused.every(({ status }) => status === 'rejected')).toBe(true);
  expect(proxy.connections).toBe(2);
  const waiting = hundred();
  await server.start();
  await clock.advance(2000);
  const answered = await Promise.all(waiting);
  expect(answered.every(({ status }) => status === 'fulfilled')).toBe(true);
  expect(proxy.connections).toBe(3);
  await client.close();
});

test('a call that waits for a spaced dial ends with its client', async () => {
  const server = await serve();
  const client = connect(server.credentials(), {
    clock: new FakeClock(),
    redial: { baseMs: 1000, capMs: 4000, floor: 0.5 },
  });
  await server.stop();
  await expect(getA(client)).rejects.toMatchObject({ code: 'Unreachable' });
  const waiting = getA(client).catch((error: unknown) => error);
  await client.close();
  expect(await waiting).toMatchObject({ code: 'Unreachable', message: 'the client was closed' });
});

test('a call without an answer ends after 30 s; a read of a dead connection is not repeated for ever', async () => {
  const server = await serve();
  const clock = new FakeClock();
  const client = connect(server.credentials(), { clock });
  server.fault({ stall: true });
  const asked = getA(client);
  const settled = asked.catch((error: unknown) => error);
  await eventually('the request', () => server.count(/GET/) === 1);
  await clock.advance(30_000);
  expect(await settled).toMatchObject({
    code: 'Unreachable',
    message: 'get ConfigMap a in ns: no answer within 30000 ms',
  });
  await eventually('no stream', () => client.stats.streamsOpen === 0);
});

test('a signal ends a call at once', async () => {
  const server = await serve();
  const client = connect(server.credentials());
  server.fault({ stall: true });
  const abort = new AbortController();
  const asked = getA(client, abort.signal);
  await eventually('the request', () => server.count(/GET/) === 1);
  abort.abort(new Error('changed my mind'));
  await expect(asked).rejects.toMatchObject({ code: 'Aborted', cause: { message: 'changed my mind' } });
  await eventually('no stream', () => client.stats.streamsOpen === 0);
  await expect(getA(client, abort.signal)).rejects.toMatchObject({ code: 'Aborted' });
});

test('a rotated token is read again when the server refuses the old one, once a call', async () => {
  const tokens = new Set(['old']);
  const server = await serve({ tokens });
  let stored = 'old';
  let reads = 0;
  const token = rereadToken(() => {
    reads++;
    return Promise.resolve(`${stored}\n`);
  }, new FakeClock());
  const client = connect({ ...server.credentials(), token });
  await getA(client);
  await getA(client);
  expect(reads).toBe(1);
  tokens.clear();
  tokens.add((stored = 'new'));
  await getA(client);
  expect(reads).toBe(2);
  tokens.clear();
  await expect(getA(client)).rejects.toMatchObject({ code: 'Unauthorized', status: 401 });
  expect(reads).toBe(3);
});

test('where no fresh token is to be had, the answer that asked for one holds no stream', async () => {
  const server = await serve({ tokens: new Set(['other']) });
  const token = async (_signal: AbortSignal | undefined, fresh?: boolean): Promise<string> =>
    fresh === true ? Promise.reject(new Error('no token')) : Promise.resolve('old');
  const client = connect({ ...server.credentials(), token });
  await expect(getA(client)).rejects.toThrow('no token');
  await eventually('no stream', () => client.stats.streamsOpen === 0);
});

test.each([
  ['a read', (client: HttpClient) => getA(client)],
  [
    'a write',
    (client: HttpClient) => client.create(configMaps, { metadata: { name: 'b', namespace: 'ns' } }),
  ],
])('%s waits as long as 429 says, and is repeated a few times only', async (_what, call) => {
  const server = await serve();
  const clock = new FakeClock();
  const client = connect(server.credentials(), { clock });
  server.fault({ status: 429, headers: { 'retry-after': '2' }, times: 2 });
  let result: unknown;
  void call(client).then((value) => (result = value));
  await eventually('the first', () => server.log.length === 1 && clock.pending > 0);
  await clock.advance(1900);
  expect(server.log).toHaveLength(1);
  await eventually('patience', async () => {
    await clock.advance(1000);
    return result !== undefined;
  });
  expect(server.log).toHaveLength(3);
  server.fault({ status: 429, headers: { 'retry-after': '3600' } });
  await expect(call(client)).rejects.toMatchObject({ code: 'TooManyRequests', retryAfterMs: 60_000 });
});

test('an answer beyond the limit is refused, not held', async () => {
  const server = await serve();
  const client = connect(server.credentials(), { maxAnswerBytes: 10_000 });
  server.fault({ body: JSON.stringify({ metadata: { name: 'x'.repeat(100_000) } }) });
  await expect(getA(client)).rejects.toMatchObject({ code: 'Unavailable' });
  await eventually('no stream', () => client.stats.streamsOpen === 0);
});

test.each([
  ['not JSON', 'nonsense'],
  ['no object', '[]'],
  ['null', 'null'],
])('an answer that is %s is Unavailable', async (_what, body) => {
  const server = await serve();
  const client = connect(server.credentials());
  server.fault({ body });
  await expect(getA(client)).rejects.toMatchObject({ code: 'Unavailable' });
  server.fault({ body });
  await expect(client.list(configMaps)).rejects.toMatchObject({ code: 'Unavailable' });
});

test('who does not read a stream holds back its sender, and nobody else', async () => {
  const server = await serve();
  const client = connect(server.credentials());
  const chunk = 'x'.repeat(1024 * 1024);
  server.fault({ body: chunk.repeat(32) });
  const { body } = await client.raw({ method: 'GET', path: '/api/v1/namespaces/ns/pods/p/log' });
  await getA(client);
  await eventually('the window is full', () => client.stats.bytesReceived > 900_000);
  for (let index = 0; index < 20; index++) await getA(client);
  expect(client.stats.bytesReceived).toBeLessThan(4 * 1024 * 1024);
  let received = 0;
  for await (const part of body) received += (part as Buffer).length;
  expect(received).toBe(32 * 1024 * 1024);
});

test('close ends everything under way', async () => {
  const server = await serve();
  const client = connect(server.credentials());
  const { opened, ended } = watching(client);
  await eventually('the watch', opened);
  await client.close();
  expect(await ended).toBeDefined();
  await eventually('no watcher', () => server.watches.watchers.length === 0);
});

test('every request can be counted', async () => {
  const server = await serve();
  const seen: string[] = [];
  const client = connect(server.credentials(), {
    onRequest: (method, path) => seen.push(`${method} ${path}`),
  });
  await getA(client);
  expect(seen).toEqual(['GET /api/v1/namespaces/ns/configmaps/a']);
  expect(client.stats.requests).toBe(1);
  expect(client.stats.bytesReceived).toBeGreaterThan(100);
  expect(client.stats.bytesSent).toBeGreaterThan(50);
});
