import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { afterEach, expect, test } from '@jest/globals';

import { requestAttributes } from '../../../../src/server/kubelet/auth.ts';
import { ExpiringCache } from '../../../../src/server/kubelet/expiring-cache.ts';
import { bearerToken } from '../../../../src/server/kubelet/user.ts';
import { type Authority, createAuthority, type Issued } from '../support/certificates.ts';
import { type Fixture, readBytes, startKubelet, TestClock, upgradeText } from '../support/kubelet.ts';

let kubelet: Fixture | undefined;
afterEach(async () => {
  await kubelet?.stop();
  kubelet = undefined;
});

const HOUR_MS = 3_600_000;

type Identity = (own: Authority, foreign: Authority) => Promise<Partial<Issued>>;
const nobody: Identity = async () => ({});
const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

test.each<[string, Identity, Record<string, string>, { status: number; user: string }]>([
  [
    'a client certificate',
    async (own) => own.issue('CN=apiserver, O=system:masters'),
    {},
    { status: 200, user: 'apiserver' },
  ],
  ['a token', nobody, bearer('good'), { status: 200, user: 'alice' }],
  [
    'a certificate of another authority',
    async (_own, other) => other.issue('CN=apiserver'),
    {},
    { status: 401, user: '' },
  ],
  [
    'such a certificate with a good token',
    async (_own, other) => other.issue('CN=x'),
    bearer('good'),
    { status: 200, user: 'alice' },
  ],
  [
    'an expired certificate',
    async (own) => own.issue('CN=apiserver', { notAfter: new Date(Date.now() - HOUR_MS) }),
    {},
    { status: 401, user: '' },
  ],
  [
    'a certificate not valid yet',
    async (own) => own.issue('CN=apiserver', { notBefore: new Date(Date.now() + HOUR_MS) }),
    {},
    { status: 401, user: '' },
  ],
  [
    'a server certificate',
    async (own) => own.issue('CN=apiserver', { usage: 'server' }),
    {},
    { status: 401, user: '' },
  ],
  [
    'a certificate without a common name',
    async (own) => own.issue('O=system:masters'),
    {},
    { status: 401, user: '' },
  ],
  ['a token nobody knows', nobody, bearer('bad'), { status: 401, user: '' }],
  ['nothing', nobody, {}, { status: 401, user: '' }],
  ['a user who may not', nobody, bearer('poor'), { status: 403, user: 'bob' }],
])('%s', async (_name, identity, headers, { status, user }) => {
  kubelet = await startKubelet();
  const { foreign, reviews } = kubelet;
  const answer = await kubelet.ask('/pods', {
    headers,
    identity: await identity(kubelet.authority, await createAuthority('CN=other authority')),
  });
  expect(answer.status).toBe(status);
  expect(reviews.questions[0]?.user.name ?? '').toBe(user);
  if (status === 401) expect(answer.text).toBe('Unauthorized');
  if (status === 403) {
    expect(answer.text).toBe('Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[pods proxy])\n');
  }
  expect(foreign.arrivals).toHaveLength(0);
});

test('an upgrade is refused before anything is dialled', async () => {
  kubelet = await startKubelet();
  for (const [lines, status] of [
    [[], 401],
    [['Authorization: Bearer poor'], 403],
  ] as const) {
    const socket = await kubelet.connect({ cert: '', key: '' });
    socket.write(upgradeText('/exec/shop/web/main?output=1', [...lines]));
    expect((await readBytes(socket)).toString().slice(0, 12)).toBe(`HTTP/1.1 ${status}`);
  }
  expect(kubelet.foreign.arrivals).toHaveLength(0);
});

test('the API server is asked about the user, its groups and this node', async () => {
  kubelet = await startKubelet();
  await kubelet.ask('/configz');
  expect(kubelet.reviews.questions).toEqual([
    {
      user: {
        name: 'apiserver',
        groups: ['system:masters', 'system:authenticated'],
        extra: {
          'authentication.kubernetes.io/credential-id': [expect.stringMatching(/^X509SHA256=[0-9a-f]{64}$/)],
        },
      },
      nodeName: 'milan',
      verb: 'get',
      subresource: 'configz',
    },
  ]);
});

test('without authorities no certificate counts, whoever issued it', async () => {
  kubelet = await startKubelet();
  kubelet.clientAuthorities.set('');
  expect((await kubelet.ask('/pods')).status).toBe(401);
});

test('an authority that is withdrawn loses its users, on open connections too', async () => {
  kubelet = await startKubelet();
  const socket = await kubelet.connect();
  const ask = async (): Promise<string> => {
    const chunk = readBytes(socket, 1);
    socket.write('GET /healthz/ping HTTP/1.1\r\nHost: a\r\n\r\n');
    return (await chunk).toString().slice(9, 12);
  };
  expect(await ask()).toBe('200');
  const other = await createAuthority('CN=other authority');
  kubelet.clientAuthorities.set(kubelet.authority.certificate + other.certificate);
  expect(await ask()).toBe('200');
  kubelet.clientAuthorities.set(other.certificate);
  expect(await ask()).toBe('401');
  expect((await kubelet.ask('/pods')).status).toBe(401);
  const answer = await kubelet.ask('/pods', { identity: await other.issue('CN=new') });
  expect(answer.status).toBe(200);
});

test('a certificate that expires while its connection lasts is no longer good', async () => {
  const clock = new TestClock();
  kubelet = await startKubelet({ clock });
  const identity = await kubelet.authority.issue('CN=a', { notAfter: new Date(Date.now() + HOUR_MS) });
  expect((await kubelet.ask('/pods', { identity })).status).toBe(200);
  clock.advance(2 * HOUR_MS);
  expect((await kubelet.ask('/pods', { identity })).status).toBe(401);
});

test('no TLS session is resumed', async () => {
  kubelet = await startKubelet();
  const first = await kubelet.connect();
  let session: Buffer | undefined;
  first.on('session', (fresh: Buffer) => (session = fresh));
  const answered = readBytes(first, 1);
  first.write('GET /healthz/ping HTTP/1.1\r\nHost: a\r\n\r\n');
  await answered;
  const second = await kubelet.connect(session === undefined ? {} : { session });
  expect(second.isSessionReused()).toBe(false);
});

test('a new serving certificate is used for new connections', async () => {
  kubelet = await startKubelet();
  kubelet.serving.set(await kubelet.authority.issue('CN=renewed', { usage: 'server', ips: ['127.0.0.1'] }));
  const socket = await kubelet.connect();
  expect(socket.getPeerCertificate().subject.CN).toBe('renewed');
  kubelet.serving.set({ certificate: 'nonsense', key: 'nonsense' });
  const again = await kubelet.connect();
  expect(again.getPeerCertificate().subject.CN).toBe('renewed');
});

test('answers of the API server are kept for their time', async () => {
  const clock = new TestClock();
  kubelet = await startKubelet({ clock });
  const { reviews } = kubelet;
  const fixture = kubelet;
  const ask = async (token: string): Promise<number> =>
    (await fixture.ask('/healthz', { headers: bearer(token), identity: {} })).status;
  const asked = (): [number, number] => [reviews.tokens.length, reviews.questions.length];
  expect([await ask('good'), await ask('good')]).toEqual([200, 200]);
  expect(asked()).toEqual([1, 1]);
  clock.advance(121_000);
  await ask('good');
  expect(asked()).toEqual([2, 1]);
  clock.advance(180_000);
  await ask('good');
  expect(asked()).toEqual([3, 2]);
  await ask('poor');
  expect(asked()).toEqual([4, 4]);
  clock.advance(29_000);
  await ask('poor');
  expect(asked()).toEqual([4, 4]);
  clock.advance(2_000);
  await ask('poor');
  expect(asked()).toEqual([4, 6]);
});

test('when the API server does not answer, nobody gets in and nothing is remembered', async () => {
  kubelet = await startKubelet();
  kubelet.reviews.fail = true;
  const token = { headers: bearer('good'), identity: {} };
  expect((await kubelet.ask('/pods', token)).status).toBe(401);
  const answer = await kubelet.ask('/pods');
  expect(answer.status).toBe(500);
  expect(answer.text).toBe(
    'Authorization error (user=apiserver, verb=get, resource=nodes, subresource=pods)',
  );
  kubelet.reviews.fail = false;
  expect((await kubelet.ask('/pods', token)).status).toBe(200);
});

test.each([
  ['GET', '/pods', 'get', ['pods', 'proxy']],
  ['GET', '/pods/', 'get', ['pods', 'proxy']],
  ['GET', '/podsx', 'get', ['proxy']],
  ['GET', '/PODS', 'get', ['proxy']],
  ['GET', '/%70ods', 'get', ['proxy']],
  ['GET', '/runningpods/', 'get', ['pods', 'proxy']],
  ['GET', '/healthz/syncloop', 'get', ['healthz', 'proxy']],
  ['GET', '/configz', 'get', ['configz', 'proxy']],
  ['GET', '/stats/summary', 'get', ['stats']],
  ['GET', '/metrics', 'get', ['metrics']],
  ['GET', '/metrics/resource', 'get', ['metrics']],
  ['GET', '/logs/kubelet.log', 'get', ['log']],
  ['POST', '/checkpoint/a/b/c', 'create', ['checkpoint']],
  ['GET', '/statusz', 'get', ['statusz']],
  ['GET', '/flagz', 'get', ['configz']],
  ['GET', '/containerLogs/a/b/c', 'get', ['proxy']],
  ['GET', '/exec/a/b/c', 'get', ['proxy']],
  ['POST', '/exec/a/b/c', 'create', ['proxy']],
  ['POST', '/run/a/b/c', 'create', ['proxy']],
  ['PUT', '/x', 'update', ['proxy']],
  ['PATCH', '/x', 'patch', ['proxy']],
  ['DELETE', '/x', 'delete', ['proxy']],
  ['HEAD', '/pods', '', ['pods', 'proxy']],
  ['OPTIONS', '/healthz', '', ['healthz', 'proxy']],
])('%s %s asks for %s on %j', (method, path, verb, subresources) => {
  expect(requestAttributes(method, path)).toEqual({ verb, subresources });
});

test.each([
  [{ authorization: 'Bearer abc' }, 'abc'],
  [{ authorization: 'bearer   abc  ' }, 'abc'],
  [{ authorization: 'Basic abc' }, undefined],
  [{ authorization: 'Bearer a b' }, undefined],
  [{ authorization: 'Bearer ' }, undefined],
  [{ 'sec-websocket-protocol': 'v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.Z29vZA' }, 'good'],
  [{ 'sec-websocket-protocol': 'base64url.bearer.authorization.k8s.io.Z!' }, undefined],
  [{}, undefined],
])('the token of %j is %j', (headers, token) => {
  expect(bearerToken(headers)).toBe(token);
});

test('the cache is bounded, and asks once for those who wait together', async () => {
  const clock = new TestClock();
  const cache = new ExpiringCache<number>({ clock, maxEntries: 3, maxPending: 9 });
  let loads = 0;
  const load = async (): Promise<number> => (loads += 1);
  const ttl = (): number => 1000;
  expect(await Promise.all(['a', 'a', 'a'].map(async (key) => cache.get(key, load, ttl)))).toEqual([1, 1, 1]);
  for (const key of ['b', 'c', 'd', 'e']) await cache.get(key, load, ttl);
  expect(cache.size).toBe(3);
  expect(await cache.get('a', load, ttl)).toBe(6);
  await expect(cache.get('x', async () => Promise.reject(new Error('no')), ttl)).rejects.toThrow('no');
  expect(await cache.get('x', load, ttl)).toBe(7);
});

test('of questions under way there are so many at most', async () => {
  const cache = new ExpiringCache<number>({ clock: new TestClock(), maxEntries: 3, maxPending: 2 });
  const { promise, resolve } = Promise.withResolvers<number>();
  const ask = async (key: string): Promise<number> =>
    cache.get(
      key,
      async () => promise,
      () => 1000,
    );
  const asked = [ask('a'), ask('b'), ask('a')];
  await expect(ask('c')).rejects.toMatchObject({ code: 'TooManyRequests' });
  resolve(7);
  expect(await Promise.all([...asked, ask('b')])).toEqual([7, 7, 7, 7]);
  expect(await ask('c')).toBe(7);
});

test('kept connections serve many requests', async () => {
  kubelet = await startKubelet();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let count = 0; count < 3; count += 1) {
    const request = httpsRequest({
      agent,
      host: '127.0.0.1',
      port: kubelet.server.port,
      path: '/healthz',
      ca: kubelet.authority.certificate,
      cert: kubelet.client.certificate,
      key: kubelet.client.key,
    });
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    expect(request.reusedSocket).toBe(count > 0);
    response.resume();
    await once(response, 'end');
  }
  agent.destroy();
});
